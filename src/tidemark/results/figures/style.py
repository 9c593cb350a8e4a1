"""Style of figures: sizes in inches of the printed column, one colour per system, reproducible bytes."""

from __future__ import annotations

import hashlib
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

# Inches: half and full text width of the paper (see paper/template.typ), so that figures are printed at the size at
# which they are drawn, and a point here is a point in print.
COLUMN = 3.27
PAGE = 6.69
FONTS = Path(__file__).with_name("fonts")
RC = Path(__file__).with_name("paper.mplstyle")
SERIF = "Libertinus Serif"  # the paper's font, bundled with its compiler; matplotlib's default has the missing glyphs
TITLE, TEXT, SMALL = 8.5, 8.0, 7.2  # points: of titles, of axes, and of text next to data
CHARACTER = 0.0445  # average width in inches of a character of SMALL
INK, FAINT, WARNING = "#222222", "#666666", "#B00020"
# Okabe and Ito's palette, distinguishable with any colour vision; one hue per format as far as possible.
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
PARTS = {  # of a time budget, a footprint or a write: Tol's light palette, which shares no colour with a system
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
SHAPES = {  # of markers: systems differ in shape as well as in colour
    "ducklake": "o",
    "ducklake-inlined": "s",
    "ducklake-inlined-postgres": "D",
    "iceberg-pyiceberg": "^",
    "iceberg-duckdb": "v",
    "delta-rs": "P",
    "delta-duckdb": "X",
    "null": "d",
}
FURTHER_SHAPES = ("<", ">", "p", "h", "*", "8", "H")


@contextmanager
def hidden(*names: str) -> Iterator[None]:
    """Have imports of these modules fail within the context, as if they were not installed, unless they are loaded."""
    here = dict.fromkeys(name for name in names if name not in sys.modules)
    sys.modules |= here  # type: ignore[arg-type]  # None is how Python notes that there is no such module
    try:
        yield
    finally:
        for name in here:
            del sys.modules[name]


def apply() -> None:
    """Set Tidemark's settings permanently, for a process that only draws."""
    import seaborn as sns  # imported here, since the report uses this file's colours but draws nothing

    if SERIF not in {font.name for font in fontManager.ttflist}:
        for path in sorted(FONTS.glob("*.otf")):
            fontManager.addfont(path)
    matplotlib.rcdefaults()
    rc = matplotlib.rc_params_from_file(RC, fail_on_error=True, use_default_template=False)
    sns.set_theme("paper", "ticks", palette=list(COLOURS.values()), rc=rc)


@contextmanager
def applied() -> Iterator[None]:
    """Apply Tidemark's settings within the context, ignoring the user's matplotlibrc."""
    with matplotlib.rc_context():
        apply()
        yield


def colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour per system: its fixed one if known, else one of FURTHER chosen by a hash of its name."""
    return _chosen(names, COLOURS, FURTHER)


def shapes(names: Iterable[str]) -> dict[str, str]:
    """Return the marker shape of each system, chosen in the same way as its colour."""
    return _chosen(names, SHAPES, FURTHER_SHAPES)


def _chosen(names: Iterable[str], known: Mapping[str, str], further: Sequence[str]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    free = list(further)
    for name in sorted(set(names)):
        if name in known:
            chosen[name] = known[name]
        else:
            free = free or list(further)
            chosen[name] = free.pop(int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(free))
    return chosen


def ink(colour: str) -> str:
    """Return `colour` darkened until its text is readable on white: a contrast of 4.5, as WCAG 2 requires."""
    red, green, blue = to_rgb(colour)
    while 1.05 / (_luminance((red, green, blue)) + 0.05) < 4.6:
        red, green, blue = 0.98 * red, 0.98 * green, 0.98 * blue
    return to_hex((red, green, blue))


def _luminance(channels: Sequence[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def few_lines(title: str, width: int = 19) -> str:
    """Wrap `title` to at most three lines of `width` characters, wider if necessary, so that no name is truncated."""
    while len(lines := textwrap.wrap(title, width, break_on_hyphens=False)) > 3:
        width += 1
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Frame:
    """A figure being drawn: `height` inches of axes, plus space for the title, the axis below and the note."""

    figure: Figure
    width: float
    height: float

    def axes(self, left: float, right: float, bottom: float = 0.0, height: float | None = None) -> Axes:
        """Add axes placed in inches: `left` and `right` margins, `bottom` above the lowest axis."""
        whole = self.figure.get_figheight()
        tall = self.height if height is None else height
        return self.figure.add_axes(
            (left / self.width, (BELOW + bottom) / whole, (self.width - left - right) / self.width, tall / whole)
        )

    def pair(
        self, left: float, between: float, right: float, bottom: float = 0.0, height: float | None = None
    ) -> tuple[Axes, Axes]:
        """Add two axes of equal width side by side, `between` inches apart; the others are as for `axes`."""
        whole = float(self.figure.get_figwidth())
        wide = (whole - left - between - right) / 2
        margins = ((left, whole - left - wide), (left + wide + between, right))
        first, second = (self.axes(*both, bottom, height) for both in margins)
        return first, second


ABOVE, BELOW = 0.30, 0.62  # inches: for the title, and for the axis below with the dataset line
LINE, NOTE = 0.125, 0.16  # inches: a line of the note, and the part of BELOW available to it


def frame(width: float, height: float) -> Frame:
    figure = Figure(figsize=(width, height + ABOVE + BELOW))
    return Frame(figure, width, height)


def single(width: float, height: float, left: float, right: float) -> tuple[Frame, Axes]:
    """Return a frame and its only axes, with these margins."""
    made = frame(width, height)
    return made, made.axes(left, right)


def tiled(
    figure: Figure, panels: Sequence[Axes], columns: int, *, tall: float, gap: float, left: float,
    between: float = 0.0, right: float = 0.1, width: float = PAGE, above: float | None = None, first: float = 0.0,
) -> Frame:  # fmt: skip
    """Place the panels of a seaborn grid, in inches: `gap` and `between` apart, with margin `left` before each.

    The margin before the leftmost panel is at least `first`.

    `above` is the space above the first row; by default the `gap` less the space of the title.
    """
    rows = -(-len(panels) // columns)
    made = Frame(figure, width, rows * (tall + gap) - gap + (gap - ABOVE if above is None else above))
    whole = made.height + ABOVE + BELOW
    figure.set_size_inches(width, whole)
    first = max(first, left)
    wide = (width - right - first - (columns - 1) * left - (columns - 1) * between) / columns
    for place, axes in enumerate(panels):
        row, column = divmod(place, columns)
        corner = (first + column * (wide + left + between), BELOW + (rows - 1 - row) * (tall + gap))
        axes.set_position((corner[0] / width, corner[1] / whole, wide / width, tall / whole))
    return made


def finish(made: Frame, title: str, notes: Sequence[str], dataset: str, synthetic: bool) -> None:
    """Add title, notes and dataset to the figure; a synthetic dataset is marked in red."""
    characters = int(made.width / CHARACTER)
    lines = [line for text in notes for line in textwrap.wrap(text, characters)]
    lines += textwrap.wrap(dataset, characters - 20 * synthetic)
    _make_room(made.figure, LINE * len(lines) - NOTE)
    whole = made.figure.get_figheight()
    made.figure.text(0.01, 1 - 0.03 / whole, title, fontsize=TITLE, fontweight="bold", va="top")
    made.figure.text(0.01, 0.02 / whole, "\n".join(lines), fontsize=SMALL, color=FAINT, va="bottom", linespacing=1.15)
    if synthetic:
        made.figure.text(
            0.99, 0.02 / whole, "SYNTHETIC dataset", fontsize=SMALL, fontweight="bold", color=WARNING, va="bottom",
            ha="right",
        )  # fmt: skip


def _make_room(figure: Figure, more: float) -> None:
    """Make the figure `more` inches taller below its axes; no effect if `more` <= 0."""
    if more <= 0:
        return
    whole = figure.get_figheight()
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position().bounds
        axes.set_position((left, (bottom * whole + more) / (whole + more), width, height * whole / (whole + more)))
    figure.set_figheight(whole + more)


def save(figure: Figure, stem: Path, title: str, sources: Sequence[str], caption: str = "") -> list[str]:
    """Write `stem`.svg, .pdf and .png, with identical bytes for identical figures, and return their names.

    The caption and the source runs go into each file's metadata: outside of the paper, they appear nowhere else.
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
    drawing = stem.with_name(f"{stem.name}.svg")
    described = f"</title>\n <desc>{escape(about)}</desc>"  # for screen readers, which ignore metadata
    drawing.write_text(drawing.read_text().replace("</title>", described, 1))
    return names
