"""Definition of a quantity: its name, its unit, and its computation from a run. Studies declare their quantities.

Example of a study's quantities file:

    WRITE_MEDIAN = Metric("write median", "ms", "Median write", Quantile("write_ns", 0.5), better=LOWER)
    FLUSH = Metric("flush", "s", "Flush", _flush, better=LOWER)          # _flush: a function of a Run
    QUANTITIES = MetricSet((WRITE_MEDIAN, FLUSH), headline=(WRITE_MEDIAN,), code=("studies/streams/metrics.py",))

Metrics are passed between processes, so their functions must be defined at module level.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.statistics import BootstrapEstimate, interquartile_range, quantile, quantile_of_windows
from tidemark.runs.run import Groups, Run

LOWER, HIGHER = "lower", "higher"  # the better direction
MILLISECONDS = 1e-6  # per nanosecond
BEYOND = 10  # samples that must lie beyond a quantile of a tail: fewer say little of where it is


class NotAvailable(Exception):
    """Raised if a run or series does not have a value; the message is the reason. Tables show it as missing."""


def require[T](condition: T | None, otherwise: str) -> T:
    """Return `condition`; raise NotAvailable, with the reason `otherwise`, if it is None, false or empty."""
    if not condition:
        raise NotAvailable(otherwise)
    return condition


class NotReached(NotAvailable):
    """Raised if a window ended before the commits that a value is about."""


def enough(reached: int, runs: int) -> bool:
    """Return True unless more than one run in ten ended before some commits: those that reached them are the faster."""
    return 10 * reached >= 9 * runs


def checked_ratio(first: BootstrapEstimate, second: BootstrapEstimate) -> BootstrapEstimate:
    """Return `first` over `second`; raise NotAvailable if one of them may be zero."""
    if not (first.log and second.log):
        raise NotAvailable("a quantity that may be zero has no ratio")
    return first.ratio(second)


def sum_of_groups(groups: Groups, names: Container[str]) -> NDArray[np.float64]:
    """Return the sum over the process groups in `names`, one value per second; raise NotAvailable if there is none."""
    found = [np.nan_to_num(values) for name, values in groups if name in names]
    if not found or not len(found[0]):
        raise NotAvailable("the window has no whole second")
    whole: NDArray[np.float64] = np.sum(found, axis=0)
    return whole


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a column of operations.parquet; `factor` converts it to the quantity's unit."""

    column: str
    probability: float
    factor: float = MILLISECONDS

    def why_not(self, run: Run) -> str | None:
        """Return why `run` has too few operations for the quantile, or None."""
        least = _fewest(self.probability)
        found = run.manifest.operations
        return None if found >= least else f"needs {least:,} operations, the run has {found:,}"

    def of(self, sample: BlockSample) -> BootstrapEstimate:
        return quantile(sample, self.probability).scaled(self.factor)


def _fewest(probability: float) -> int:
    """Return how many samples a quantile needs: two for a median, BEYOND of them beyond one of the tail."""
    return round((BEYOND if probability > 0.5 else 1) / (1 - probability))


@dataclass(frozen=True, slots=True)
class PooledQuantile:
    """A quantile of some operations of all hot runs of a series together, each of which has too few for its own.

    `first` and `last` are their ordinals in a run, from 1; `factor` converts the column to the quantity's unit.
    """

    column: str
    probability: float
    first: int
    last: int
    factor: float = MILLISECONDS

    def of(self, runs: Sequence[Run], rng: np.random.Generator) -> BootstrapEstimate:
        """Return it, with an interval that covers how runs differ; raise NotAvailable if there are too few samples."""
        reached = [run for run in runs if run.manifest.operations >= self.last]
        if not enough(len(reached), len(runs)):
            raise NotReached(f"{len(runs) - len(reached)} of {len(runs)} hot runs ended before operation {self.last:,}")
        found, least = len(reached) * (self.last - self.first + 1), _fewest(self.probability)
        if found < least:
            raise NotAvailable(f"needs {least:,} operations, the hot runs have {found:,} from {self.first:,} on")
        windows = np.stack([run.column(self.column)[self.first - 1 : self.last] for run in reached])
        return quantile_of_windows(np.maximum(windows, 1), self.probability, rng).scaled(self.factor)


