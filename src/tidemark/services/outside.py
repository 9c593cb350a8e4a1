"""Ledger of objects on external servers, written before they are created, so that all are dropped at the end.

Each process has its own file in the workspace's private folder, with one line per object created and one per object
dropped, and holds a lock on it while it lives. The kernel releases the lock however the process ends, so a file that
can be locked belongs to a dead process: the next start drops the objects it still lists, and nothing else.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tidemark.paths import Workspace, exclusive, sync_directory

LOCK = ".lock"  # of the folder: one process at a time creates files in it or scans it


@dataclass(frozen=True, slots=True)
class Made:
    """An object on a server: Tidemark's name of the service, its address without secrets, and the object's name."""

    service: str
    address: Mapping[str, str | None]
    name: str


class Ledger:
    """Objects that this process created and has not dropped yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self.path = Path()
        self._left: list[Made] = []

    def note(self, made: Made) -> None:
        """Record an object that is about to be created; on disk on return."""
        if self._descriptor is None:
            with exclusive(self._folder / LOCK):  # another process must not see the file before it is locked
                self.path = self._folder / f"{os.getpid()}-{secrets.token_hex(4)}.jsonl"
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
                sync_directory(self._folder)
        _append(self._descriptor, "made", made)
        self._left.append(made)

    def dropped(self, made: Made) -> None:
        """Remove a dropped object from the ledger; the file is deleted with the last one."""
        if self._descriptor is None or made not in self._left:
            return
        self._left.remove(made)
        if self._left:
            _append(self._descriptor, "dropped", made)
            return
        with exclusive(self._folder / LOCK):
            self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


_ledgers: dict[Path, Ledger] = {}


def folder_of(workspace: Workspace) -> Path:
    return workspace.private / "outside"


def ledger_of(workspace: Workspace) -> Ledger:
    """Return the ledger of this process in `workspace`."""
    folder = folder_of(workspace).absolute()
    return _ledgers.setdefault(folder, Ledger(folder))


def drop_leftovers(workspace: Workspace, drop: Callable[[Made], None]) -> None:
    """Call `drop` for every object that dead processes left; report failures and keep them for a later start."""
    folder = folder_of(workspace)
    if not folder.is_dir() or not any(folder.glob("*.jsonl")):
        return
    for path, descriptor in _of_the_dead(folder):
        try:
            left = read(path)
            for made in reversed(tuple(left)):  # later objects may depend on earlier ones
                try:
                    drop(made)
                except Exception as error:
                    say_kept(made.name, error, path)
                else:
                    left.remove(made)
                    _append(descriptor, "dropped", made)
            if not left:
                path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def read(path: Path) -> list[Made]:
    """Return the objects that a ledger file still lists. A line truncated by a crash names no created object."""
    left: list[Made] = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            ((event, values),) = json.loads(line).items()
            made = Made(values["service"], values["address"], values["name"])
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if event == "made":
            left.append(made)
        elif made in left:
            left.remove(made)
    return left


def say_kept(name: str, error: Exception, ledger: Path) -> None:
    reason = str(error).strip().replace("\n", " ")
    print(
        f"tidemark: {name}, which was made on a server that is not ours, could not be dropped: {reason}. It stays "
        f"noted in {ledger}; the next start tries again.",
        file=sys.stderr,
    )


def _append(descriptor: int, event: str, made: Made) -> None:
    # Begin with a newline, because a crash may have left a partial line at the end of the file.
    os.write(descriptor, f"\n{json.dumps({event: asdict(made)})}\n".encode())
    os.fsync(descriptor)


def _of_the_dead(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files whose process is dead, each with a descriptor that holds its lock."""
    for path in sorted(folder.glob("*.jsonl")):
        with exclusive(folder / LOCK):
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)  # its process lives and needs the objects
                continue
        yield path, descriptor
