"""Simulated power loss: an ext4 file system in a file, mounted on a folder for this process and its children.

    with Disk(folder, beside) as disk:
        ...                             servers and tables write below `folder`
        stop(pids)                      all writing processes are stopped
        disk.cut()                      the content of the disk is copied
        ...                             the stopped processes are killed
        disk.come_back()                `folder` has the content of the copy

The file holds the content of the disk; data that the kernel has only in memory is not in it, nor in the copy. A
device's volatile cache is not modelled: everything sent to the disk is on it.

The mounts are in a namespace of this process and its children: the kernel removes them, and frees their loop devices,
with the last of these processes, however it ends. Requires Linux, and root in the machine's own namespace.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from tidemark.errors import MachineError

DISK_BYTES = 2 << 30  # size of the disk; its file is sparse
PIECE_BYTES = 1 << 20
WITNESS = ("witness", b"never flushed")  # file on the disk, and its content
WITNESS_S = 20.0  # its age at the cut, at most; the kernel flushes data that is 30 s old
COPIES = 20  # attempts to copy the disk without a concurrent write
STANDING_S = 10.0
LOOK_S = 0.005
TOOLS = ("mkfs.ext4", "mount", "umount", "unshare")
# Without lazy initialisation, which kernel threads would continue after the file system is mounted.
MAKE = ("mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size=16", "-E", "lazy_itable_init=0,lazy_journal_init=0")
_libc = ctypes.CDLL(None, use_errno=True)


class Disk:
    """Context manager of the disk, to be entered by the process whose children alone are to see it."""

    def __init__(self, folder: Path, beside: Path) -> None:
        """Prepare a disk mounted on `folder`; its file is in `beside`, a folder that is created and removed."""
        self._folder, self.beside = folder, beside
        self._image, self._left = beside / "disk.image", beside / "left.image"
        self._mounted = 0

    def __enter__(self) -> Disk:
        shutil.rmtree(self.beside, ignore_errors=True)
        self.beside.mkdir(mode=0o700)
        try:
            with self._image.open("wb") as file:
                file.truncate(DISK_BYTES)
            _run(*MAKE, self._image)
            os.unshare(os.CLONE_NEWNS)
            _run("mount", "--make-rprivate", "/")
            self._mount(self._image)
            (self._folder / "lost+found").rmdir()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self._mounted:
            _run("umount", "--lazy", self._folder)  # files still open below it are released when the children end
            self._mounted -= 1
        shutil.rmtree(self.beside, ignore_errors=True)

    def _mount(self, image: Path) -> None:
        mode = self._folder.stat().st_mode & 0o777
        _run("mount", "-o", "loop", image, self._folder)
        self._mounted += 1
        self._folder.chmod(mode)

    def sync(self) -> None:
        """Write everything below the folder to the disk with syncfs(2); raise OSError if that fails."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            if _libc.syncfs(descriptor) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self._folder))
        finally:
            os.close(descriptor)

    def leave_witness(self) -> None:
        """Write a file that no process flushes, so that `was_flushed` knows whether the whole disk was."""
        name, content = WITNESS
        (self._folder / name).write_bytes(content)

    def was_flushed(self) -> bool:
        """Return True if the witness outlived the cut: sync(2) of any process, or the kernel, flushed the disk."""
        path, content = self._folder / WITNESS[0], WITNESS[1]
        return path.is_file() and path.read_bytes() == content

    def cut(self) -> int:
        """Copy the disk until copy and disk are the same afterwards; return the number of copies made.

        Then no block was written in between, and the copy is what a power loss at that moment leaves. Raises
        MachineError if that never happens, because a process or the kernel writes all the time.
        """
        for number in range(1, COPIES + 1):
            with self._left.open("wb") as copy:
                copied = _digest(self._image, copy)
            if copied == _digest(self._image):
                return number
        raise MachineError(f"in {COPIES} copies of the disk, blocks were written to it each time while it was copied")

    def come_back(self) -> None:
        """Mount the copy made by `cut` on the folder, after the file system's own recovery."""
        self._mount(self._left)


def stop(pids: Callable[[], Iterable[int]]) -> None:
    """Send SIGSTOP to all these processes, and to those they start meanwhile, and wait until all are stopped."""
    deadline = time.monotonic() + STANDING_S
    while True:
        found = set(pids())
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        if all(map(_stands, found)) and set(pids()) <= found:
            return
        if time.monotonic() > deadline:
            raise MachineError(f"not all processes stood still {STANDING_S:g} s after they were stopped")
        time.sleep(LOOK_S)


def _stands(pid: int) -> bool:
    """Return True if each of its threads has stopped or ended."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        states = [task.joinpath("stat").read_text().rpartition(")")[2].split()[0] for task in tasks]
    except OSError:  # a thread ended meanwhile: to be checked again, unless the process ended
        return not Path(f"/proc/{pid}").exists()
    return all(state in "TZX" for state in states)


@cache
def why_not() -> str | None:
    """Return why no such disk can be mounted here; None if a test mount succeeded."""
    if not hasattr(os, "unshare"):
        return "there are no namespaces of mounts"
    if os.geteuid() != 0:
        return "only root may mount a disk"
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        return f"{missing[0]} is not here"
    with tempfile.TemporaryDirectory() as folder:
        image, place = Path(folder, "image"), Path(folder, "place")
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(PIECE_BYTES)
        try:
            _run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", image)
            _run("unshare", "--mount", "mount", "-o", "loop", image, place)
        except MachineError as error:
            return f"no file can be mounted as a disk: {error}"
    return None


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        text = (done.stderr or done.stdout).strip().replace("\n", "; ")
        raise MachineError(f"{command[0]} failed: {text or f'exit status {done.returncode}'}")


def _digest(image: Path, copy: BinaryIO | None = None) -> str:
    """Return the digest of the data and offsets of a file that may have holes, copying it to `copy` if given."""
    found = hashlib.blake2b()
    with image.open("rb") as source:
        if copy is not None:
            copy.truncate(os.fstat(source.fileno()).st_size)
        for start, piece in _pieces(source.fileno()):
            found.update(start.to_bytes(8) + len(piece).to_bytes(8) + piece)
            if copy is not None:
                copy.seek(start)
                copy.write(piece)
    return found.hexdigest()


def _pieces(descriptor: int) -> Iterator[tuple[int, bytes]]:
    """Yield the data of a file without its holes, in pieces, each with its offset."""
    place, size = 0, os.fstat(descriptor).st_size
    while place < size:
        try:
            place = os.lseek(descriptor, place, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole follows
                return
            raise
        end = os.lseek(descriptor, place, os.SEEK_HOLE)
        while place < end:
            piece = os.pread(descriptor, min(PIECE_BYTES, end - place), place)
            yield place, piece
            place += len(piece)
