"""The answer in a few lines, for a terminal: results/answer.txt, which is written with the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidemark.paths import write_atomically

NAME = "answer.txt"


def write_answer(results: Path, lines: Sequence[str]) -> Path:
    """Write `lines` into the results' folder; the path of their file, which is empty where there are none."""
    write_atomically(results / NAME, "".join(f"{line}\n" for line in lines))
    return results / NAME


def read_answer(results: Path) -> list[str]:
    """The lines of the answer; none where there is no file of it."""
    try:
        return (results / NAME).read_text().splitlines()
    except OSError:
        return []
