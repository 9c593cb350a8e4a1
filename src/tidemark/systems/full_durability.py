"""`durability: full`: when `write` returns, data, metadata and commit are on the disk, whatever the client left out.

Which files a write made is learned from the kernel (inotify), at a price that does not grow with the table; they are
then synced one after the other, in the order in which they were made, and after them the folders that name them. A
client makes data before what names it, so that at no moment a log entry is on the disk whose data file is not: readers
stop at one, and with it at all that was acknowledged before.

That happens inside `write`: once before the client's commit, where it has such a moment (DuckDB's COMMIT, PyIceberg's
request to the catalog), and once after its own call, for what was made by then. So it takes about as long as in a
client that syncs its files itself. Where a client cannot be halted (delta-rs), the file system is told to let no write
to its folders return before it is on the disk (`write_through`). What a catalog's server makes within the commit,
Iceberg's metadata, is visible to others a little before it is on the disk: a power failure in that moment can leave a
commit that nobody was told of without its files. The study on ingest cuts the power at random moments, and counts it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tidemark.errors import SystemFailure
from tidemark.systems.base import DEFAULT, FULL, Options, PerWrite
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import DataFile, Door, Fate, TableWriter, Token

if TYPE_CHECKING:
    import pyarrow as pa

IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE = 0x8, 0x80, 0x100
IN_Q_OVERFLOW, IN_ONLYDIR, IN_ISDIR = 0x4000, 0x1000000, 0x40000000
GET_FLAGS, SET_FLAGS, SYNC_FLAG, DIRSYNC_FLAG = 0x80086601, 0x40086602, 0x8, 0x10000  # as in linux/fs.h
EVENT = struct.Struct("iIII")  # watch, what happened, cookie, length of the name that follows
READ_BYTES = 1 << 16

SUMMARY = "Data, metadata and commit are on the disk, and so are the folders that name them."
HELP = (
    "full: when a write returns, its data, metadata and commit are on the disk: what the client and the catalog server "
    "left to the page cache is synced inside the write, one file after the other: data before what names it, and "
    "before the commit where the client can be halted there; a Delta table's log, and of delta-rs the data, is written "
    "through (chattr +S). default: as the client has it. What full adds is the disk's time, and less than 0.1 ms to "
    "learn which files are new; a client that synced several files at once might be quicker. Only tables on a disk of "
    "this machine can have it, in a catalog that itself flushes its commits."
)


@dataclass(frozen=True, slots=True)
class DurabilityOptions(Options):
    durability: str = field(default=DEFAULT, metadata={"help": HELP, "choices": (DEFAULT, FULL)})


def write_through(folders: Iterable[Path]) -> bool:
    """Have each write to files that will be made in `folders` reach the disk before it returns, names included.

    As by `chattr +SD`; files and folders inherit it. False where the file system has no such flags.
    """
    for folder in folders:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            flags = bytearray(fcntl.ioctl(descriptor, GET_FLAGS, bytes(8)))
            flags[:4] = struct.pack("I", struct.unpack_from("I", flags)[0] | SYNC_FLAG | DIRSYNC_FLAG)
            fcntl.ioctl(descriptor, SET_FLAGS, bytes(flags))
        except OSError:
            return False
        finally:
            os.close(descriptor)
    return True


class NewFiles:
    """The files that any process makes below `folder`, in folders that do not begin with a dot."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, str] = {}  # plain text: a write is timed with this
        self._events = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), folder)
        for _ in self._add(str(folder.absolute())):
            pass

    def sync(self) -> None:
        """Sync all that was made since the last call, then the folders that name it; SystemFailure where some is lost.

        Files go in the order in which they were made, folders in that of the first file in each. Those that are gone
        again are left out.
        """
        files: dict[str, None] = {}
        folders: dict[str, None] = {}
        for path, is_folder in self._made():
            (folders if is_folder else files)[path] = None
            folders[path.rpartition("/")[0]] = None
        for path in (*files, *folders):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Safe to call twice."""
        events, self._events = self._events, -1
        if events >= 0:
            os.close(events)

    def _made(self) -> Iterator[tuple[str, bool]]:
        """The path of each, and whether it is a folder, in their order; some more than once."""
        while True:
            try:
                events = os.read(self._events, READ_BYTES)
            except BlockingIOError:
                return
            start = 0
            while start < len(events):
                watch, what, _, length = EVENT.unpack_from(events, start)
                name = events[start + EVENT.size : start + EVENT.size + length].rstrip(b"\0").decode()
                start += EVENT.size + length
                if what & IN_Q_OVERFLOW:
                    raise SystemFailure("durability: full: the kernel lost count of the files that a write made.")
                if watch in self._folders and name:
                    path = f"{self._folders[watch]}/{name}"
                    if not what & IN_ISDIR:
                        yield path, False
                    elif not name.startswith("."):
                        yield path, True
                        yield from self._add(path)

    def _add(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Watch `folder` and those in it; what is there already, as nobody may have told of it."""
        mask = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR
        watch = self._libc.inotify_add_watch(self._events, os.fsencode(folder), mask)
        self._folders[self._checked(watch, folder)] = folder
        for entry in os.scandir(folder):
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path, False
            elif not entry.name.startswith("."):
                yield entry.path, True
                yield from self._add(entry.path)

    @staticmethod
    def _checked(result: int, folder: Path | str) -> int:
        if result < 0:
            raise SystemFailure(
                f"durability: full cannot be had: the kernel watches no files below {folder} "
                f"({os.strerror(ctypes.get_errno())}). Raise fs.inotify.max_user_instances and max_user_watches, or "
                "leave durability at default."
            )
        return result


