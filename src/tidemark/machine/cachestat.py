"""Pages of a file that are only in memory: dirty or under writeback, as reported by cachestat(2)."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from pathlib import Path

_CACHESTAT = 451  # syscall number, the same on all machines; since Linux 6.5
_libc = ctypes.CDLL(None, use_errno=True)


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Found(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


def at_risk(path: Path) -> int:
    """Return the number of a file's pages that a power failure now would lose: those dirty and under writeback.

    Raise OSError if the kernel refuses, as for files of others unless root.
    """
    with path.open("rb", buffering=0) as file:
        whole, found = _Range(0, 0), _Found()
        if _libc.syscall(_CACHESTAT, file.fileno(), ctypes.byref(whole), ctypes.byref(found), 0) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))
    return int(found.dirty + found.writeback)


def why_not(folder: Path) -> str | None:
    """Return why dirty pages cannot be counted below `folder`, or None if a write-and-fsync probe works.

    Linux before 6.5 lacks cachestat(2), and not every file system counts its dirty pages.
    """
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"tide" * 1024)
        file.flush()
        try:
            before = at_risk(Path(file.name))
            os.fsync(file.fileno())
            after = at_risk(Path(file.name))
        except OSError as error:
            if error.errno == errno.ENOSYS:
                return "the kernel has no cachestat(2), which Linux has since 6.5"
            return f"cachestat(2) is refused: {error.strerror}"
    if before == 0 or after != 0:
        return "the file system does not count what waits for the disk"
    return None
