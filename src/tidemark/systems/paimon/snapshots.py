"""Reader of a Paimon table's snapshots and manifests, without Paimon's client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER, PREFIX = "snapshot", "snapshot-"
MANIFESTS = "manifest"
ADDED = 0  # kind of an entry; the other kind removes a file from the table


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One commit."""

    number: int  # from 1
    at_ms: float  # Unix time
    kind: str  # APPEND if rows were added
    rows: int  # of the table after the commit
    more: int  # rows that the commit added
    user: str  # the committing user; `identifier` is that user's number for the commit
    identifier: int
    manifest_lists: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Snapshot:
        said: dict[str, Any] = json.loads(path.read_text())
        return cls(
            number=said["id"],
            at_ms=float(said["timeMillis"]),
            kind=said["commitKind"],
            rows=said["totalRecordCount"],
            more=said["deltaRecordCount"],
            user=said["commitUser"],
            identifier=said["commitIdentifier"],
            manifest_lists=(said["baseManifestList"], said["deltaManifestList"]),
        )


def numbers(table: Path) -> list[int]:
    """Return the numbers of the snapshots of the table in a folder, oldest first."""
    names = (path.name.removeprefix(PREFIX) for path in (table / FOLDER).glob(f"{PREFIX}*"))
    return sorted(int(name) for name in names if name.isdigit())


def snapshot(table: Path, number: int) -> Snapshot:
    return Snapshot.read(table / FOLDER / f"{PREFIX}{number}")


def newest(table: Path) -> Snapshot | None:
    """Return the newest snapshot; None if nothing was committed yet."""
    found = numbers(table)
    return snapshot(table, found[-1]) if found else None


def data_files(table: Path) -> list[Path]:
    """Return the files that hold the table's rows, by the manifests of its newest snapshot."""
    last = newest(table)
    added: dict[Path, None] = {}
    removed: set[Path] = set()
    for name in last.manifest_lists if last else ():
        for manifest in _records(table / MANIFESTS / name):
            for entry in _records(table / MANIFESTS / manifest["_FILE_NAME"]):
                path = table / f"bucket-{entry['_BUCKET']}" / entry["_FILE"]["_FILE_NAME"]
                if entry["_KIND"] == ADDED:
                    added[path] = None
                else:
                    removed.add(path)
    return [path for path in added if path not in removed]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    import fastavro

    with path.open("rb") as file:
        yield from fastavro.reader(file)
