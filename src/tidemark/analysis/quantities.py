"""What a quantity is: its name, its unit, and how it is had of a run. Which ones there are is what studies declare.

A study's file of quantities:

    WRITE_MEDIAN = Quantity("write median", "ms", "Median write", Quantile("write_ns", 0.5), better=LOWER)
    FLUSH = Quantity("flush", "s", "Flush", _flush, better=LOWER)          # _flush: a function of a Run
    QUANTITIES = Quantities((WRITE_MEDIAN, FLUSH), headline=(WRITE_MEDIAN,), code=("studies/streams/quantities.py",))

Processes hand quantities to one another, so that functions in them stand at the top of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.statistics import Replicates, interquartile_range, quantile
from tidemark.runs.run import Run
from tidemark.runs.samples import Groups

LOWER, HIGHER = "lower", "higher"  # what is better
MILLISECONDS = 1e-6  # of nanoseconds


class Absent(Exception):
    """A run or series cannot say this, for the reason that is the message. Tables show it as missing."""


def sum_of_groups(groups: Groups, names: Container[str]) -> NDArray[np.float64]:
    """What the groups of processes in `names` had together, a value a second; Absent where there is none."""
    found = [np.nan_to_num(values) for name, values in groups if name in names]
    if not found or not len(found[0]):
        raise Absent("the window has no whole second")
    whole: NDArray[np.float64] = np.sum(found, axis=0)
    return whole


@dataclass(frozen=True, slots=True)
class Quantile:
    """Of one of the columns of operations.parquet; `factor` brings it to the quantity's unit."""

    column: str
    probability: float
    factor: float = MILLISECONDS

    def why_not(self, run: Run) -> str | None:
        """Why `run` has too few operations for it: on average one must lie beyond."""
        least = round(1 / (1 - self.probability))
        found = run.manifest.operations
        return None if found >= least else f"needs {least:,} operations, the run has {found:,}"

    def of(self, sample: BlockSample) -> Replicates:
        return quantile(sample, self.probability).scaled(self.factor)


@dataclass(frozen=True, slots=True)
class Range:
    """The interquartile range of a column of operations.parquet."""

    column: str
    factor: float = MILLISECONDS

    def why_not(self, _run: Run) -> str | None:
        return None

    def of(self, sample: BlockSample) -> Replicates:
        return interquartile_range(sample).scaled(self.factor)


@dataclass(frozen=True, slots=True)
class OfSeconds:
    """A summary of what the sampler saw of the machine in each second of a run: "disk" in bytes/s, "cpu" in percent."""

    source: str
    summary: Callable[[BlockSample], Replicates]
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Relative:
    """Another quantity as a share of its `scale` in the same run, so that systems compare."""

    quantity: Quantity


type How = Quantile | Range | OfSeconds | Relative | Callable[[Run], Replicates]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What can be asked of a run: a number with its interval, or Absent.

    `name` is what claims and kept results call it, `title` what headings do, and `key` what columns of CSV and JSON
    begin with where several quantities are set side by side. One that is `signed` may be zero or less: two of it are
    compared by their difference and not by a ratio.
    """

    name: str
    unit: str
    title: str
    how: How = field(compare=False, repr=False)
    better: str | None = None  # LOWER or HIGHER
    key: str = ""
    subjects: str = ""  # what a verdict on it speaks of, in the plural: "Writes" are ...
    words: tuple[str, str] = ("higher", "lower")  # ... what a ratio above 1, and one below, calls them
    signed: bool = False
    scale: Quantity | None = None  # what it grows with from system to system: how units differ is learnt by its share
    heading_unit: str | None = None  # beside a title that says the rest of the unit

    @property
    def beside_title(self) -> str:
        """The unit that stands beside the title."""
        return self.unit if self.heading_unit is None else self.heading_unit

    @property
    def noun(self) -> str:
        """The title inside a sentence."""
        return self.title if self.title[1:2].isupper() else self.title[:1].lower() + self.title[1:]

    @property
    def shown_unit(self) -> str:
        """The unit as people read it: of shares percent."""
        return self.unit.replace("1/", "% per ", 1) if self.unit.startswith("1/") else self.unit

    def as_shown(self, replicates: Replicates) -> Replicates:
        """`replicates` of it in `shown_unit`."""
        return replicates.scaled(100) if self.unit.startswith("1/") else replicates


@dataclass(frozen=True, slots=True)
class Quantities:
    """The quantities of one study.

    `headline` are the few that results set side by side; verdicts are on the first of them. `code` names the files
    and rooms of the package that decide these quantities beside analysis and runs: what was resampled by other code
    is resampled anew.
    """

    all: tuple[Quantity, ...]
    headline: tuple[Quantity, ...]
    code: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Quantity]:
        return iter(self.all)

    def __post_init__(self) -> None:
        found: dict[str, Quantity] = {}
        for each in self.all:
            if found.setdefault(each.name, each) != each:
                raise ValueError(f"two quantities are called '{each.name}'")
        if not self.headline or self.leading.signed or not self.leading.subjects:
            raise ValueError("the first quantity of a headline carries verdicts: it must have a ratio and subjects")

    @property
    def leading(self) -> Quantity:
        """The one that verdicts are on."""
        return self.headline[0]

    @property
    def names(self) -> dict[str, Quantity]:
        return {each.name: each for each in self.all}

    def relative(self, quantity: Quantity) -> Quantity:
        """The share of its scale, where that is declared, so that systems and machines compare; else itself."""
        shares = (each for each in self.all if isinstance(each.how, Relative) and each.how.quantity == quantity)
        return next(shares, quantity)
