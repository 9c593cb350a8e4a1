"""One line that says how far a long step has come and how long it still takes."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO


def duration(seconds: float) -> str:
    """`seconds` for a person: 8 s, 3 min 05 s, 2 h 10 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """Progress of `total` units on a terminal (one line, redrawn) or in a log (a line every ten seconds)."""

    def __init__(self, what: str, total: float, unit: str = "", stream: TextIO | None = None) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty()
        self._started = time.monotonic()
        self._shown = self._started
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def update(self, done: float, note: str = "") -> None:
        """Show that `done` of the total is done, at most five times a second (a log: every ten seconds)."""
        now = time.monotonic()
        if now - self._shown < (0.2 if self._terminal else 10.0):
            return
        self._shown = now
        elapsed = now - self._started
        left = elapsed * (self._total - done) / done if done > 0 and self._total > done else 0.0
        share = 100.0 * done / self._total if self._total else 100.0
        self.show(
            f"{self._what}: {share:.0f} % ({done:,.0f} of {self._total:,.0f}{self._unit}), "
            f"{duration(left)} left{', ' + note if note else ''}"
        )

    def show(self, line: str) -> None:
        """Put `line` in place of the one shown before."""
        if self._terminal:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line, so that what is printed next starts on one of its own."""
        if self._terminal and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0
