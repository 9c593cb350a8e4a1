"""What of a file is in memory alone: pages that cachestat(2) finds dirty, or on their way to the disk."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

_CACHESTAT = 451  # the same number on all machines; Linux has it since 6.5
_libc = ctypes.CDLL(None, use_errno=True)


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Found(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages of a file: in memory, changed since they were last on the disk, on their way to it."""

    cached: int
    dirty: int
    writeback: int

    @property
    def at_risk(self) -> int:
        """Those that a power failure now would lose."""
        return self.dirty + self.writeback


def pages(path: Path) -> Pages:
    """Of a whole file; OSError where the kernel does not tell, or not us: the file must be our own, or we be root."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        whole, found = _Range(0, 0), _Found()
        if _libc.syscall(_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(found), 0) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))
    finally:
        os.close(descriptor)
    return Pages(found.cached, found.dirty, found.writeback)


def why_not(folder: Path) -> str | None:
    """Why nothing can be told of files below `folder`; None where a page is seen to be dirty, and no more once synced.

    Linux before 6.5 has no such call, and not every file system counts its pages.
    """
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"tide" * 1024)
        file.flush()
        try:
            before = pages(Path(file.name)).at_risk
            os.fsync(file.fileno())
            after = pages(Path(file.name)).at_risk
        except OSError as error:
            if error.errno == errno.ENOSYS:
                return "the kernel has no cachestat(2), which Linux has since 6.5"
            return f"cachestat(2) is refused: {error.strerror}"
    if before == 0 or after != 0:
        return "the file system does not count what waits for the disk"
    return None
