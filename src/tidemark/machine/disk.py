"""Disk writes: bytes that reached the data's device, dirty bytes in memory, and bytes written by processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SECTOR_BYTES = 512  # unit of the kernel's block statistics, whatever the device's sector size
MEMINFO = Path("/proc/meminfo")
REST_BYTES = 1 << 20  # an otherwise quiet machine with fewer dirty bytes counts as idle
PATIENCE_SECONDS = 15.0
LOOK_SECONDS = 0.05


class DiskCounter:
    """Counter of bytes written to the block device that holds `directory`, since the machine started."""

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
    """Return the machine's bytes that were written to files but are not yet on their disks; None if unknown."""
    try:
        found = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        return sum(int(found[name].split()[0]) * 1024 for name in ("Dirty", "Writeback"))
    except (OSError, KeyError):
        return None


@dataclass(frozen=True, slots=True)
class Settled:
    """Result of `settle`: dirty bytes left in the end, the seconds that it took, and whether the machine is idle."""

    left_bytes: int | None
    seconds: float
    at_rest: bool

    @property
    def rest_bytes(self) -> int | None:
        """Dirty bytes of the machine at rest; None if another program went on writing, which is no rest."""
        return self.left_bytes if self.at_rest else None


def settle(rest_bytes: int | None, patience_s: float = PATIENCE_SECONDS) -> Settled:
    """Sync repeatedly until at most `rest_bytes` are dirty, or one megabyte if that is more.

    Earlier writes would otherwise reach the disk later, and be charged to the system that is measured then. Gives up
    after `patience_s`: other programs may write all the time.
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
    """Return the bytes that processes caused to be written to a disk, now or later; None if they may not be read.

    The bytes of a child that ended are counted in its parent.
    """
    total, known = 0, False
    for pid in pids:
        with suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/io").read_text().splitlines():
                if line.startswith("write_bytes:"):
                    total, known = total + int(line.split()[1]), True
    return total if known else None