@dataclass(frozen=True, slots=True)
class SyncingDoor(Door):
    """A door whose writers sync, in each write, what any client made below `folder` since their write before.

    A commit may stand on files of another writer's that is not done with its own: those are among them.
    """

    inner: Door
    folder: Path

    def open(self) -> TableWriter:
        return SyncingWriter(self.inner.open(), NewFiles(self.folder))


class SyncingWriter(TableWriter):
    def __init__(self, inner: TableWriter, made: NewFiles) -> None:
        self._inner, self._made = inner, made
        inner.before_commit(made.sync)

    def write(self, rows: pa.Table) -> None:
        self._inner.write(rows)
        self._made.sync()

    def register(self, files: Sequence[DataFile]) -> None:
        self._inner.register(files)
        self._made.sync()

    def stage(self, rows: pa.Table) -> DataFile:
        return self._inner.stage(rows)

    def write_known(self, rows: pa.Table, token: Token) -> None:
        self._inner.write_known(rows, token)
        self._made.sync()

    def has(self, token: Token) -> bool:
        return self._inner.has(token)

    def count(self) -> int:
        return self._inner.count()

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        return self._inner.maintenance()  # what it makes is synced by the next write

    def fate(self, error: Exception) -> Fate:
        return self._inner.fate(error)

    def refresh(self) -> None:
        self._inner.refresh()

    def attempts(self) -> int | None:
        return self._inner.attempts()

    def close(self) -> None:
        self._made.close()
        self._inner.close()


class FullDurability(TableSystem):
    """A system with the option: a subclass calls `_keep_promise_below` at the end of its `create`."""

    Options: ClassVar[type[Options]] = DurabilityOptions
    full_syncs_per_write: ClassVar[PerWrite]  # of the client, with `durability: full`
    full_summary: ClassVar[str] = SUMMARY

    def _keep_promise_below(self, folder: Path) -> None:
        """From now on each write syncs what was made below `folder`, where the option says so.

        So do those of writers that come in through the door. Put in place of `write` and `door` once, so that a system
        that is not asked for it pays nothing.
        """
        if self.durability_level != FULL:
            return
        made = NewFiles(folder)
        self.before_commit(made.sync)
        write, close, door = self.write, self.close, self.door

        def write_and_sync(rows: pa.Table) -> None:
            write(rows)
            made.sync()

        def close_both() -> None:
            made.close()
            close()

        self.write, self.close = write_and_sync, close_both  # type: ignore[method-assign]
        self.door = lambda: SyncingDoor(door(), folder)  # type: ignore[method-assign]
        self.durability = replace(
            self.durability, summary=self.full_summary, client_syncs_per_write=self.full_syncs_per_write
        )
