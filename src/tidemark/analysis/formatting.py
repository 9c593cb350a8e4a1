"""Text of numbers, estimates and interval verdicts, for tables, figures, claims, paper and report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.rounds import rounds_needed
from tidemark.analysis.statistics import BootstrapEstimate, Estimate


@dataclass(frozen=True, slots=True)
class MissingCell:
    """Cell without a value, with the reason."""

    reason: str

    def __str__(self) -> str:
        return f"missing: {self.reason}"


type Cell = Estimate | MissingCell | str | int | float | None


def attempt(unit: str, compute: Callable[[], BootstrapEstimate]) -> Estimate | MissingCell:
    """Return `compute()` as an estimate in `unit`, or MissingCell with the reason if it raises NotAvailable."""
    try:
        return compute().estimate(unit)
    except NotAvailable as absent:
        return MissingCell(str(absent))


# Numbers


def number(value: float, digits: int = 4) -> str:
    """Format `value` with `digits` significant digits and thousands separators; never in powers of ten."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def shown(cell: Cell, unit: str = "", digits: int = 4) -> str:
    """Format a cell for display, numbers with `digits` significant digits; tiny percentages become `<0.001`."""
    if cell is None:
        return ""
    if isinstance(cell, Estimate):
        if cell.low is None or cell.high is None:
            return number(cell.value, digits)
        # The ends have as many decimals as the value: further digits would be noise.
        decimals = digits - 1 - math.floor(math.log10(abs(cell.value))) if cell.value else digits
        low, high = (f"{round(end, decimals):,.{max(decimals, 0)}f}" for end in (cell.low, cell.high))
        return f"{number(cell.value, digits)} [{low}, {high}]"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return "<0.001" if unit == "%" and 0 < cell < 0.001 else number(cell, digits)
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def with_unit(value: str, unit: str) -> str:
    return f"{value} ×" if unit == "x" else f"{value} {unit}".strip()


def estimate_text(estimate: Estimate) -> str:
    """Return `12.3 × [11.9, 12.8]`: the value with its unit, and the interval with as many decimals."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if not math.isfinite(value):
        return "not a number"
    size = math.floor(math.log10(abs(value))) if value else 0
    decimals = min((4 if size >= 3 else 3) - 1 - size, 6)

    def spelt(number: float) -> str:
        return f"{round(number, decimals):,.{max(decimals, 0)}f}"

    shown = with_unit(spelt(value), estimate.unit)
    return shown if low is None or high is None else f"{shown} [{spelt(low)}, {spelt(high)}]"


# Verdicts of intervals, never of point estimates

MARGIN = 0.10  # within which two systems are the same: of their ratio, above and below


def against(ratio: Estimate, larger: str, smaller: str, same: str) -> str:
    """Return the word that the ratio's interval supports: `same` if it contains 1."""
    return larger if ratio.is_above(1) else smaller if ratio.is_below(1) else same


def comparison(compute: Callable[[], BootstrapEstimate], above: str = "slower", below: str = "faster") -> Cell:
    """Return the verdict on a ratio (by default in words for times); None if there is no ratio or no interval.

    Different: the 95 % interval excludes 1, and its nearer end is what the difference is at least. The same: the 90 %
    interval, as of two one-sided tests at 5 %, is within MARGIN. Both: different, but by less than that. Neither: not
    distinguishable, with the rounds that would usually decide it.
    """
    try:
        ratio = compute()
    except NotAvailable:
        return None
    found, narrow = ratio.estimate(""), ratio.estimate("", 0.90)
    if found.low is None or found.high is None or narrow.low is None or narrow.high is None:
        return None
    within = narrow.low > 1 / (1 + MARGIN) and narrow.high < 1 + MARGIN
    if found.contains(1):
        return f"the same within {percent(MARGIN)}" if within else f"not distinguishable{_rounds_to_decide(ratio)}"
    word, least = (above, found.low - 1) if found.low > 1 else (below, 1 - found.high)
    return f"{word} by less than {percent(MARGIN)}" if within else f"{word} by at least {percent(least)}"


def percent(share: float) -> str:
    """Return a share as a percentage of two significant digits; from ten times on as a factor."""
    return f"{number(100 * share, 2)} %" if share < 9 else f"a factor of {number(1 + share, 2)}"


def _rounds_to_decide(ratio: BootstrapEstimate) -> str:
    if ratio.rounds is None or not ratio.log:
        return ""
    variance = ratio.rounds.of_mean()[0] * len(ratio.rounds.values)
    return f" ({rounds_needed(variance, MARGIN):,} rounds would decide)"


def growth_verdict(slope: Estimate | MissingCell) -> Cell:
    """Return the verdict of a slope's interval, or None if it has no interval."""
    if isinstance(slope, MissingCell) or slope.low is None:
        return None
    return "grows" if slope.is_above(0) else "shrinks" if slope.is_below(0) else "not resolved"


# Sentences


def listed(items: Sequence[str]) -> str:
    """Join `items` as `a`, `a and b` or `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def brief(reason: str) -> str:
    """Return a reason without its run-specific part, so that a table states it once."""
    return reason.partition(", the run has")[0]
