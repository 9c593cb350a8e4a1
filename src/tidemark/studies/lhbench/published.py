"""Numbers that LHBench's paper prints: its four figures (published.csv), its machines and its software.

A number is printed on its bar (`printed`) or was read off the figure (`read off`): merges to 5 s, slowdowns to 5 %,
totals of figure 4 to 10 %. The paper measured loads and merges once and reports no variance.

Figure 3 is read in two ways of its axis labels, each with a linear fit to the printed merge times. The cost of a
copy-on-write merge grows with the files it touches. With uniformly drawn rows, the share of files touched follows from
the number of updates per file. Under the labels as printed, all four points touch every file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.publication import Publication, printed_number, printed_rows, the_row
from tidemark.studies.lhbench.data.micro import expected_share

DELTA, HUDI, ICEBERG = "Delta", "Hudi", "Iceberg"
COPY, IN_READ = "Iceberg CoW 1.1.0", "Iceberg MoR 1.1.0"  # lines of figure 3
LIKE = {DELTA: "delta-on-spark", ICEBERG: "iceberg-on-spark"}  # Tidemark's systems, in the figure on many files
PRINTED = "printed"
SCALE = 3000  # scale factor of load and queries; the paper shows the total and four queries
FILES = 1_000  # files of the table in figure 3
LABELLED = 100  # factor by which the labels of figure 3 are suspected to be too large
UPDATES = 0.5  # share of the labelled rows that are updates; the other half are inserts
# Error bounds of a figure's numbers: rounding to whole units if printed; seconds, or a share by figure, if read off.
ROUNDED, SECONDS_BY_EYE, SHARE_BY_EYE = 0.5, 5.0, {3: 0.05, 4: 0.10}
PUBLICATION = Publication.read(__file__)


@dataclass(frozen=True, slots=True)
class Printed:
    """One number of a figure; `x` is its position on the axis, or None if the figure has no axis."""

    figure: int
    panel: str
    system: str
    x: int | None
    value: float
    unit: str
    tag: str


@cache
def numbers() -> tuple[Printed, ...]:
    """Return all printed numbers, figure by figure."""
    return printed_rows(Path(__file__).with_name("published.csv"), Printed)


def printed(figure: int, panel: str, system: str, x: int | None = None) -> BootstrapEstimate:
    """Return one number with draws over its rounding or reading error; KeyError if the paper has none."""
    each = the_row(numbers(), figure=figure, panel=panel, system=system, x=x)
    by_eye = SECONDS_BY_EYE if each.unit == "s" else SHARE_BY_EYE.get(figure, 0.0) * each.value
    off = ROUNDED if each.tag == PRINTED else by_eye
    low, high = max(each.value - off, 0.1 * each.value), each.value + off
    return printed_number(each.value, low, high, "printed", figure, panel, system, x)


def printed_over(figure: int, panel: str, line: str, beside: str, x: int | None = None) -> BootstrapEstimate:
    """Return the ratio of two numbers in one panel of a figure."""
    return printed(figure, panel, line, x).ratio(printed(figure, panel, beside, x))


def along(figure: int, panel: str, system: str) -> list[tuple[int, float]]:
    """Return the (x, value) pairs of a system along the axis of a figure."""
    found = [each for each in numbers() if (each.figure, each.panel, each.system) == (figure, panel, system)]
    return [(each.x, each.value) for each in found if each.x is not None]


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the labels: the figure's times, and the fit `fixed_s` + `whole_s` x share."""

    shares: tuple[float, ...]  # share of files touched, per point
    times_s: tuple[float, ...]
    fitted_s: tuple[float, ...]
    fixed_s: float
    whole_s: float  # added time if every file is touched

    @property
    def worst(self) -> float:
        """Largest distance of a point from the line, as a share of the point's time."""
        return max(abs(fitted - time) / time for time, fitted in zip(self.times_s, self.fitted_s, strict=True))


def reading(factor: float) -> Reading:
    """Return a least-squares fit of the figure's copy-on-write merge times, with its labels divided by `factor`."""
    points = along(3, "merge", COPY)
    shares = np.array([expected_share(FILES, UPDATES * label / factor) for label, _ in points])
    times = np.array([seconds for _, seconds in points])
    whole, fixed = np.polyfit(shares, times, 1)
    return Reading(
        shares=tuple(map(float, shares)),
        times_s=tuple(map(float, times)),
        fitted_s=tuple(map(float, fixed + whole * shares)),
        fixed_s=float(fixed),
        whole_s=float(whole),
    )
