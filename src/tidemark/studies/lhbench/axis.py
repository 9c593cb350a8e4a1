"""Figure 3 of the paper under two readings of its axis, and what each says of its own times.

A merge that copies files costs what it touches: with rows drawn uniformly, the share of files touched follows from how
many rows there are to a file. The labels, taken as they stand, put all four points where every file is touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.data.micro import expected_share

UPDATES = 0.5  # of the labelled rows; the other half is inserted


@dataclass(frozen=True, slots=True)
class Reading:
    """`factor`: by which labels are too large. Times are the figure's, fitted are `fixed_s` + `whole_s` x share."""

    factor: float
    labels: tuple[int, ...]
    shares: tuple[float, ...]  # of the files that are touched
    times_s: tuple[float, ...]
    fitted_s: tuple[float, ...]
    fixed_s: float
    whole_s: float  # what touching every file adds

    @property
    def worst(self) -> float:
        """The largest distance of a point from the line, as a share of its own time."""
        pairs = zip(self.times_s, self.fitted_s, strict=True)
        return max(abs(fitted - time) / time for time, fitted in pairs)

    @property
    def explained(self) -> float:
        """The share of the variance of times that the line explains."""
        times = np.array(self.times_s)
        left = float(((times - np.array(self.fitted_s)) ** 2).sum())
        return 1 - left / float(((times - times.mean()) ** 2).sum())


def reading(factor: float) -> Reading:
    """The times of copy-on-write in the figure, its labels divided by `factor`, by least squares."""
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
