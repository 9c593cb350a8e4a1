"""Work for other processes, which must be able to import it by the name that it has here."""

from __future__ import annotations

import os
import time

_base: list[int] = []


def take(base: int) -> None:
    _base[:] = [base]


def with_pid(item: int) -> tuple[int, int]:
    """Who did it, and what came of it; ValueError for what is negative."""
    if item < 0:
        raise ValueError("a piece of work that fails")
    return os.getpid(), _base[0] + item


def say_and_wait(item: int) -> int:
    """Work that takes a minute."""
    print("at work", flush=True)
    time.sleep(60)
    return item
