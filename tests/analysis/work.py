"""Functions for worker processes, which import them by their module's name."""

from __future__ import annotations

import os
import time

_base: list[int] = []


def take(base: int) -> None:
    _base[:] = [base]


def with_pid(item: int) -> tuple[int, int]:
    """Return the process id and `item` plus the base; raise ValueError if `item` is negative."""
    if item < 0:
        raise ValueError("a piece of work that fails")
    return os.getpid(), _base[0] + item


def say_and_wait(item: int) -> int:
    """Print a line, sleep for a minute and return `item`."""
    print("at work", flush=True)
    time.sleep(60)
    return item
