"""Cards of the results site: pictures of 1,200 by 630 pixels that other sites show beside a link to it."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure

WIDTH, HEIGHT, DPI = 12.0, 6.3, 100  # inches, and pixels in each
PAPER, INK, FAINT = "#00517a", "#ffffff", "#bfe0f2"  # the colours of the site's head
LEFT, COLUMNS = 0.06, 38  # share of the width; characters of a line of the title
RC: Any = {"font.family": ["DejaVu Sans"], "text.parse_math": False}


def card(title: str, question: str, facts: Sequence[str]) -> bytes:
    """Return a PNG with a title, a question and a line for each of the facts. Identical input gives identical bytes."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, facecolor=PAPER)
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
