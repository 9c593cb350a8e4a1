"""The picture of single commits as sequences: who asks which server for what, and for how long; a panel a system."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tidemark.analysis.formatting import number
from tidemark.results.figures.glance import LIGHT, RC, name_row
from tidemark.runs.anatomy import CLIENT, Anatomy, Step, duration_ms

WIDTH = 8.3  # inches, as are the following; a forge shows a page 830 pixels wide
LANES, RIGHT = 2.2, 0.1  # margins: left of the bars stand the lanes' names
ROW, ABOVE, BELOW = 0.2, 0.42, 0.34
SIZE = 9.0  # points
LONGEST = 40  # characters of a request or statement
LEAST = 0.004  # width of a bar, of the axis
COLOURS = ("#0072B2", "#C04F00", "#007A59", "#6E40C9")  # by server
OWN, BANDS = "#8C959F", ("#F6F8FA", "#FFFFFF")
HTTP = re.compile(r"(?P<what>(?:content of )?[A-Z]+) /(?P<path>[^?]*)(?:\?(?P<key>[^=&]*))?")
IDENTIFIER = re.compile(r"(?=[0-9-]*[a-f])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*")

type Lane = tuple[str, str]  # who asks, and the server


def picture(found: Sequence[Anatomy]) -> str:
    """Return the SVG of the commits whose steps were kept; identical input gives identical bytes."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**RC, "font.size": SIZE})
        heights = [ABOVE + ROW * (1 + len(each.steps)) + BELOW for each in found]
        figure = Figure(figsize=(WIDTH, sum(heights)), facecolor="white")
        servers = sorted({step.server for each in found for step in each.steps})
        colours = {server: COLOURS[place % len(COLOURS)] for place, server in enumerate(servers)}
        top = sum(heights)
        for each, height in zip(found, heights, strict=True):
            bottom = (top - height + BELOW) / sum(heights)
            wide, tall = (WIDTH - LANES - RIGHT) / WIDTH, (height - ABOVE - BELOW) / sum(heights)
            _draw(figure.add_axes((LANES / WIDTH, bottom, wide, tall)), each, colours)
            top -= height
        buffer = io.StringIO()
        said = "; ".join(heading(each) for each in found)
        metadata = {"Date": None, "Creator": "Tidemark", "Title": "Commits", "Description": said}
        figure.savefig(buffer, format="svg", metadata=metadata)
    return buffer.getvalue()


def heading(found: Anatomy) -> str:
    options = "".join(f", {name}: {value}" for name, value in found.options.items())
    return f"{found.title}{options}: {len(found.steps)} round trips in {number(duration_ms(found.steps), 2)} ms"


def label(asked: str) -> str:
    """Return a request or a statement in a few characters: an HTTP request by the last part of its path."""
    short = asked or "another message"
    if http := HTTP.match(asked):
        key = f"?{http['key']}" if http["key"] else ""
        short = f"{http['what']} {http['path'].rstrip('/').rpartition('/')[2]}{key}"
    short = IDENTIFIER.sub("…", short)
    return short if len(short) <= LONGEST else f"{short[: LONGEST - 1]}…"


def own_work(steps: Sequence[Step]) -> list[tuple[float, float]]:
    """Return begin and length, in ms, of the times between a commit's first and last answer without an open request."""
    found, until = [], 0.0
    for each in sorted((step for step in steps if step.by == CLIENT), key=lambda step: step.began_ms):
        if each.began_ms > until:
            found.append((until, each.began_ms - until))
        until = max(until, each.began_ms + each.took_ms)
    return found


def _draw(axes: Any, found: Anatomy, colours: dict[str, str]) -> None:
    steps, end = found.steps, duration_ms(found.steps)
    lanes: dict[Lane, list[Step]] = {}
    for step in steps:
        lanes.setdefault((step.by, step.server), []).append(step)
    axes.set_title(
        heading(found), x=(4 / 72 - LANES) / (WIDTH - LANES - RIGHT), loc="left", fontweight="bold", color=LIGHT.ink
    )
    axes.set_xlim(0, 1.02 * end)
    axes.set_ylim(len(steps) + 0.5, -0.5)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} ms")
    axes.tick_params(axis="x", length=0, labelcolor=LIGHT.faint)
    axes.grid(axis="x", color=LIGHT.line, linewidth=0.8)
    axes.set_axisbelow(True)
    own = own_work(steps)
    name_row(axes, 0, f"client works, {number(sum(took for _, took in own), 2)} ms", LANES, LIGHT.faint)
    axes.broken_barh(own, (-0.3, 0.6), facecolors=OWN)
    row = 1
    for place, ((by, server), asked) in enumerate(lanes.items()):
        axes.axhspan(row - 0.5, row + len(asked) - 0.5, color=BANDS[place % 2], zorder=0, linewidth=0)
        name_row(axes, row, f"{by.removeprefix('the ')} → {server}", LANES, LIGHT.faint)
        for each in asked:
            took = max(each.took_ms, LEAST * end)
            axes.barh(row, took, 0.72, each.began_ms, color=colours[server])
            ended = each.began_ms + took
            # Text stands where most room is: after the bar, before it, or in it.
            _, at, shift, side, colour = max(
                (end - ended, ended, 4, "left", LIGHT.ink),
                (each.began_ms, each.began_ms, -4, "right", LIGHT.ink),
                (took, each.began_ms, 4, "left", "white"),
            )
            text = f"{label(each.asked)}, {number(each.took_ms, 2)} ms"
            axes.annotate(text, (at, row), (shift, 0), textcoords="offset points", va="center", ha=side, color=colour)
            row += 1
