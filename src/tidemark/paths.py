"""Paths in a workspace: the folder that holds the Snakefile and the config."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

REPOSITORY = Path(__file__).parents[2]  # holds envs/, paper/, workflow/, src/ and the Snakefile
# In the results folder: the answer in a few lines, written with the report; empty if there is none.
ANSWER = "answer.txt"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folder in which a pipeline runs; everything that it writes is below it.

    TIDEMARK_CACHE may name a folder of provisioned artifacts that several workspaces share; each artifact is
    checked against the lock before use, wherever it is: by hash once, then by its seal (tidemark.integrity).
    """

    root: Path

    @property
    def private(self) -> Path:
        return self.root / ".tidemark"

    @property
    def cache(self) -> Path:
        """Jars, unpacked servers and environments, which the locks name and which can be fetched again."""
        shared = os.environ.get("TIDEMARK_CACHE")
        return Path(shared) if shared else self.private / "cache"

    @property
    def work(self) -> Path:
        """Data directories of servers and tables; emptied after each series."""
        return self.private / "work"

    @property
    def snakemake(self) -> Path:
        """Temporary files of Snakemake while it runs; emptied by the next start."""
        return self.private / "snakemake"

    @property
    def plan(self) -> Path:
        """Plan of the configuration being measured; results have a separate plan, from which they were made."""
        return self.private / "plan.json"

    def plan_of_round(self, number: int) -> Path:
        """Return the path of the part of that plan that is measured after a round."""
        return self.private / f"plan-round-{number}.json"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def results(self) -> Path:
        return self.root / "results"


def private_directory(path: Path) -> Path:
    """Create `path` and all missing parents, accessible only to the owner, and return `path`."""
    missing = [path, *path.parents]
    for folder in reversed([f for f in missing if not f.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    return path


def try_to_write(folder: Path) -> None:
    """Create `folder` if necessary and check with a temporary file that it is writable; raise OSError, naming it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, waiting for it if necessary; the kernel releases it when its holder ends."""
    private_directory(path.parent)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace `path` atomically: a reader, or a crash at any moment, finds the complete old or new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces `path` once it is written and synced; on an error it is removed.

    Files that killed processes left beside `path` are removed as well.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    for other in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if not Path("/proc", other.name.split(".")[-2]).exists():
            other.unlink(missing_ok=True)
    sync_directory(path.parent)


def remove_others(folder: Path, known: Collection[str], endings: tuple[str, ...]) -> None:
    """Remove the files below `folder` with one of `endings` whose relative paths are not `known`.

    Files that a configuration no longer produces must not be mistaken for its results.
    """
    for path in folder.rglob("*"):
        if path.suffix in endings and path.relative_to(folder).as_posix() not in known:
            path.unlink()


def sync_directory(path: Path) -> None:
    """Make renames inside `path` survive a power loss; errors of file systems that cannot do it are ignored."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_if_changed(path: Path, content: str) -> bool:
    """Write `content` unless `path` holds it already, so that its mtime is that of a change; return True if written."""
    if path.exists() and path.read_text() == content:
        return False
    write_atomically(path, content)
    return True
