"""Provenance of the trips that a run reads: `dataset.json` next to them, and a part of run.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tidemark.errors import AnalysisError, DatasetError
from tidemark.runs.serde import Fields, read, written

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class PreparedColumn:
    """Column of the prepared trips."""

    name: str  # name of the column
    type: str  # type of the column, as Arrow spells it


@dataclass(frozen=True, slots=True)
class RawFile:
    """Source file of trips, found or generated; `name` is without its folder."""

    name: str  # name without its folder
    rows: int  # number of trips
    bytes: int  # size of the file
    sha256: str  # SHA-256 of the file


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of trips, and description of the prepared trips; ids run from `first_id` to `last_id`."""

    source: str  # path, raw, download or synthetic
    synthetic: bool  # true for a replica
    name: str  # name of the file of the month
    kind: str  # yellow or green
    rows: int  # number of prepared trips
    sha256: str  # SHA-256 of the prepared file
    columns: tuple[PreparedColumn, ...]  # columns of the prepared trips
    notes: tuple[str, ...]  # what was changed, or why it is synthetic
    raw: tuple[RawFile, ...]  # source files
    first_id: int  # id of the first trip
    last_id: int  # id of the last trip
    schema_version: int = SCHEMA_VERSION  # version of this part's format

    @property
    def label(self) -> str:
        """Name of the dataset in figures and tables."""
        kind = "SYNTHETIC dataset " if self.synthetic else ""
        return f"{kind}{self.name} ({self.rows:,} trips, sha256 {self.sha256[:8]})"

    def to_json(self) -> str:
        return json.dumps(written(self), indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> Provenance:
        """Read a `dataset.json`; raise DatasetError if it is absent, broken, or of another version."""
        again = "Delete it and run 'tidemark dataset' again."
        if not path.exists():
            raise DatasetError(f"{path}: no such file. Run 'tidemark dataset' first.")
        try:
            f = Fields.read(path)
            version = f.values.get("schema_version")
            if version != SCHEMA_VERSION:
                raise DatasetError(f"{path}: found schema_version {version}; allowed: {SCHEMA_VERSION}. {again}")
            return read(cls, f)
        except AnalysisError as error:
            raise DatasetError(f"{error}: it cannot be read as a dataset's provenance. {again}") from error
