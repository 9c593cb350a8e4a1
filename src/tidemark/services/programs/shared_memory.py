"""Removal of shared memory that killed PostgreSQL servers left: no process uses it, and the kernel keeps it."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

import psutil

IPC_RMID = 0
SYSTEM_V_SEGMENTS = Path("/proc/sysvipc/shm")
POSTGRES_INTERLOCK_BYTES = "56"


def remove_segments(account: int | None, folder: Path = Path("/dev/shm")) -> None:
    """Free segments of servers of `account`, unless one is running; None means the current account.

    Each killed server leaves a megabyte, and a container's /dev/shm has only 64. The candidates are listed
    before the processes, so a candidate without a running server afterwards is not in use.
    """
    account = os.geteuid() if account is None else account
    candidates = [path for path in folder.glob("PostgreSQL.*") if _owner(path) == account]
    segments = _unattached_segments(account)
    if (candidates or segments) and not _server_runs(account):
        for path in candidates:
            path.unlink(missing_ok=True)
        for segment in segments:
            ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)


def _owner(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.stat().st_uid
    return None


def _unattached_segments(account: int) -> list[int]:
    if not SYSTEM_V_SEGMENTS.exists():
        return []
    header, *lines = [line.split() for line in SYSTEM_V_SEGMENTS.read_text().splitlines()]
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    dead = {"uid": str(account), "nattch": "0", "size": POSTGRES_INTERLOCK_BYTES}
    return [int(row["shmid"]) for row in rows if dead.items() <= row.items()]


def _server_runs(account: int) -> bool:
    for process in psutil.process_iter(["name", "uids"]):
        uids = process.info["uids"]
        if process.info["name"] == "postgres" and (uids is None or uids.effective == account):
            return True
    return False
