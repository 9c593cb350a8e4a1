"""Samples and runs with known properties, for tests of estimators."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.statistics import BootstrapEstimate, median

Floats = NDArray[np.float64]


def noise(n: int, autocorrelation: float, rng: np.random.Generator) -> Floats:
    """Return `n` standard normal samples whose neighbours have the given correlation."""
    scale = math.sqrt(1 - autocorrelation**2)
    drawn: Floats = signal.lfilter([1.0], [1.0, -autocorrelation], rng.normal(size=n + 300) * scale)[300:]
    return drawn


def sample(values: Floats, seed: int = 0) -> BlockSample:
    return BlockSample.prepare(values, np.random.default_rng(seed))


def runs_of(level: float, spread: float, count: int, rng: np.random.Generator, n: int = 400) -> list[BootstrapEstimate]:
    """Return the medians of `count` runs that differ by `spread` (standard deviation of the logarithm)."""
    made = []
    for _ in range(count):
        values = level * math.exp(spread * rng.normal()) * np.exp(0.1 * noise(n, 0.3, rng))
        made.append(median(BlockSample.prepare(values, rng)))
    return made
