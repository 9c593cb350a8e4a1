"""Files of a comparison: the table in three formats, and a plot of the ratios."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from tidemark.analysis.formatting import MissingCell
from tidemark.paths import write_if_changed
from tidemark.results.archive.compare import Comparison
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import Look

ROW = 0.24  # inches


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the tables as .csv, .md and .json and the plot to `folder`, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for table in comparison.tables:
        for ending, content in (("csv", table.csv()), ("md", table.markdown()), ("json", table.json())):
            names.append(f"{table.name}.{ending}")
            write_if_changed(folder / names[-1], content)
    first = comparison.tables[0]
    with style.applied():
        made = _draw(comparison)
        pictures = style.save(made.figure, folder / "compare", first.title, first.sources)
    return [folder / name for name in (*names, *pictures)]


def _draw(comparison: Comparison) -> style.Frame:
    pairs, ratios = comparison.pairs, comparison.ratios
    made = style.frame(style.PAGE, max(ROW * len(pairs), 0.6))
    axes = made.axes(1.9, 1.5)
    look = Look.of({one.title: one.system for one, _ in pairs})
    axes.axvline(1, color=style.FAINT, linewidth=0.8)
    rows = []
    for row, ((one, _), ratio) in enumerate(zip(pairs, ratios, strict=True)):
        if isinstance(ratio, MissingCell):
            axes.text(1, row, f" missing: {ratio.reason}"[:60], fontsize=style.SMALL, color=style.FAINT, va="center")
            continue
        rows += plots.rows_of(ratio, system=one.title, row=row)
        text = plots.spelt(ratio, thousands=False)
        axes.annotate(text, (1.02, row), xycoords=("axes fraction", "data"), fontsize=style.SMALL, va="center")
    if rows:
        plots.lines(axes, rows, "value", "row", look, orient="y", joined=False)
    ends = [1.0, *(row["value"] for row in rows)]
    axes.set_yticks(range(len(pairs)), [f"{one.title}, {one.mode_title}" for one, _ in pairs])
    axes.set_ylim(len(pairs) - 0.5, -0.5)
    axes.set_ylabel("")
    _scale(axes, min(ends), max(ends))
    leading = comparison.leading
    axes.set_xlabel(f"{leading.noun} of B over that of A (log scale; right of 1: B is {leading.words[0]})")
    title = f"Two result sets: {leading.noun}, B over A"
    notes = (*comparison.tables[0].notes[:2], "Points: typical hot runs; bars: 95 % intervals.")
    style.finish(made, title, notes, f"Dataset: {comparison.tables[0].dataset}", comparison.synthetic)
    return made


def _scale(axes: Axes, low: float, high: float) -> None:
    """Set up a logarithmic axis with ticks that can be read as factors."""
    margin = (high / low) ** 0.06 * 1.02
    axes.set_xscale("log")
    axes.set_xlim(low / margin, high * margin)
    if high / low > 4:
        ticks = [factor * 10.0**power for power in range(-4, 5) for factor in (1, 2, 5)]
    else:
        step = next(size for size in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if (high - low) / size <= 7)
        ticks = [round(1 + place * step, 2) for place in range(-99, 500)]
    axes.set_xticks([tick for tick in ticks if low / margin <= tick <= high * margin])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="x")