@dataclass(frozen=True, slots=True)
class InterquartileRange:
    """The interquartile range of a column of operations.parquet."""

    column: str
    factor: float = MILLISECONDS

    def why_not(self, _run: Run) -> str | None:
        return None

    def of(self, sample: BlockSample) -> BootstrapEstimate:
        return interquartile_range(sample).scaled(self.factor)


@dataclass(frozen=True, slots=True)
class PerSecond:
    """A summary of the sampler's machine metrics per second of a run: "disk" in bytes/s, "cpu" in percent."""

    source: str
    summary: Callable[[BlockSample], BootstrapEstimate]
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Share:
    """Another quantity as a share of its `scale` in the same run, which makes systems comparable."""

    quantity: Metric


type How = Quantile | PooledQuantile | InterquartileRange | PerSecond | Share | Callable[[Run], BootstrapEstimate]


@dataclass(frozen=True, slots=True)
class Metric:
    """Property of a run: a number with its interval, or NotAvailable.

    `name` identifies it in claims and stored results, `title` in headings, and `key` (by default the name) prefixes its
    columns in CSV and JSON with several quantities side by side. A `signed` quantity may be zero or negative: its
    values are compared by their difference, not by a ratio.
    """

    name: str
    unit: str
    title: str
    how: How = field(compare=False, repr=False)
    better: str | None = None  # LOWER or HIGHER
    key: str = ""
    subjects: str = ""  # plural subject of its verdicts: "Writes" are ...
    words: tuple[str, str] = ("higher", "lower")  # ... the words for a ratio above and below 1
    signed: bool = False
    scale: Metric | None = None  # quantity it grows with across systems; unit variance is estimated on the share
    heading_unit: str | None = None  # next to a title that contains the rest of the unit

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or self.name.replace(" ", "_"))

    @property
    def beside_title(self) -> str:
        """Unit shown next to the title."""
        return self.unit if self.heading_unit is None else self.heading_unit

    @property
    def noun(self) -> str:
        """Title as used inside a sentence."""
        return self.title if self.title[1:2].isupper() else self.title[:1].lower() + self.title[1:]

    @property
    def shown_unit(self) -> str:
        """Unit for display: percent for shares."""
        return self.unit.replace("1/", "% per ", 1) if self.unit.startswith("1/") else self.unit

    def as_shown(self, replicates: BootstrapEstimate) -> BootstrapEstimate:
        """Return `replicates` of this quantity in `shown_unit`."""
        return replicates.scaled(100) if self.unit.startswith("1/") else replicates


@dataclass(frozen=True, slots=True)
class MetricSet:
    """The metrics of one study.

    `headline` lists the few that results show side by side; verdicts use the first of them. `code` names the files
    and subpackages that determine these quantities in addition to analysis and runs: results resampled by a
    different version of this code are computed again. `same_work` is a time that depends on the machine more than on
    the system, by which two measurements are compared.
    """

    all: tuple[Metric, ...]
    headline: tuple[Metric, ...]
    code: tuple[str, ...] = ()
    same_work: Metric | None = None

    def __iter__(self) -> Iterator[Metric]:
        return iter(self.all)

    def __post_init__(self) -> None:
        found: dict[str, Metric] = {}
        for each in self.all:
            if found.setdefault(each.name, each) != each:
                raise ValueError(f"two quantities are called '{each.name}'")
        if not self.headline or self.leading.signed or not self.leading.subjects:
            raise ValueError("the first quantity of a headline carries verdicts: it must have a ratio and subjects")

    @property
    def leading(self) -> Metric:
        """Metric that verdicts use."""
        return self.headline[0]

    @property
    def names(self) -> dict[str, Metric]:
        return {each.name: each for each in self.all}

    def relative(self, quantity: Metric) -> Metric:
        """Return its share of its scale, if declared, for comparing systems and machines; else `quantity` itself."""
        shares = (each for each in self.all if isinstance(each.how, Share) and each.how.quantity == quantity)
        return next(shares, quantity)
