"""Points of several systems against a setting that was varied, with a fitted line each, and its slope in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.analysis.slopes import intercept_of, slope_of
from tidemark.analysis.statistics import Replicates
from tidemark.results.figures import style
from tidemark.results.figures.studio import Drawn, Studio
from tidemark.runs.run import Run

LINE = 0.105  # of the picture's height: a line of the legend
MARKS = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True, slots=True)
class Fitted:
    """One system: `points` are settings and quantities on the linear scale, in order."""

    title: str
    colour: str
    points: Sequence[tuple[float, Replicates]]


def fitted(
    studio: Studio, title: str, systems: Sequence[Fitted], labels: tuple[str, str], notes: Sequence[str],
    runs: Sequence[Run],
) -> Drawn:  # fmt: skip
    """`labels` are of the setting and of the quantity; the vertical axis begins at 0."""
    made = style.frame(style.PAGE, 2.3)
    axes = made.axes(0.55, 2.35)
    for place, each in enumerate(systems):
        name, colour, mark = each.title, each.colour, MARKS[place % len(MARKS)]
        for setting, quantity in each.points:
            estimate = quantity.estimate("")
            axes.plot([setting], [estimate.value], mark, color=colour, markersize=4)
            if estimate.low is not None and estimate.high is not None:
                axes.plot([setting, setting], [estimate.low, estimate.high], color=colour, linewidth=0.9)
        if len(each.points) > 1:
            slope = slope_of(each.points).value
            start, ends = intercept_of(each.points, slope), [each.points[0][0], each.points[-1][0]]
            axes.plot(ends, [start + slope * end for end in ends], "-", color=colour, linewidth=1.0)
            name += f": {slope:.1f}"
        height = 0.97 - LINE * place
        axes.plot(1.04, height, mark, transform=axes.transAxes, color=colour, markersize=4, clip_on=False)
        axes.text(1.07, height, name, transform=axes.transAxes, fontsize=style.SMALL, color=style.ink(colour),
                  va="center")  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.grid()
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return studio.finish(made, title, [*notes, studio.run_set.coverage], runs)
