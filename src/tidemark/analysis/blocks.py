"""Block bootstrap of one run's samples, fast for millions of samples.

A run of n samples is cut into at most `CELLS` cells of consecutive samples, and each cell is summarised by its
histogram on a fixed grid of bins. A resampled run is then a sum of cells: the counts of all replicates are one
matrix product, independent of n. Blocks consist of complete cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[Any]  # integers or floats
REPLICATES = 1000
CELLS = 256
FEWEST_BLOCKS = 6


def bin_edges(samples: Numbers) -> Floats:
    """Return bin edges at quantiles of `samples`, dense in the upper tail to separate p99.9 from p99.

    A value shared by many samples (the zero of idle seconds) gets a separate bin of zero width.
    """
    body = np.linspace(0.0, 0.9, 151)
    tail = 1.0 - np.geomspace(0.1, 1e-5, 121)[1:]
    edges = np.quantile(samples, np.concatenate([body, tail, [1.0]]), method="nearest")
    values, counts = np.unique(edges.astype(np.float64), return_counts=True)
    return np.union1d(values, np.nextafter(values[counts > 1], np.inf))


@dataclass(frozen=True, slots=True)
class BlockSample:
    """Samples of one run in time order, with REPLICATES resampled histograms.

    `cumulative` and `resampled` are cumulative shares per bin: of the samples, shape (bins,), and of each
    replicate, shape (REPLICATES, bins). `degrees` is the number of blocks minus one.
    """

    samples: Numbers
    edges: Floats
    cumulative: Floats
    resampled: Floats
    degrees: float

    @property
    def n(self) -> int:
        return len(self.samples)

    @classmethod
    def prepare(cls, samples: Numbers, rng: np.random.Generator) -> BlockSample:
        """Resample the `samples` of one run, in the order they were measured; raise ValueError if there are none."""
        if len(samples) == 0:
            raise ValueError("no samples")
        edges = bin_edges(samples)
        cells = min(len(samples), CELLS)
        cell = (np.arange(len(samples)) * cells) // len(samples)
        bins = np.clip(np.searchsorted(edges, samples, side="right") - 1, 0, len(edges) - 1)
        flat = np.bincount(cell * len(edges) + bins, minlength=cells * len(edges))
        counts = flat.reshape(cells, len(edges)).astype(np.float32)
        cumulative = _shares(counts.sum(axis=0))
        rank = counts @ (cumulative - np.diff(cumulative, prepend=0.0) / 2) / counts.sum(axis=1)
        length = block_length(rank)
        drawn = draw_cells(cells, length, rng) @ counts
        return cls(samples, edges, cumulative, _shares(drawn), max(cells / length - 1, 1.0))

    def quantile(self, probability: float) -> tuple[float, Floats]:
        """Return the exact quantile of the samples, and that of each replicate to within a bin; shape (REPLICATES,)."""
        value = float(np.quantile(self.samples, probability))
        draws = self._inverse(self.resampled, probability)
        binned = float(self._inverse(self.cumulative[None, :], probability)[0])
        # The replicates have the same binning error, so it is scaled out. In a sparse tail there is none: the edges
        # are the samples themselves, and a step between two of them is real.
        if binned > 0 and abs(value / binned - 1) < 0.02:
            draws = draws * (value / binned)
        return value, draws

    def _inverse(self, cumulative: Floats, probability: float) -> Floats:
        index = np.minimum((cumulative < probability).sum(axis=1), len(self.edges) - 1)
        rows = np.arange(len(cumulative))
        before = np.where(index > 0, cumulative[rows, index - 1], 0.0)
        share = cumulative[rows, index] - before
        within = np.where(share > 0, (probability - before) / np.where(share > 0, share, 1.0), 0.0)
        upper = self.edges[np.minimum(index + 1, len(self.edges) - 1)]
        lower = self.edges[index]
        width = np.where(upper - lower > np.spacing(lower), upper - lower, 0.0)
        values: Floats = lower + np.clip(within, 0.0, 1.0) * width
        return values


@dataclass(frozen=True, slots=True)
class Ranks:
    """Samples of one run prepared for comparison with other runs: computed once for all pairs with this run.

    `below` are the cumulative shares at the lower end of each bin and at the upper end of the last; `share` are the
    shares of the bins. Shapes (bins + 1, 1 + REPLICATES) and (bins, 1 + REPLICATES): the samples, then the replicates.
    """

    ordered: Numbers
    edges: Floats
    below: NDArray[np.float32]
    share: NDArray[np.float32]
    degrees: float

    @classmethod
    def of(cls, sample: BlockSample) -> Ranks:
        ends = np.zeros((len(sample.edges) + 1, 1 + len(sample.resampled)), np.float32)
        ends[1:, 0], ends[1:, 1:] = sample.cumulative, sample.resampled.T
        return cls(np.sort(sample.samples), sample.edges, ends, np.diff(ends, axis=0), sample.degrees)

    @property
    def n(self) -> int:
        return len(self.ordered)

    def dominance(self, other: Ranks) -> tuple[float, Floats]:
        """Return P(self > other) - P(self < other), exact, and of each replicate; shape (REPLICATES,).

        Each run has its own bins, within which samples are assumed to be uniform. The replicates are then shifted by
        the error of that assumption for the samples.
        """
        below = np.searchsorted(other.ordered, self.ordered, side="left").sum(dtype=np.float64)
        above = other.n * self.n - np.searchsorted(other.ordered, self.ordered, side="right").sum(dtype=np.float64)
        value = float((below - above) / (other.n * self.n))
        ends = np.append(other.edges, np.nextafter(other.edges[-1], np.inf))
        bins = np.searchsorted(self.edges, ends, side="left") - 1  # bin of each end; -1 is before the first
        upper = np.append(self.edges[1:], np.nextafter(self.edges[-1], np.inf))[bins]
        lower = self.edges[bins]
        within = np.where(bins < 0, 0.0, np.minimum((ends - lower) / (upper - lower), 1.0)).astype(np.float32)
        before = self.below[np.maximum(bins, 0)]
        smaller = before + within[:, None] * (self.below[bins + 1] - before)  # share of `self` below each end
        binned = 1.0 - np.einsum("ij,ij->j", other.share, smaller[:-1] + smaller[1:], dtype=np.float64)
        return value, np.clip(binned[1:] + (value - binned[0]), -1.0, 1.0)


def _shares(counts: Numbers) -> Floats:
    cumulative = np.cumsum(counts, axis=-1, dtype=np.float64)
    shares: Floats = cumulative / cumulative[..., -1:]
    return shares


def resample(first: Numbers, second: Numbers, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """Return sums of both arrays over the same resampled blocks, each (REPLICATES,), and degrees of freedom."""
    cells = min(len(first), CELLS)
    starts = (np.arange(cells) * len(first)) // cells
    upper = np.add.reduceat(first.astype(np.float64), starts)
    lower = np.add.reduceat(second.astype(np.float64), starts)
    length = block_length(lower / upper)
    weights = draw_cells(cells, length, rng).astype(np.float64)
    return weights @ upper, weights @ lower, max(cells / length - 1, 1.0)


def resampled_residuals(residuals: Floats, rng: np.random.Generator) -> Floats:
    """Return resampled `residuals`, concatenated from moving blocks; shape (REPLICATES, len(residuals))."""
    n = len(residuals)
    length = block_length(residuals)
    starts = rng.integers(0, n, size=(REPLICATES, math.ceil(n / length)))
    places = (starts[:, :, None] + np.arange(length)) % n
    redrawn: Floats = residuals[places.reshape(REPLICATES, -1)[:, :n]]
    return redrawn


def draw_cells(cells: int, length: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the count of each cell in each replicate, shape (REPLICATES, cells). Each block of `length` cells is
    drawn from within a tenth of the run (or five blocks) of the position that it fills."""
    slots = np.arange(0, cells, length)
    reach = max(5 * length, cells // 10, 5)
    last = max(cells - length, 0)
    centre = np.minimum(slots, last)
    low = np.clip(centre - reach, 0, max(last - 2 * reach, 0))
    high = np.minimum(low + 2 * reach, last)
    starts = rng.integers(low, high + 1, size=(REPLICATES, len(slots)))
    rows = np.arange(REPLICATES)[:, None] * (cells + 1)
    size = REPLICATES * (cells + 1)
    marks = np.bincount((rows + starts).ravel(), minlength=size)
    if length == 1:
        return marks.reshape(REPLICATES, cells + 1)[:, :-1].astype(np.float32)
    marks -= np.bincount((rows + np.minimum(starts + length, cells)).ravel(), minlength=size)
    weights: NDArray[np.float32] = np.cumsum(marks.reshape(REPLICATES, cells + 1)[:, :-1], axis=1, dtype=np.float32)
    return weights


def block_length(series: Floats) -> int:
    """Return the block length for the mean of `series`: Politis and White's rule for moving blocks.

    A cubic trend is subtracted first, because blocks need not preserve a slow change of level.
    """
    n = len(series)
    longest = max(n // FEWEST_BLOCKS, 1)
    if n < 8:
        return 1
    x = np.linspace(-1.0, 1.0, n)
    centred = series - np.polynomial.legendre.legval(x, np.polynomial.legendre.legfit(x, series, 3))
    variance = float(centred @ centred) / n
    if variance <= 0 or not math.isfinite(variance):
        return 1
    spectrum = np.fft.rfft(centred, 2 * n)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2)[:n] / n
    quiet = max(5, math.ceil(math.sqrt(math.log10(n))))
    small = np.abs(covariance[1:] / variance) < 2 * math.sqrt(math.log10(n) / n)
    lag = next((k for k in range(len(small) - quiet) if small[k : k + quiet].all()), n // 4)
    bandwidth = max(2 * lag, 1)
    lags = np.arange(1, min(bandwidth, n - 1) + 1)
    window = np.where(lags / bandwidth <= 0.5, 1.0, 2 * (1 - lags / bandwidth))
    density = variance + 2 * float(window @ covariance[lags])
    slope = 2 * float(window @ (lags * covariance[lags]))
    if density <= 0:
        return 1
    best = (2 * slope**2 / (4 / 3 * density**2)) ** (1 / 3) * n ** (1 / 3)
    return int(min(max(math.ceil(best), 1), longest))
