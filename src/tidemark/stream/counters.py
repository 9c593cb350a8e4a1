"""Counters that producer and consumer share without locks: the progress of each in the topic."""

from __future__ import annotations

import mmap
from pathlib import Path

_PRODUCED, _CONSUMED, _STOP = 0, 1, 2


class Counters:
    """Events produced and consumed, and a stop flag, in a file that both processes map.

    Each number has one writer; an aligned 8-byte store is atomic on the platforms that the locks support.
    """

    def __init__(self, path: Path, create: bool) -> None:
        if create:
            path.write_bytes(bytes(24))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 24)
        self._numbers = memoryview(self._map).cast("q")

    @property
    def produced(self) -> int:
        return self._numbers[_PRODUCED]

    @produced.setter
    def produced(self, value: int) -> None:
        self._numbers[_PRODUCED] = value

    @property
    def consumed(self) -> int:
        return self._numbers[_CONSUMED]

    @consumed.setter
    def consumed(self, value: int) -> None:
        self._numbers[_CONSUMED] = value

    @property
    def stop(self) -> bool:
        return bool(self._numbers[_STOP])

    @stop.setter
    def stop(self, value: bool) -> None:
        self._numbers[_STOP] = int(value)

    def close(self) -> None:
        self._numbers.release()
        self._map.close()
