"""How figures look: sizes in inches of the printed column, one colour a system everywhere, bytes that repeat."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

# Inches: half and whole of the paper's text width (see paper/template.typ), so that a figure is printed at the size
# at which it is drawn, and a point here is a point there.
COLUMN = 3.27
PAGE = 6.69
FONTS = Path(__file__).with_name("fonts")
SERIF = "Libertinus Serif"  # the paper's, which its compiler carries; what it lacks is drawn in matplotlib's own
TITLE, TEXT, SMALL = 8.5, 8.0, 7.2  # points: of captions and axes, and of the words beside data
CHARACTER = 0.0445  # inches that a character of SMALL takes, on average
BESIDE = 0.105  # of a picture's height: a name beside the axes
INK, FAINT, WARNING = "#222222", "#666666", "#B00020"
# Okabe and Ito's palette, told apart with any colour vision; one hue a format, as far as it goes.
COLOURS = {
    "ducklake": "#0072B2",
    "ducklake-inlined": "#56B4E9",
    "ducklake-inlined-postgres": "#5D3A9B",
    "iceberg-pyiceberg": "#D55E00",
    "iceberg-duckdb": "#E69F00",
    "delta-rs": "#009E73",
    "delta-duckdb": "#CC79A7",
    "null": "#7F7F7F",
}
FURTHER = ("#882255", "#117733", "#999933", "#332288", "#AA4499", "#661100", "#44AA99", "#6699CC", "#000000")
PARTS = {  # of a time budget, of a footprint, of a write: Tol's light palette, in which no system has its colour
    "write": "#77AADD",
    "poll": "#EE8866",
    "decode": "#EEDD88",
    "assemble": "#FFAABB",
    "bookkeeping": "#44BB99",
    "wait_for_producer": "#AAAA00",
    "rest": "#DDDDDD",
    "data": "#77AADD",
    "metadata": "#EEDD88",
    "catalog": "#FFAABB",
    "upload": "#EE8866",
    "application": "#EEDD88",
    "topic": "#FFAABB",
    "tasks": "#77AADD",
    "driver": "#99DDFF",
    "HDFS": "#44BB99",
    "materialise": "#BBCC33",
}
RC: dict[Any, Any] = {
    "font.family": [SERIF, "DejaVu Sans"],
    "font.size": TEXT,
    "axes.titlesize": TITLE,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.6,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "text.color": INK,
    "text.parse_math": False,  # a "$" in a title is a dollar
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "path.simplify": True,
    "pdf.fonttype": 3,
    "pdf.compression": 6,
    "svg.fonttype": "path",
    "svg.hashsalt": "tidemark",
    "savefig.dpi": 200,
    "text.hinting": "none",  # as in the other two forms, and in less time
}


def apply() -> None:
    """Our settings for good: of a process that only draws."""
    if SERIF not in {font.name for font in fontManager.ttflist}:
        for path in sorted(FONTS.glob("*.otf")):
            fontManager.addfont(path)
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(RC)


@contextmanager
def applied() -> Iterator[None]:
    """Our settings, and none of the user's own matplotlibrc."""
    with matplotlib.rc_context():
        apply()
        yield


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each system: its own if it is known, else one that its name chooses among the further ones."""
    chosen: dict[str, str] = {}
    free = list(FURTHER)
    for name in sorted(set(names)):
        if name in COLOURS:
            chosen[name] = COLOURS[name]
        else:
            free = free or list(FURTHER)
            chosen[name] = free.pop(int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(free))
    return chosen


def ink(colour: str) -> str:
    """`colour` darkened until words in it can be read on white: a contrast of 4.5, as WCAG 2 asks."""
    red, green, blue = to_rgb(colour)
    while 1.05 / (_luminance((red, green, blue)) + 0.05) < 4.6:
        red, green, blue = 0.98 * red, 0.98 * green, 0.98 * blue
    return to_hex((red, green, blue))


def _luminance(channels: Sequence[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def few_lines(title: str, width: int = 19) -> str:
    """`title` in lines of `width` characters; of more where three do not hold it, for a name that is cut is another."""
    while len(lines := textwrap.wrap(title, width, break_on_hyphens=False)) > 3:
        width += 1
    return "\n".join(lines)


def name_beside(axes: Axes, place: int, colour: str, mark: str, title: str) -> None:
    """The mark and the name of what is drawn, right of the axes; `place` counts them from the top, from 0."""
    height = 0.97 - BESIDE * place
    axes.plot(1.06, height, mark, transform=axes.transAxes, color=colour, markersize=4, clip_on=False)
    axes.text(1.12, height, few_lines(title), transform=axes.transAxes, fontsize=SMALL, color=ink(colour), va="center")


@dataclass(frozen=True, slots=True)
class Frame:
    """A figure being drawn: `height` inches of axes, with room for the title, the axis below and the note."""

    figure: Figure
    width: float
    height: float

    def axes(
        self, left: float, right: float, bottom: float = 0.0, height: float | None = None, sharex: Axes | None = None
    ) -> Axes:
        """Axes placed in inches: `left` and `right` margins, `bottom` above the lowest axis."""
        whole = self.figure.get_figheight()
        tall = self.height if height is None else height
        return self.figure.add_axes(
            (left / self.width, (BELOW + bottom) / whole, (self.width - left - right) / self.width, tall / whole),
            sharex=sharex,
        )

    def pair(self, left: float, between: float, right: float) -> tuple[Axes, Axes]:
        """Two axes of one width side by side, so many inches apart."""
        whole = float(self.figure.get_figwidth())
        wide = (whole - left - between - right) / 2
        return self.axes(left, whole - left - wide), self.axes(left + wide + between, right)


ABOVE, BELOW = 0.30, 0.56  # inches: for the title, and for the axis below with the dataset's line
LINE, NOTE = 0.125, 0.14  # inches: a line of the note, and what of BELOW the axis leaves to it


def frame(width: float, height: float) -> Frame:
    figure = Figure(figsize=(width, height + ABOVE + BELOW))
    return Frame(figure, width, height)


def finish(made: Frame, title: str, notes: Sequence[str], dataset: str, synthetic: bool) -> None:
    """Put title, notes and dataset into the picture; a replica is marked in red."""
    characters = int(made.width / CHARACTER)
    lines = [line for text in notes for line in textwrap.wrap(text, characters)]
    lines += textwrap.wrap(dataset, characters - 20 * synthetic)
    _make_room(made.figure, LINE * len(lines) - NOTE)
    whole = made.figure.get_figheight()
    made.figure.text(0.01, 1 - 0.03 / whole, title, fontsize=TITLE, fontweight="bold", va="top")
    made.figure.text(
        0.01, 0.02 / whole, "\n".join(lines), fontsize=SMALL, color=FAINT, va="bottom", linespacing=1.15
    )  # fmt: skip
    if synthetic:
        made.figure.text(
            0.99, 0.02 / whole, "SYNTHETIC dataset", fontsize=SMALL, fontweight="bold", color=WARNING, va="bottom",
            ha="right",
        )  # fmt: skip


def _make_room(figure: Figure, more: float) -> None:
    """Make the figure `more` inches taller below its axes, if that is anything."""
    if more <= 0:
        return
    whole = figure.get_figheight()
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position().bounds
        axes.set_position((left, (bottom * whole + more) / (whole + more), width, height * whole / (whole + more)))
    figure.set_figheight(whole + more)


def save(figure: Figure, stem: Path, title: str, sources: Sequence[str], caption: str = "") -> list[str]:
    """Write `stem`.svg, .pdf and .png with the same bytes for the same picture; returns their names.

    The caption and the source runs go into each file's metadata: outside of the paper, nothing else carries them.
    """
    about = f"{caption} Source runs: {'; '.join(sources)}".strip()
    metadata = {
        "svg": {"Date": None, "Title": title, "Description": about, "Creator": "Tidemark"},
        "pdf": {"CreationDate": None, "Title": title, "Subject": about, "Creator": "Tidemark"},
        "png": {"Software": "Tidemark", "Title": title, "Description": about},
    }
    names = []
    for ending, values in metadata.items():
        path = stem.with_name(f"{stem.name}.{ending}")
        figure.savefig(path, format=ending, metadata=values)
        names.append(path.name)
    return names
