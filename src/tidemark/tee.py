"""Standard error on the terminal and in a log at once."""

from __future__ import annotations

import io
from typing import TextIO


class Tee(io.TextIOBase):
    """Writes to a terminal and a log; lines that the terminal redraws are not repeated in the log."""

    def __init__(self, terminal: TextIO, log: TextIO) -> None:
        self._terminal, self._log = terminal, log

    def write(self, text: str) -> int:
        self._terminal.write(text)
        if not text.startswith("\r"):
            self._log.write(text)
            self._log.flush()
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()

    def isatty(self) -> bool:
        return self._terminal.isatty()
