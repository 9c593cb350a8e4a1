"""How many events to bring into a topic before a window."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tidemark.errors import DiskFull
from tidemark.measure.run import margin
from tidemark.paths import write_atomically

# Events a second to expect of a system that was never measured here. Guessed short, the rest is produced beside
# the window and the run says so; guessed long, disk space and a few seconds are lost.
UNKNOWN_RATE = {"single": 2_000.0, "batch": 80_000.0}
HARNESS_RATE = {"single": 80_000.0, "batch": 800_000.0}  # of a system that stores nothing
HEADROOM = 1.3
MOST_AHEAD = 10_000_000  # events
EVENT_BYTES = 400  # of a topic, compressed, with room to spare


class Rates:
    """Events a second that each system reached here before: how much to produce ahead of a window."""

    def __init__(self, path: Path, key: str, mode: str, stores: bool) -> None:
        self._path, self._key = path, key
        self._rate = self._all().get(key, (UNKNOWN_RATE if stores else HARNESS_RATE)[mode])

    def _all(self) -> dict[str, float]:
        try:
            return {str(key): float(value) for key, value in json.loads(self._path.read_text()).items()}
        except (OSError, ValueError, AttributeError):
            return {}  # it only saves time; without it the first guess holds

    def events(self, window_seconds: float, batch_size: int, work: Path) -> int:
        """How many events to put into the topic before a window, within what the disk of `work` can hold."""
        room = shutil.disk_usage(work).free // (4 * EVENT_BYTES)
        if room < 10 * batch_size:
            raise DiskFull(f"{work}: no room for the events of one window; free some gigabytes")
        wanted = int(self._rate * window_seconds * HEADROOM) + 2 * margin(batch_size)
        return min(wanted, MOST_AHEAD, room)

    def note(self, events_per_s: float) -> None:
        self._rate = events_per_s
        write_atomically(self._path, json.dumps({**self._all(), self._key: events_per_s}, indent=1) + "\n")
