"""Option `durability: full`: data, metadata and commit are on the disk when `write` returns, whatever the client omits.

The kernel (inotify) reports which files a write created, at a cost that does not grow with the table. They are then
synced one by one in the order of creation, followed by the folders that contain them. A client creates data before
the files that refer to it, so that a log entry is never on the disk before its data file: readers fail at such an
entry, and with it at everything that was acknowledged before.

This happens inside `write`: once before the client's commit, if it has such a point (DuckDB's COMMIT, PyIceberg's
request to the catalog), and once after its own call, for the files created by then. It takes about as long as in a
client that syncs its files itself. If a client cannot be interrupted (delta-rs), writes to its folders are made
synchronous in the file system (`write_through`). Iceberg's metadata, which a catalog's server creates within the
commit, is visible to others shortly before it is on the disk: a power failure at that moment can leave an
unacknowledged commit without its files. The ingest study cuts the power at random moments and counts such commits.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from tidemark.errors import SystemFailure
from tidemark.systems.base import DEFAULT, FULL, Options, PerWrite, option
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory, TableWriter

IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE = 0x8, 0x80, 0x100
IN_Q_OVERFLOW, IN_ONLYDIR, IN_ISDIR = 0x4000, 0x1000000, 0x40000000
GET_FLAGS, SET_FLAGS, SYNC_FLAG, DIRSYNC_FLAG = 0x80086601, 0x40086602, 0x8, 0x10000  # as in linux/fs.h
EVENT = struct.Struct("iIII")  # watch, event mask, cookie, length of the name that follows
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
    durability: str = option(DEFAULT, HELP, choices=(DEFAULT, FULL))


def write_through(folders: Iterable[Path]) -> bool:
    """Make writes to new files in `folders` synchronous: data and names are on the disk before a write returns.

    Equivalent to `chattr +SD`; files and folders inherit it. Return False if the file system has no such flags.
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
    """Files that any process creates below `folder`, except in folders whose names begin with a dot."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, str] = {}  # paths as plain text, since this runs in timed writes
        self._events = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), folder)
        for _ in self._add(str(folder.absolute())):
            pass

    def sync(self) -> None:
        """Sync all files created since the last call, then their folders; raise SystemFailure if events were lost.

        Files are synced in the order of creation, folders in that of the first file in each. Files and folders that no
        longer exist are skipped.
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
        """Stop watching; safe to call twice."""
        events, self._events = self._events, -1
        if events >= 0:
            os.close(events)

    def _made(self) -> Iterator[tuple[str, bool]]:
        """Yield each new path and whether it is a folder, in order; some are yielded more than once."""
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
        """Watch `folder` and those in it; yield what they already contain, for which events may be missing."""
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
class SyncingClientFactory(ClientFactory):
    """Factory of writers that sync, in each write, the files that any client created in `folder` since their last one.

    These include files of other writers that have not synced them yet, because a commit may depend on them.
    """

    inner: ClientFactory
    folder: Path

    def open(self) -> TableWriter:
        writer = self.inner.open()
        _sync_in(writer, NewFiles(self.folder), "write", "write_known", "register")
        return writer


def _sync_in(client: TableSystem | TableWriter, made: NewFiles, *methods: str) -> None:
    """Make `methods` of a client sync the new files before its commit and at their end; closing it stops the watch.

    Methods are replaced once, so that the option adds no cost to a client without it. What maintenance creates is
    synced by the next of them.
    """

    def synced(method: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            method(*arguments)
            made.sync()

        return call

    def close_both() -> None:
        made.close()
        close()

    client.before_commit(made.sync)
    close = client.close
    for name in methods:
        setattr(client, name, synced(getattr(client, name)))
    client.close = close_both  # type: ignore[method-assign]


class FullDurability(TableSystem):
    """Table system with the option `durability`; a subclass calls `_keep_promise_below` at the end of its `create`."""

    Options: ClassVar[type[Options]] = DurabilityOptions
    full_syncs_per_write: ClassVar[PerWrite]  # of the client, with `durability: full`
    full_summary: ClassVar[str] = SUMMARY

    def _keep_promise_below(self, folder: Path) -> None:
        """Make each write sync the files created below `folder`, if the option `durability` is full.

        This includes the writes of clients opened by `client_factory`.
        """
        if self.durability_level != FULL:
            return
        _sync_in(self, NewFiles(folder), "write")
        client_factory = self.client_factory
        self.client_factory = lambda: SyncingClientFactory(client_factory(), folder)  # type: ignore[method-assign]
        self.durability = replace(
            self.durability, summary=self.full_summary, client_syncs_per_write=self.full_syncs_per_write
        )
