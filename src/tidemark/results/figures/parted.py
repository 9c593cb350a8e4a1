"""Stacked bars of named parts of a total, one bar per row."""

from __future__ import annotations

import pandas as pd
from matplotlib.ticker import MaxNLocator

from tidemark.analysis.words import number
from tidemark.results.figures import plots, style

type StackedRow = tuple[str, tuple[tuple[str, float], ...], str]  # title, parts, note or reason


def stacked(
    rows: list[StackedRow],
    what: str,
    *,
    total: bool = True,
    most: float | None = None,
    width: float = style.COLUMN,
) -> style.Frame:
    """Draw one bar of named parts per row, with a legend above; a row without parts shows the reason."""
    tall, left = (plots.ROW, plots.LEFT) if width == style.COLUMN else (0.2, 2.4)
    made = style.frame(width, tall * len(rows) + 0.24)
    axes = made.axes(left, 0.8, height=tall * len(rows))
    frame = pd.DataFrame([dict(parts) for _, parts, _ in rows], dtype=float).fillna(0.0)
    # Use pandas: seaborn has no stacked bars of given values.
    frame.plot.barh(
        stacked=True, width=0.66, color=[style.PARTS[part] for part in frame], edgecolor=style.FAINT, linewidth=0.3,
        legend=False, ax=axes,
    )  # fmt: skip
    longest = most or float(frame.sum(axis=1).max()) or 1.0
    for row, (_, parts, note) in enumerate(rows):
        if not parts:
            plots.missing(axes, row, note)
            continue
        end = sum(size for _, size in parts)
        axes.text(end + 0.012 * longest, row, f"{number(end, 3)} {note}".strip() if total else note,
                  fontsize=style.SMALL, va="center_baseline")  # fmt: skip
    axes.set_xlim(0, longest * (1.0 if most else 1.05))
    titles = [title for title, _, _ in rows]
    plots.titles(axes, titles)
    if width != style.COLUMN:
        axes.set_yticks(range(len(rows)), titles)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(plots.plain_ticks())
    axes.set_xlabel(what)
    names = [part.replace("_", " ") for part in frame]
    axes.legend(names, loc="lower left", bbox_to_anchor=(0, 0.98), ncols=7, handlelength=0.7, handleheight=0.7,
                handletextpad=0.3, columnspacing=1.0, borderaxespad=0.2)  # fmt: skip
    return made
