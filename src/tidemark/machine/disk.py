"""What reaches the disk under the data, what still waits in memory for it, and what each process sent there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SECTOR_BYTES = 512  # the kernel's unit in block statistics, whatever the device's own is
MEMINFO = Path("/proc/meminfo")
REST_BYTES = 1 << 20  # less than this waiting for the disk is rest, on a machine that is otherwise quiet
PATIENCE_SECONDS = 15.0
LOOK_SECONDS = 0.05


class DiskCounter:
    """Bytes written to the block device that holds `directory`, since the machine started."""

    def __init__(self, directory: Path) -> None:
        number = directory.stat().st_dev
        node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        self._stat = node / "stat"
        self.device: str | None = node.resolve().name if self._stat.exists() else None
        self.reason = (
            None if self.device else f"the file system of {directory.name} has no block device with a write counter"
        )

    def read(self) -> int | None:
        if self.device is None:
            return None
        return int(self._stat.read_text().split()[6]) * SECTOR_BYTES


def waiting_bytes() -> int | None:
    """Bytes of the whole machine that were written to files and are not on their disks yet; None if it tells not."""
    found = {}
    with suppress(OSError):
        for line in MEMINFO.read_text().splitlines():
            name, _, rest = line.partition(":")
            found[name] = rest
    if not {"Dirty", "Writeback"} <= found.keys():
        return None
    return sum(int(found[name].split()[0]) * 1024 for name in ("Dirty", "Writeback"))


@dataclass(frozen=True, slots=True)
class Settled:
    """How the machine came to rest: bytes that still waited for a disk in the end, and the seconds that it took."""

    left_bytes: int | None
    seconds: float
    at_rest: bool


def settle(rest_bytes: int | None, patience_s: float = PATIENCE_SECONDS) -> Settled:
    """Sync, again and again, until no more waits for the disk than `rest_bytes`, or a megabyte where that is less.

    What was written before would reach the disk later, and be charged to whoever is measured then. Gives up after
    `patience_s`: others may write all the time.
    """
    enough = max(rest_bytes or 0, REST_BYTES)
    began = time.monotonic()
    while True:
        os.sync()
        left = waiting_bytes()
        seconds = time.monotonic() - began
        if left is None or left <= enough or seconds > patience_s:
            return Settled(left, seconds, left is None or left <= enough)
        time.sleep(LOOK_SECONDS)


def sent_bytes(pids: Iterable[int]) -> int | None:
    """Bytes that processes caused to be written to a disk, now or later; None where that may not be asked.

    Of a child that ended, its parent has them.
    """
    total, known = 0, False
    for pid in pids:
        with suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/io").read_text().splitlines():
                if line.startswith("write_bytes:"):
                    total, known = total + int(line.split()[1]), True
    return total if known else None
