"""Numbers, estimates and what intervals say, as people read them in tables, figures, claims, paper and report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemark.analysis.quantities import Absent
from tidemark.analysis.statistics import Estimate, Replicates


@dataclass(frozen=True, slots=True)
class Missing:
    """A cell that has no value, and why."""

    reason: str

    def __str__(self) -> str:
        return f"missing: {self.reason}"


type Cell = Estimate | Missing | str | int | float | None


def attempt(unit: str, compute: Callable[[], Replicates]) -> Estimate | Missing:
    """What `compute` gives as a number in `unit`, or the reason why there is nothing."""
    try:
        return compute().estimate(unit)
    except Absent as absent:
        return Missing(str(absent))


# Numbers


def number(value: float, digits: int = 4) -> str:
    """`value` with `digits` significant digits and thousands separated; never in powers of ten."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def shown(cell: Cell, unit: str = "", digits: int = 4) -> str:
    """A cell as people read it, numbers with `digits` significant digits; of a share of next to nothing, that it is."""
    if cell is None:
        return ""
    if isinstance(cell, Estimate):
        if cell.low is None or cell.high is None:
            return number(cell.value, digits)
        # The ends are as exact as the value, no more: digits beyond its last one would be noise.
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


def estimate_text(estimate: Estimate, digits: int = 3) -> str:
    """`12.3 × [11.9, 12.8]`: the value, its unit and its interval with as many decimals."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if not math.isfinite(value):
        return "not a number"
    size = math.floor(math.log10(abs(value))) if value else 0
    decimals = min(max(digits, 4 if size >= 3 else 0) - 1 - size, 6)

    def spelt(number: float) -> str:
        return f"{round(number, decimals):,.{max(decimals, 0)}f}"

    shown = with_unit(spelt(value), estimate.unit)
    return shown if low is None or high is None else f"{shown} [{spelt(low)}, {spelt(high)}]"


# What an interval says; never what its point says


def against(ratio: Estimate, larger: str, smaller: str, same: str) -> str:
    """The word for a ratio that its interval allows."""
    return larger if ratio.is_above(1) else smaller if ratio.is_below(1) else same


def comparison(ratio: Estimate | Missing, above: str = "slower", below: str = "faster") -> Cell:
    """What the interval of a ratio says, in the words for one above and below 1: of times unless told."""
    if isinstance(ratio, Missing) or ratio.low is None:
        return None
    return against(ratio, above, below, "no difference seen")


def growth_verdict(slope: Estimate | Missing) -> Cell:
    """What the interval of a slope says."""
    if isinstance(slope, Missing) or slope.low is None:
        return None
    return "grows" if slope.is_above(0) else "shrinks" if slope.is_below(0) else "no change seen"


# Sentences


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def brief(reason: str) -> str:
    """A reason without what differs from run to run, so that a table gives it once."""
    return reason.partition(", the run has")[0]
