"""Sources of the trips, always reported: a path, data/raw, the pinned download, or the replica."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tidemark.dataset.download import YELLOW_2025_11, Pinned, download
from tidemark.dataset.files import sha256_of
from tidemark.dataset.model import TripFile, check, check_all
from tidemark.dataset.synthetic import write_replica
from tidemark.errors import ConfigError, DatasetError, HashMismatch
from tidemark.paths import Workspace
from tidemark.progress import put_aside
from tidemark.runs.dataset import RawFile
from tidemark.settings import DatasetConfig

type Step = Callable[[Workspace, Pinned, tuple[str, ...]], Acquired]  # the notes are why earlier ones failed


@dataclass(frozen=True, slots=True)
class Acquired:
    """Checked trips on disk, all of one kind, in the order of their future ids.

    `source` is the step that supplied them, never 'auto'; `sha256` is the file's, or for several files that
    of the lines `<sha256>  <name>`, as sha256sum prints them; `notes` state why earlier steps did not supply
    them.
    """

    files: tuple[TripFile, ...]
    raw: tuple[RawFile, ...]
    source: str
    name: str
    synthetic: bool
    notes: tuple[str, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def kind(self) -> str:
        return self.files[0].kind.name

    @property
    def sha256(self) -> str:
        if len(self.raw) == 1:
            return self.raw[0].sha256
        return hashlib.sha256("".join(f"{file.sha256}  {file.name}\n" for file in self.raw).encode()).hexdigest()


def acquire(chosen: DatasetConfig, seed: int, workspace: Workspace, pinned: Pinned = YELLOW_2025_11) -> Acquired:
    """Acquire the trips that are `chosen`; `seed` is the replica's.

    `auto` takes the first of path, data/raw, download, replica that can supply them, and reports on stderr
    which one it took and why the earlier ones failed. A given path that fails is an error even then, and any
    other source raises DatasetError or HashMismatch instead of falling back to the next.
    """
    if chosen.source == "path" and not chosen.paths:
        raise ConfigError("key 'dataset.path': found nothing, but dataset.source is 'path'; give a file.")
    if chosen.source == "path" or (chosen.source == "auto" and chosen.paths):
        return _told(_from_paths(chosen.paths))
    replica = partial(_from_replica, chosen.synthetic_rows, seed)
    steps: dict[str, Step] = {"raw": _from_raw, "download": _from_download, "synthetic": replica}
    if chosen.source in steps:
        return _told(steps[chosen.source](workspace, pinned, ()))
    notes = ["path: none is given in dataset.path"]
    say(notes[-1])
    for name in ("raw", "download"):
        try:
            return _told(steps[name](workspace, pinned, tuple(notes)))
        except (DatasetError, HashMismatch) as error:
            notes.append(f"{name}: {error}")
        say(notes[-1])
    return _told(replica(workspace, pinned, tuple(notes)))


def say(line: str) -> None:
    """Print one line about the choice of a source: to the log of the step, or to stderr if it has none."""
    put_aside(sys.stderr, f"dataset: {line}")


def _told(acquired: Acquired) -> Acquired:
    names = ", ".join(file.name for file in acquired.raw)
    what = "SYNTHETIC trips, a replica" if acquired.synthetic else f"{acquired.kind} trips"
    say(f"using source '{acquired.source}': {acquired.rows:,} {what} ({names})")
    return acquired


def _raw(file: TripFile, sha256: str) -> RawFile:
    return RawFile(file.path.name, file.rows, file.path.stat().st_size, sha256)


def _from_paths(paths: tuple[Path, ...]) -> Acquired:
    files = check_all(paths)
    raw = tuple(_raw(file, sha256_of(file.path)) for file in files)
    name = files[0].path.stem if len(files) == 1 else f"{files[0].path.stem} and {len(files) - 1} more"
    return Acquired(files, raw, "path", name, synthetic=False, notes=())


def _from_raw(workspace: Workspace, pinned: Pinned, notes: tuple[str, ...]) -> Acquired:
    path = workspace.data / "raw" / pinned.file
    place = f"data/raw/{pinned.file}"  # notes are published with results, so they must not name folders of this machine
    if not path.exists():
        raise DatasetError(f"{place}: no such file.")
    found = sha256_of(path)
    if found != pinned.sha256:
        raise DatasetError(
            f"{place}: has sha256 {found}, the pinned file {pinned.sha256}; it is not used. "
            "To use it all the same, give it as dataset.path."
        )
    file = check(path)
    return Acquired((file,), (_raw(file, found),), "raw", Path(pinned.file).stem, synthetic=False, notes=notes)


def _from_download(workspace: Workspace, pinned: Pinned, notes: tuple[str, ...]) -> Acquired:
    file = check(download(pinned, workspace.data / "raw"))
    raw = (_raw(file, pinned.sha256),)
    return Acquired((file,), raw, "download", Path(pinned.file).stem, synthetic=False, notes=notes)


def _from_replica(rows: int, seed: int, workspace: Workspace, pinned: Pinned, notes: tuple[str, ...]) -> Acquired:
    stem = Path(pinned.file).stem
    path = workspace.data / "synthetic" / f"{stem}-{rows}-rows-seed-{seed}.parquet"
    write_replica(path, rows, seed)
    file = check(path)
    raw = (_raw(file, sha256_of(path)),)
    made = f"synthetic: a replica of {stem}, {rows:,} rows, seed {seed}"
    return Acquired((file,), raw, "synthetic", stem, synthetic=True, notes=(*notes, made))
