"""Declaration of a study's questions, which the first table of the report answers for each system.

    RATE = Question("rate-single", "Events/s", "events/s", hot(HARNESS_RATE), "...", mode="single", better=HIGHER)

A question covers all series of one system under one stack and one level of durability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import LOWER, Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.runs.names import MAIN
from tidemark.runs.runset import Series


@dataclass(frozen=True, slots=True)
class Asked:
    """One system under one stack: its series in all sweeps, and their measures."""

    measures: Measures
    system: str
    series: tuple[Series, ...]

    def main(self, mode: str | None) -> Series:
        """Return the series of the main configuration in a mode; raise Absent if there is none with runs."""
        found = [each for each in self.series if each.sweep == MAIN and mode in (None, each.mode)]
        if not found:
            raise Absent(f"not measured in the mode '{mode}'")
        if not found[0].runs:
            raise Absent(found[0].missing())
        return found[0]

    def first(self, is_meant: Callable[[Series], bool], otherwise: str) -> Series:
        """Return the first series for which `is_meant` holds; raise Absent, with a reason, if it has no runs."""
        found = next((each for each in self.series if is_meant(each)), None)
        if found is None or not found.runs:
            raise Absent(found.missing() if found else otherwise)
        return found


type Answering = Callable[[Asked, str | None], Replicates]


@dataclass(frozen=True, slots=True)
class Question:
    """A column of the table. If `signed`, systems are compared by difference, otherwise by ratio."""

    key: str
    title: str
    unit: str
    of: Answering
    hint: str  # a sentence describing the number and how it is counted
    mode: str | None = None
    better: str = LOWER
    signed: bool = False
    usual: bool = True  # shown by default
    note: Callable[[Asked, str | None], str] = lambda _asked, _mode: ""  # remark on one answer
    # Title of a headline question, which the report answers in words with the best or worst system; else None.
    asks: str | None = None
    extreme: str = "best"  # or "worst"
    none: str = "None was seen"  # answer to a signed question if no system is above zero

    def ask(self, asked: Asked) -> Replicates:
        """Return the answer in `unit`; raise Absent if there is none."""
        return self.of(asked, self.mode)

    def noted(self, asked: Asked) -> str:
        """Return the remark on the answer; empty if there is none."""
        try:
            return self.note(asked, self.mode)
        except Absent:
            return ""

    def worse(self, one: Replicates, other: Replicates) -> Replicates:
        """Return the factor (if `signed`, the difference) by which `one` is worse than `other`, or raise Absent."""
        first, second = (one, other) if self.better == LOWER else (other, one)
        if self.signed:
            return first.difference(second)
        if not (first.log and second.log):
            raise Absent("a quantity that may be zero has no ratio")
        return first.ratio(second)


def hot(quantity: Quantity) -> Answering:
    """Return a function that answers with `quantity` of the main configuration's hot runs."""

    def answer(asked: Asked, mode: str | None) -> Replicates:
        return asked.measures.hot(quantity, asked.main(mode))

    return answer


def of_series(quantity: Quantity, series: Callable[[Asked], Series], factor: float = 1.0) -> Answering:
    """Return a function that answers with `quantity` of the series that `series` selects, times `factor`."""

    def answer(asked: Asked, _mode: str | None) -> Replicates:
        found = asked.measures.value(quantity, series(asked))
        return found if factor == 1 else found.scaled(factor)

    return answer


def cold(quantity: Quantity) -> Answering:
    """Return a function that answers with `quantity` of the main configuration's run 0."""

    def answer(asked: Asked, mode: str | None) -> Replicates:
        return asked.measures.cold(quantity, asked.main(mode))

    return answer
