"""Figure 3 of the paper under two readings of its axis labels, each with a linear fit to the printed merge times.

The cost of a copy-on-write merge grows with the files it touches. With uniformly drawn rows, the share of files touched
follows from the number of updates per file. Under the labels as printed, all four points touch every file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.data.micro import expected_share

UPDATES = 0.5  # share of the labelled rows that are updates; the other half are inserts


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the labels, divided by `factor`: the figure's times, and the fit `fixed_s` + `whole_s` x share."""

    factor: float
    labels: tuple[int, ...]
    shares: tuple[float, ...]  # share of files touched, per point
    times_s: tuple[float, ...]
    fitted_s: tuple[float, ...]
    fixed_s: float
    whole_s: float  # added time if every file is touched

    @property
    def worst(self) -> float:
        """Largest distance of a point from the line, as a share of the point's time."""
        pairs = zip(self.times_s, self.fitted_s, strict=True)
        return max(abs(fitted - time) / time for time, fitted in pairs)

    @property
    def explained(self) -> float:
        """Share of the variance of the times that the line explains."""
        times = np.array(self.times_s)
        left = float(((times - np.array(self.fitted_s)) ** 2).sum())
        return 1 - left / float(((times - times.mean()) ** 2).sum())


def reading(factor: float) -> Reading:
    """Return a least-squares fit of the figure's copy-on-write merge times, with its labels divided by `factor`."""
    points = published.along(3, "merge", published.COPY)
    shares = np.array([expected_share(published.FILES, UPDATES * label / factor) for label, _ in points])
    times = np.array([seconds for _, seconds in points])
    whole, fixed = np.polyfit(shares, times, 1)
    return Reading(
        factor=factor,
        labels=tuple(label for label, _ in points),
        shares=tuple(map(float, shares)),
        times_s=tuple(map(float, times)),
        fitted_s=tuple(map(float, fixed + whole * shares)),
        fixed_s=float(fixed),
        whole_s=float(whole),
    )
