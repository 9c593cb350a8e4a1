"""Questions that the first table of the report answers for each system: what a study declares of them.

    RATE = Question("rate-single", "Events/s", "events/s", hot(HARNESS_RATE), "...", mode="single", better=HIGHER)

A question is asked of all series of one system under one stack and one promise of durability.
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
    """One system under one stack: its series, of all sweeps, and what measures them."""

    measures: Measures
    system: str
    series: tuple[Series, ...]

    def main(self, mode: str | None) -> Series:
        """The series of the main configuration in a mode; Absent where there is none with runs."""
        found = [each for each in self.series if each.sweep == MAIN and mode in (None, each.mode)]
        if not found:
            raise Absent(f"not measured in the mode '{mode}'")
        if not found[0].runs:
            raise Absent(found[0].missing())
        return found[0]


type Answering = Callable[[Asked, str | None], Replicates]


@dataclass(frozen=True, slots=True)
class Question:
    """A column of the table. Where it is `signed`, systems are compared by difference, and else by ratio."""

    key: str
    title: str
    unit: str
    of: Answering
    hint: str  # a sentence on what is counted, and how
    mode: str | None = None
    better: str = LOWER
    signed: bool = False
    usual: bool = True  # shown unless readers choose otherwise
    note: Callable[[Asked, str | None], str] = lambda _asked, _mode: ""  # what must be known of one answer
    # Of those that the report answers in words: what the best, or the worst, of the systems is called.
    asks: str | None = None
    extreme: str = "best"  # or "worst"
    none: str = "None was seen"  # the answer where a signed one is above zero for no system

    def ask(self, asked: Asked) -> Replicates:
        """The answer in `unit`; Absent where there is none."""
        return self.of(asked, self.mode)

    def noted(self, asked: Asked) -> str:
        """What must be known of the answer; nothing where there is none."""
        try:
            return self.note(asked, self.mode)
        except Absent:
            return ""

    def worse(self, one: Replicates, other: Replicates) -> Replicates:
        """How many times worse `one` is than `other`, or by how much; Absent where that cannot be said."""
        first, second = (one, other) if self.better == LOWER else (other, one)
        if self.signed:
            return first.difference(second)
        if not (first.log and second.log):
            raise Absent("a quantity that may be zero has no ratio")
        return first.ratio(second)


def hot(quantity: Quantity) -> Answering:
    """Of the hot runs of the main configuration."""

    def answer(asked: Asked, mode: str | None) -> Replicates:
        return asked.measures.hot(quantity, asked.main(mode))

    return answer


def cold(quantity: Quantity) -> Answering:
    """Of run 0 of the main configuration."""

    def answer(asked: Asked, mode: str | None) -> Replicates:
        return asked.measures.cold(quantity, asked.main(mode))

    return answer
