"""Names of lines where they end, right of axes whose scale is logarithmic, moved apart where ends lie close."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from tidemark.results.figures import style

LEAST = 0.13  # of the axes' height, between two names


@dataclass(frozen=True, slots=True, order=True)
class End:
    """Where the line of `title` ends, in the units of the axes."""

    value: float
    title: str
    colour: str
    x: float


def name_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Write each name beside its end, in the order of the ends, with a thin line to it."""
    low, high = axes.get_ylim()
    ordered = sorted(ends)
    heights = apart([math.log(end.value / low) / math.log(high / low) for end in ordered], LEAST)
    for end, height in zip(ordered, heights, strict=True):
        axes.annotate(
            style.few_lines(end.title), (end.x, end.value), xytext=(1.06, low * (high / low) ** height),
            textcoords=axes.get_yaxis_transform(), fontsize=style.SMALL, color=style.ink(end.colour),
            fontweight="bold", va="center",
            arrowprops={"arrowstyle": "-", "color": end.colour, "linewidth": 0.5, "shrinkB": 3},
        )  # fmt: skip


def apart(heights: Sequence[float], least: float) -> list[float]:
    """`heights` (ascending) moved as little as it takes for each to be `least` above the one before."""
    placed = list(heights)
    for _ in range(100):
        for lower in range(len(placed) - 1):
            overlap = least - (placed[lower + 1] - placed[lower])
            if overlap > 1e-6:
                placed[lower] -= overlap / 2
                placed[lower + 1] += overlap / 2
    return placed
