"""How many events to bring into a topic before a window, from what was measured on this machine before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import psutil

from tidemark.errors import DiskFull
from tidemark.paths import write_atomically
from tidemark.runs.names import BATCH, SINGLE

HEADROOM = 1.3
EVENT_BYTES = 400.0  # of a topic, with room to spare, until the first one was weighed
# Of what is free on the disk, and of the machine's memory: a topic is to be read from memory, beside everything else.
DISK_SHARE, MEMORY_SHARE = 4, 8
# Events with which an uncounted first window begins, for systems of which nothing is known.
FIRST = {SINGLE: 20_000, BATCH: 200_000}


class Rates:
    """Events a second that a system reached here, and bytes that an event takes in a topic; kept in one file."""

    def __init__(self, path: Path, system: str, encoding: str) -> None:
        self._path = path
        self._system, self._bytes = f"events/s {system}", f"bytes/event {encoding}"

    @property
    def events_per_s(self) -> float | None:
        """None for a system that was never measured here."""
        return self._all().get(self._system)

    def note(self, events_per_s: float) -> None:
        self._keep(self._system, events_per_s)

    def note_topic(self, events: int, log_bytes: int) -> None:
        if events and log_bytes:
            self._keep(self._bytes, log_bytes / events)

    def events(self, seconds: float, batch_size: int, work: Path, most: int | None = None) -> int:
        """Events for `seconds` at the system's rate, or for `most`, as far as disk of `work` and memory can hold them.

        Where they cannot, or the rate was another one this time, the window is measured in several stretches.
        """
        each = self._all().get(self._bytes, EVENT_BYTES)
        room = int(min(shutil.disk_usage(work).free / DISK_SHARE, psutil.virtual_memory().total / MEMORY_SHARE) / each)
        least = margin(batch_size)
        if room < least:
            raise DiskFull(f"{work}: no room for the {least:,} events that a window needs; free some gigabytes")
        rate = self.events_per_s
        wanted = FIRST[SINGLE if batch_size == 1 else BATCH] if rate is None else int(rate * seconds * HEADROOM)
        return min((wanted if most is None else min(wanted, most)) + least, room)

    def _all(self) -> dict[str, float]:
        try:
            return {str(key): float(value) for key, value in json.loads(self._path.read_text()).items()}
        except (OSError, ValueError, AttributeError):
            return {}  # it only saves time; without it the first window is an uncounted one

    def _keep(self, key: str, value: float) -> None:
        write_atomically(self._path, json.dumps({**self._all(), key: value}, indent=1) + "\n")


def margin(batch_size: int) -> int:
    """Events beyond those that are expected to be written: some are read ahead, and none is to be waited for."""
    return max(2_000, 4 * batch_size)
