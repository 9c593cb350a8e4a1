"""The picture of the first page: a panel for each kind of write, a row for each system, readable on a phone.

Also the cards of the results site: pictures of 1,200 by 630 pixels that other sites show beside a link to it.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from tidemark.analysis.formatting import number
from tidemark.analysis.statistics import Estimate

WIDTH = 8.3  # inches, as are the following; a forge shows a page 830 pixels wide
ROW, ABOVE, BELOW = 0.5, 0.5, 0.35
NAMES, BETWEEN, RIGHT = 2.45, 0.25, 0.1
DIGITS = 2  # significant
TITLE = "Events per second"
CARD, DPI = (12.0, 6.3), 100  # inches of a card, and pixels in each
PAPER, INK, FAINT = "#00517a", "#ffffff", "#bfe0f2"  # of a card: the colours of the site's head
LEFT, COLUMNS = 0.06, 38  # of a card: share of the width; characters of a line of the title
RC: Any = {
    "font.family": ["DejaVu Sans"],  # it decides where text stands; browsers may draw it with another font
    "font.size": 14,  # points; 9 pixels on a phone
    "text.parse_math": False,
    "svg.fonttype": "none",  # text that can be searched and read aloud
    "svg.hashsalt": "tidemark",
}


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a page's text, of lines behind it, and of the formats, by the first word of a system's title."""

    ink: str
    faint: str
    line: str
    formats: Mapping[str, str]
    other: str


LIGHT = Theme(
    "#1F2328", "#59636E", "#D1D9E0", {"DuckLake": "#0072B2", "Iceberg": "#C04F00", "Delta": "#007A59"}, "#6E40C9"
)
DARK = Theme(
    "#E6EDF3", "#9198A1", "#3D444D", {"DuckLake": "#58B4F0", "Iceberg": "#F0883E", "Delta": "#3FCFA0"}, "#B392F0"
)


def picture(
    panels: Sequence[tuple[str, Mapping[str, Estimate]]], systems: Sequence[str], theme: Theme, text: str
) -> str:
    """Return the SVG of rates in events/s, on logarithmic axes: `panels` have a title, and estimates by system.

    `text` describes it for those who cannot see it. Identical input gives identical bytes.
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        height = ABOVE + ROW * len(systems) + BELOW
        figure = Figure(figsize=(WIDTH, height))
        wide = (WIDTH - NAMES - RIGHT - BETWEEN * (len(panels) - 1)) / len(panels)
        for place, (title, found) in enumerate(panels):
            left = NAMES + place * (wide + BETWEEN)
            box = (left / WIDTH, BELOW / height, wide / WIDTH, ROW * len(systems) / height)
            _draw(figure.add_axes(box), title, found, systems, theme, named=place == 0)
        figure.text(4 / 72 / WIDTH, 1 - (ABOVE - 10 / 72) / height, TITLE, va="baseline", color=theme.faint)
        buffer = io.StringIO()
        metadata = {"Date": None, "Creator": "Tidemark", "Title": TITLE, "Description": text}
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    return buffer.getvalue()


def _draw(
    axes: Any, title: str, found: Mapping[str, Estimate], systems: Sequence[str], theme: Theme, *, named: bool
) -> None:
    axes.set_title(title[:1].upper() + title[1:], loc="left", fontsize=14, fontweight="bold", color=theme.ink, pad=10)
    axes.set_ylim(len(systems) - 0.5, -0.5)
    axes.yaxis.set_major_locator(NullLocator())
    axes.tick_params(axis="x", length=0, labelsize=12, labelcolor=theme.faint)
    axes.spines[:].set_visible(False)
    values = [each.value for each in found.values()]
    if values:
        axes.set_xscale("log")
        # Decades around all values, and space for the number beside the last one.
        axes.set_xlim(10 ** (math.floor(math.log10(min(values))) - 0.1), 12 * max(values))
        decades = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
        axes.xaxis.set_major_locator(FixedLocator([10**decade for decade in decades if 10**decade < 2 * max(values)]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.grid(axis="x", color=theme.line, linewidth=1)
    axes.set_axisbelow(True)
    for row, name in enumerate(systems):
        colour = theme.formats.get(name.split()[0], theme.other)
        if named:
            first, bracket, rest = name.partition(" (")
            lines = [first, f"{bracket.strip()}{rest}"] if bracket and len(name) > 19 else [name]
            name_row(axes, row, "\n".join(lines), NAMES, theme.ink, fontsize=14 if len(lines) == 1 else 12.5)
        estimate = found.get(name)
        if estimate is None:
            continue
        if estimate.low is not None and estimate.high is not None:
            axes.plot([estimate.low, estimate.high], [row, row], color=colour, linewidth=3, solid_capstyle="butt")
        axes.plot([estimate.value], [row], "o", color=colour, markersize=9)
        axes.annotate(
            number(estimate.value, DIGITS), (estimate.value, row), (11, 0), textcoords="offset points", va="center",
            fontsize=14, color=theme.ink,
        )  # fmt: skip


def name_row(axes: Any, row: int, name: str, margin: float, colour: str, **how: Any) -> None:
    """Write the name of a row at the left end of the `margin` beside the axes, which is in inches."""
    axes.annotate(name, (0, row), (-margin * 72 + 4, 0), xycoords=("axes fraction", "data"),
                  textcoords="offset points", va="center", color=colour, **how)  # fmt: skip


def card(title: str, question: str, facts: Sequence[str]) -> bytes:
    """Return a PNG with a title, a question and a line for each of the facts. Identical input gives identical bytes."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        figure = Figure(figsize=CARD, dpi=DPI, facecolor=PAPER)
        named: Any = {"x": LEFT, "ha": "left", "va": "top"}
        figure.text(y=0.92, s="Tidemark", fontsize=30, color=FAINT, fontweight="bold", **named)
        lines = textwrap.wrap(title, COLUMNS)[:3]
        figure.text(y=0.78, s="\n".join(lines), fontsize=30, color=INK, fontweight="bold", linespacing=1.2, **named)
        asked = textwrap.wrap(question, 62)[:3]
        below = 0.66 - 0.1 * (len(lines) - 1)
        figure.text(y=below, s="\n".join(asked), fontsize=22, color=INK, linespacing=1.3, **named)
        told = "\n".join(textwrap.shorten(fact, 92, placeholder=" …") for fact in facts)
        figure.text(LEFT, 0.07, told, fontsize=18, color=FAINT, linespacing=1.5, ha="left", va="bottom")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", facecolor=PAPER, metadata={"Software": None})
    return buffer.getvalue()
