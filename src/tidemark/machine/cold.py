"""Making the machine cold, and measuring how cold it is by page cache residency.

Residency is measured by mincore(2) over a mapping of each file, which reports the pages that are in the page
cache. Nothing is read, so the measurement warms nothing. Pages that a running process has mapped survive a drop
of the page cache; process_madvise(2) pages them out of the process first, if the kernel supports it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from stat import S_ISREG

import numpy as np

from tidemark.errors import MachineError
from tidemark.machine.inventory import moment
from tidemark.runs.proofs import ColdProof, Residency, Verdict
from tidemark.runs.serde import pairs

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
COLD_SHARE = 0.01
HOT_SHARE = 0.90
LIBRARIES = frozenset({".so", ".duckdb_extension"})

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
_PIDFD_OPEN, _PROCESS_MADVISE = 434, 440  # syscall numbers, the same on all machines
_MADV_PAGEOUT = 21


class Method(StrEnum):
    EVICT = "evict"  # the page cache is dropped
    EVICT_FILES = "evict-files"  # the files that the series reads are dropped from it, one by one
    NONE = "none"
    REBOOT = "reboot"


def may_drop_caches() -> bool:
    return os.access(DROP_CACHES, os.W_OK)


def possible_methods() -> list[Method]:
    """Return the methods that this account can use on this machine without a restart, best first."""
    return ([Method.EVICT] if may_drop_caches() else []) + [Method.EVICT_FILES, Method.NONE]


def choose(wanted: str) -> Method:
    """Return the method for the configuration's `cold`: the requested one, or the next best permitted here."""
    if wanted == "auto":
        return possible_methods()[0]
    if wanted == "evict" and not may_drop_caches():
        return Method.EVICT_FILES
    return Method(wanted)


def evict(method: Method, files: Iterable[Path]) -> None:
    """Write dirty pages out and drop clean ones, according to `method`; pages in use by a process stay.

    This is done after a restart too, as checking the programs against their lock has read them. `page_out` can page
    out mapped pages beforehand.
    """
    if method is Method.REBOOT:
        method = possible_methods()[0]
    if method in (Method.EVICT, Method.EVICT_FILES):
        os.sync()
    if method is Method.EVICT:
        try:
            DROP_CACHES.write_text("3\n")
        except OSError as error:
            raise MachineError(f"{DROP_CACHES}: {error.strerror}; use cold: auto, or run as root") from error
    elif method is Method.EVICT_FILES:
        for path in files:
            with suppress(OSError), path.open("rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class _Range(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def page_out(pids: Iterable[int]) -> None:
    """Page out the file pages that running processes have mapped, so that `evict` can drop them.

    A page that several processes have mapped stays, as does one that is used again at once. If the kernel or the
    account does not allow it, nothing happens: residency is measured afterwards, not assumed.
    """
    for pid in pids:
        descriptor = _libc.syscall(_PIDFD_OPEN, pid, 0)
        if descriptor < 0:
            continue
        try:
            for start, length, _ in mapped_ranges(pid):
                piece = _Range(start, length)
                _libc.syscall(
                    _PROCESS_MADVISE, descriptor, ctypes.byref(piece), ctypes.c_size_t(1), _MADV_PAGEOUT, 0
                )  # fmt: skip
        finally:
            os.close(descriptor)


def mapped_ranges(pid: int) -> list[tuple[int, int, Path]]:
    """Return address, length and file of each file mapping of a process; empty if they may not be read."""
    found = []
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].startswith("/") and not fields[5].endswith(" (deleted)"):
                start, end = (int(address, 16) for address in fields[0].split("-"))
                found.append((start, end - start, Path(fields[5])))
    return found


def library_files(packages: Iterable[str]) -> tuple[Path, ...]:
    """Return the shared libraries and extensions of installed Python packages; a name ending in * matches several.

    Packages are located, not imported. They are looked for once in a process: none is installed while it measures.
    """
    return _library_files(tuple(packages), tuple(sys.path))


@cache
def _library_files(packages: tuple[str, ...], folders: tuple[str, ...]) -> tuple[Path, ...]:
    found: set[Path] = set()
    for folder in map(Path, folders):
        for name in packages:
            if not folder.is_dir():
                continue
            for place in folder.glob(name):
                found.update(path for path in place.rglob("*") if path.suffix in LIBRARIES or ".so." in path.name)
            found.update(folder.glob(f"{name}.*.so"))  # a package that is a single library
            # Wheels put shared libraries into a separate folder.
            beside = folder / f"{name}.libs"
            if "*" not in name and beside.is_dir():
                found.update(beside.iterdir())
    return tuple(sorted(path for path in found if path.is_file() and not path.is_symlink()))


def residency(files: Iterable[Path]) -> Residency:
    """Return the size of `files`, and how much of it is in the page cache.

    Files that vanish or shrink meanwhile are left out, and so are those that this account neither owns nor may write:
    the kernel reports all of their pages as resident.
    """
    total = resident = 0
    for path in files:
        with suppress(OSError, ValueError):
            size, pages = _in_memory(path)
            total += size
            resident += min(size, pages * mmap.PAGESIZE)
    return Residency(total, resident)


def _in_memory(path: Path) -> tuple[int, int]:
    """Return the bytes of a regular file and its pages in the page cache; 0 and 0 for a file that is left out."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        size = found.st_size
        if not size or not S_ISREG(found.st_mode):
            return 0, 0
        if found.st_uid != os.geteuid() and not os.access(path, os.W_OK):
            return 0, 0
        with mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
            pages = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
            if _libc.mincore(np.frombuffer(mapped, np.uint8).ctypes.data, size, pages.ctypes.data) != 0:
                raise OSError(ctypes.get_errno(), f"{path}: mincore failed")
    finally:
        os.close(descriptor)
    return size, int((pages & 1).sum())


def prove(
    method: Method, groups: Mapping[str, Iterable[Path]], apart: Mapping[str, Iterable[Path]] | None = None
) -> ColdProof:
    """Measure the residency of each group of files now, and derive the verdict.

    Cold: below 1 % of the bytes of all groups together. Hot: above 90 %. Between: lukewarm. Unknown: no files.
    Groups in `apart` are measured and listed, but do not affect the verdict.
    """
    measured = {name: residency(files) for name, files in groups.items()}
    whole = Residency.together(measured.values())
    measured |= {name: residency(files) for name, files in (apart or {}).items()}
    if whole.bytes == 0:
        verdict, reason = Verdict.UNKNOWN, "there is no file here whose residency could be measured"
    else:
        verdict = (
            Verdict.COLD if whole.share < COLD_SHARE
            else Verdict.HOT if whole.share > HOT_SHARE
            else Verdict.LUKEWARM
        )  # fmt: skip
        reason = f"{100 * whole.share:.2f} % of {whole.bytes:,} bytes in the page cache"
    now = moment()
    return ColdProof(
        str(method), now.boot_id, now.uptime_s, now.cpu_mhz, now.temperature_c, pairs(measured), str(verdict),
        reason, tuple(apart or ()),
    )  # fmt: skip
