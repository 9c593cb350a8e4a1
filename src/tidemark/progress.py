"""Progress and remaining time of a long step: lines that a terminal redraws, and of which a log keeps a few."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

LOG_SECONDS = 10.0  # minimum interval of lines in a log
OUTPUT = "TIDEMARK_OUTPUT"  # environment variable: how much is printed, also by the steps of a pipeline
QUIET, VERBOSE = "quiet", "verbose"


def duration(seconds: float) -> str:
    """Format `seconds` for people: 8 s, 3 min 05 s, 2 h 10 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def is_quiet() -> bool:
    return os.environ.get(OUTPUT) == QUIET


def is_verbose() -> bool:
    return os.environ.get(OUTPUT) == VERBOSE


def put_aside(stream: TextIO, line: str) -> None:
    """Write a line of progress without a terminal: only to the log, if `stream` has one, else to `stream`.

    With --quiet nothing but a log gets it.
    """
    aside = getattr(stream, "aside", None)
    if aside is None and is_quiet():
        return
    (stream.write if aside is None else aside)(f"{line}\n")
    stream.flush()


def tell(line: str) -> None:
    """Print a line about what was done to stderr; with --quiet only its log gets it."""
    if is_quiet():
        put_aside(sys.stderr, line)
    else:
        print(line, file=sys.stderr, flush=True)


class StatusLine:
    """Lines at the bottom of a terminal, redrawn in place; in a log the first of them, every ten seconds.

    Other output in between begins at the first of the lines, and the next `show` draws them below it.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self.is_terminal = self._stream.isatty() and not is_quiet()
        self._shown_at, self._label, self._drawn = -LOG_SECONDS, "", False

    def show(self, *lines: str, label: str) -> None:
        """Draw `lines` in place of the previous ones; a log gets one at once if `label`, the current part, changes."""
        if self.is_terminal:
            width = _width() - 1  # a line that is too long would wrap
            drawn = "\n".join(f"\x1b[K{line[:width]}" for line in lines)
            self._stream.write(f"\r{drawn}\r" + (f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""))
            self._stream.flush()
            self._drawn = True
            return
        now = time.monotonic()
        if label != self._label or now - self._shown_at >= LOG_SECONDS:
            self._shown_at, self._label = now, label
            put_aside(self._stream, lines[0])

    def clear(self) -> None:
        """Erase the lines that were drawn, so that the next output takes their place."""
        if self._drawn:
            self._stream.write("\r\x1b[J")
            self._stream.flush()


def _width() -> int:
    try:
        return os.get_terminal_size(sys.__stderr__.fileno()).columns if sys.__stderr__ else 80
    except (OSError, ValueError):
        return 80


class Progress:
    """Progress of `total` units on a terminal (one line, redrawn) or in a log (a line every ten seconds)."""

    def __init__(self, what: str, total: float, unit: str = "", stream: TextIO | None = None) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._line = StatusLine(stream)
        self._started = self._shown = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Erase the line, so that the next output starts on an empty one."""
        self._line.clear()

    def update(self, done: float, note: str = "") -> None:
        """Show that `done` units are done, at most five times a second (in a log: every ten seconds)."""
        now = time.monotonic()
        if now - self._shown < (0.2 if self._line.is_terminal else LOG_SECONDS):
            return
        self._shown = now
        elapsed = now - self._started
        left = elapsed * (self._total - done) / done if done > 0 and self._total > done else 0.0
        share = 100.0 * done / self._total if self._total else 100.0
        of_all = f"{done:,.0f} of {self._total:,.0f}{self._unit}"
        line = f"{self._what}: {share:.0f} % ({of_all}), {duration(left)} left{', ' + note if note else ''}"
        self._line.show(line, label=line)
