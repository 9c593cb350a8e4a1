"""Work for other processes, which must be able to import it by the name that it has here."""

from __future__ import annotations

import os

_base: list[int] = []


def take(base: int) -> None:
    _base[:] = [base]


def with_pid(item: int) -> tuple[int, int]:
    """Who did it, and what came of it; ValueError for what is negative."""
    if item < 0:
        raise ValueError("a piece of work that fails")
    return os.getpid(), _base[0] + item
