"""Bars of named parts: what a whole is divided into, a bar a row."""

from __future__ import annotations

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
    """A bar per row made of named parts, with a key above it; a row without parts says why."""
    tall = plots.ROW if width == style.COLUMN else 0.2
    left = plots.LEFT if width == style.COLUMN else 2.4
    right = 0.8
    made = style.frame(width, tall * len(rows) + 0.24)
    axes = made.axes(left, right, height=tall * len(rows))
    longest = most or max((sum(size for _, size in parts) for _, parts, _ in rows), default=1.0) or 1.0
    for row, (_, parts, note) in enumerate(rows):
        if not parts:
            plots.missing(axes, row, note)
            continue
        start = 0.0
        for part, size in parts:
            axes.barh(row, size, left=start, height=0.66, color=style.PARTS[part], linewidth=0)
            start += size
        text = f"{number(start, 3)} {note}".strip() if total else note
        axes.text(start + 0.012 * longest, row, text, fontsize=style.SMALL, va="center_baseline")
    axes.set_xlim(0, longest * (1.0 if most else 1.05))
    plots.titles(axes, [title for title, _, _ in rows])
    if width != style.COLUMN:
        axes.set_yticks(range(len(rows)), [title for title, _, _ in rows])
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(plots.plain_ticks())
    axes.grid(axis="x")
    axes.set_xlabel(what)
    place = 0.0
    for part in dict.fromkeys(part for _, parts, _ in rows for part, _ in parts):
        name = part.replace("_", " ")
        axes.text(place, 1.02, "■", transform=axes.transAxes, fontsize=style.SMALL, color=style.PARTS[part],
                  va="bottom")  # fmt: skip
        axes.text(place + 0.12 / (width - left - right), 1.02, name, transform=axes.transAxes, fontsize=style.SMALL,
                  va="bottom")  # fmt: skip
        place += (1.05 * style.CHARACTER * len(name) + 0.24) / (width - left - right)
    return made
