"""Counting files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def count_and_bytes(files: Iterable[Path]) -> tuple[int, int]:
    """How many files, and their sizes together."""
    sizes = [path.stat().st_size for path in files]
    return len(sizes), sum(sizes)
