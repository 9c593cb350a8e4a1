"""Where things lie in a workspace: the folder that holds the Snakefile and the config."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

REPOSITORY = Path(__file__).parents[2]  # with envs/, paper/, workflow/ and the Snakefile beside src/


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder that a pipeline works in; everything that it writes lies below it.

    TIDEMARK_CACHE may name a folder of provisioned artifacts that several workspaces share; each artifact is
    checked against the lock before it is used, wherever it lies: by hash once, then by its seal (tidemark.seals).
    """

    root: Path

    @property
    def private(self) -> Path:
        return self.root / ".tidemark"

    @property
    def cache(self) -> Path:
        """Jars, unpacked servers, environments: what the locks name and can be fetched again."""
        shared = os.environ.get("TIDEMARK_CACHE")
        return Path(shared) if shared else self.private / "cache"

    @property
    def work(self) -> Path:
        """Data directories of servers and tables; emptied after each series."""
        return self.private / "work"

    @property
    def snakemake(self) -> Path:
        """What Snakemake keeps while it runs; emptied by the next start."""
        return self.private / "snakemake"

    @property
    def plan(self) -> Path:
        """The plan of the configuration that is being worked on; the results have theirs, of what they were made of."""
        return self.private / "plan.json"

    def plan_of_round(self, number: int) -> Path:
        """What of that plan is measured after a round."""
        return self.private / f"plan-round-{number}.json"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def results(self) -> Path:
        return self.root / "results"


def private_directory(path: Path) -> Path:
    """Make `path` with everything above it, readable by its owner alone, and return it."""
    missing = [path, *path.parents]
    for folder in reversed([f for f in missing if not f.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    return path


def try_to_write(folder: Path) -> None:
    """Make `folder` if need be, and a file in it that is gone at once; OSError, with its name, where that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


@contextlib.contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, waiting for whoever has it; the kernel lets go of it with its holder."""
    private_directory(path.parent)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace `path` so that a reader, or a crash at any moment, finds the old file or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    data = content.encode() if isinstance(content, str) else content
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def remove_others(folder: Path, known: Collection[str], endings: tuple[str, ...]) -> None:
    """Remove the files below `folder` with one of `endings` that are not `known`, by their paths from there.

    What a configuration no longer has shall not be taken for its result.
    """
    for path in folder.rglob("*"):
        if path.suffix in endings and path.relative_to(folder).as_posix() not in known:
            path.unlink()


def sync_directory(path: Path) -> None:
    """Make renames inside `path` survive a loss of power; file systems that cannot do it are left alone."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_if_changed(path: Path, content: str) -> bool:
    """Write `content` unless `path` holds it already, so that its mtime tells when it last changed."""
    if path.exists() and path.read_text() == content:
        return False
    write_atomically(path, content)
    return True
