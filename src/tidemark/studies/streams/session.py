"""The producer of a session, its topics, and the known rates of systems, from which topics are sized."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tidemark.errors import DiskFull
from tidemark.paths import write_atomically
from tidemark.runs.spec import BATCH, SINGLE
from tidemark.studies.streams.settings import AHEAD, StreamSettings

if TYPE_CHECKING:  # planning needs the rates, and must not load the clients of the stream
    from tidemark.stream.producer import Producer
    from tidemark.stream.topics import Topics

HEADROOM = 1.3
EVENT_BYTES = 400.0  # of one event in a topic, with a margin, until the first topic was measured
# Divisors of the free disk space and of the machine's memory: a topic must be readable from memory next to all else.
DISK_SHARE, MEMORY_SHARE = 4, 8
# Events of an uncounted first window, for systems with an unknown rate.
FIRST = {SINGLE: 20_000, BATCH: 200_000}


class Rates:
    """Events per second of a system on this machine, and bytes per event in a topic; kept in one file."""

    def __init__(self, path: Path, system: str, encoding: str) -> None:
        self._path = path
        self._system, self._bytes = f"events/s {system}", f"bytes/event {encoding}"

    @property
    def events_per_s(self) -> float | None:
        """Events per second; None for a system that was never measured on this machine."""
        return self._all().get(self._system)

    def note(self, events_per_s: float) -> None:
        self._keep(self._system, events_per_s)

    def note_topic(self, events: int, log_bytes: int) -> None:
        if events and log_bytes:
            self._keep(self._bytes, log_bytes / events)

    def events(self, seconds: float, batch_size: int, work: Path, most: int | None = None) -> int:
        """Return the events to produce: `seconds` at the known rate, at most `most`, plus a margin; or raise DiskFull.

        Free disk in `work` and memory limit them. A window that needs more or is faster takes several stretches.
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
            return {}  # it only saves time; without it the first window is uncounted

    def _keep(self, key: str, value: float) -> None:
        write_atomically(self._path, json.dumps({**self._all(), key: value}, indent=1) + "\n")


def margin(batch_size: int) -> int:
    """Return the events to add to those expected to be written: some are read ahead, and the loop must not wait."""
    return max(2_000, 4 * batch_size)


@dataclass(slots=True)
class Session:
    """A running producer and its topics, which other series of a round use as well, with their settings and rates."""

    settings: StreamSettings
    rates: Rates
    producer: Producer
    topics: Topics

    @property
    def is_ahead(self) -> bool:
        """True if the topic is filled before the window, not during it."""
        return self.settings.producer == AHEAD

    @property
    def most_events(self) -> int | None:
        """Events that a window is likely to read at most, if it ends by its commits; None if it ends by its length."""
        most, rate = self.settings.most_events, self.rates.events_per_s
        return most and max(most, int((rate or 0) * self.settings.least_seconds * HEADROOM))
