"""Plot of several systems' points against a varied setting, with a fitted line and its slope for each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import seaborn as sns

from tidemark.analysis.slopes import intercept_of, slope_of
from tidemark.analysis.statistics import Replicates
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Studio
from tidemark.runs.run import Run

# By system title: pairs of setting and quantity on the linear scale, in order.
type Points = Mapping[str, Sequence[tuple[float, Replicates]]]


def fitted(
    studio: Studio, title: str, systems: Points, labels: tuple[str, str], notes: Sequence[str], runs: Sequence[Run]
) -> Drawn:
    """Draw the plot. `labels` are for the setting and the quantity; the vertical axis starts at 0."""
    made = style.frame(style.PAGE, 2.3)
    axes = made.axes(0.55, 2.35)
    rows = [
        row for name, points in systems.items() for setting, quantity in points
        for row in plots.rows_of(quantity.estimate(""), system=name, setting=setting)
    ]  # fmt: skip
    plots.lines(axes, rows, "setting", "value", studio.look, joined=False, legend=True)
    words = {}
    for name, points in systems.items():
        if len(points) > 1:
            slope = slope_of(points).value
            start, ends = intercept_of(points, slope), [points[0][0], points[-1][0]]
            sns.lineplot(x=ends, y=[start + slope * end for end in ends], color=style.ink(studio.look.colours[name]),
                         ax=axes)  # fmt: skip
            words[name] = f"{name}: {slope:.1f}"
    plots.legend_beside(axes, words)
    axes.set_ylim(bottom=0)
    axes.grid()
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return studio.finish(made, title, [*notes, studio.run_set.coverage], runs)
