"""Sentences that state the common result of most systems first, and then the exceptions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from tidemark.analysis.formatting import attempt, estimate_text, listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.runs.runset import RunSet, Series

NEGATIVE = re.compile(r"\b(?:not|no)\b")  # "does not grow for every system" could be read as "for some"
NOT_SHOWN = "These runs do not show it"
FEWEST_SHARED = 3  # at least this many are given as "3 of 4 systems"; fewer are named
type Valued = list[tuple[Series, Estimate]]


def conclusion(subject: str, pronoun: str, groups: Mapping[str, Sequence[str]]) -> str:
    """Return `the write time grows for 4 of 6 systems; it shows no trend for A and B`: no capital, no full stop.

    `groups` maps each predicate of `subject` to the names it applies to; every name is in exactly one group. The
    largest group comes first; groups of equal size keep their order.
    """
    filled = sorted(((said, names) for said, names in groups.items() if names), key=lambda group: -len(group[1]))
    if not filled:
        return ""
    total = sum(len(names) for _, names in filled)
    (main, most), *rest = filled
    if not rest:
        all_of_them = "any system" if NEGATIVE.search(main) else "every system"
        return f"{subject} {main} for {all_of_them if total > 1 else most[0]}"
    shared = len(most) >= FEWEST_SHARED and 2 * len(most) > total
    who = f"{len(most):,} of {total:,} systems" if shared else listed(most)
    return f"{subject} {main} for {who}; {pronoun} {listed([f'{said} for {listed(names)}' for said, names in rest])}"


class SentenceWriter:
    """Writer of sentences about runs. Studies subclass it, with one method per sentence that may raise NotAvailable."""

    study: ClassVar[str] = ""
    names: ClassVar[tuple[str, ...]] = ()  # sentences, each by the method of that name

    def __init__(self, measures: Measures) -> None:
        self.measures = measures

    @property
    def run_set(self) -> RunSet:
        return self.measures.run_set

    def sentences(self) -> dict[str, str]:
        """Return all sentences by their names in the study's chapter."""
        return {f"{self.study}-{name}": or_why(getattr(self, name.replace("-", "_"))) for name in self.names}

    def values(self, quantity: Metric, series: Sequence[Series], unit: str = "") -> str:
        """Return the value of each series that has one, with the series' title, smallest first.

        Raises NotAvailable if no series has one.
        """
        found = valued(partial(self.measures.value, quantity), series, unit or quantity.unit)
        return said(require(found, "no system has it"))


def valued(compute: Callable[[Series], BootstrapEstimate], series: Iterable[Series], unit: str = "") -> Valued:
    """Return those of `series` for which `compute` has a value, each with it in `unit`."""
    found = [(each, attempt(unit, partial(compute, each))) for each in series]
    return [(each, value) for each, value in found if isinstance(value, Estimate)]


def said(found: Valued, reverse: bool = False) -> str:
    """Return each value with the series' title, smallest first, or largest first if `reverse`."""
    sign = -1 if reverse else 1
    parts = sorted((sign * value.value, f"{estimate_text(value)} ({series.title})") for series, value in found)
    return listed([words for _, words in parts])


def or_why(write: Callable[[], str]) -> str:
    """Return the sentence from `write`, or the reason why the runs do not show it."""
    try:
        return write()
    except NotAvailable as absent:
        return f"{NOT_SHOWN}: {absent}."


def sentence(text: str) -> str:
    """Return `text` with a capital and a full stop; empty text stays empty."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def lowest_and_highest(subject: str, values: Sequence[tuple[float, str]]) -> str:
    """Return a sentence naming the lowest and highest of `values` (value, name); empty for fewer than two."""
    if len(values) < 2:
        return ""
    (_, lowest), (_, highest) = min(values), max(values)
    return f"{subject} is lowest for {lowest} and highest for {highest}."
