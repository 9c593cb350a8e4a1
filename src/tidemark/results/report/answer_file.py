"""Summary answer for a terminal: results/answer.txt, which is written with the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidemark.paths import write_atomically

NAME = "answer.txt"


def write_answer(results: Path, lines: Sequence[str]) -> Path:
    """Write `lines` to answer.txt in the results folder (empty without lines), and return its path."""
    write_atomically(results / NAME, "".join(f"{line}\n" for line in lines))
    return results / NAME


def read_answer(results: Path) -> list[str]:
    """Return the lines of the answer; empty if its file does not exist."""
    try:
        return (results / NAME).read_text().splitlines()
    except OSError:
        return []
