"""Tests of which files of a commit are on the disk at its acknowledgement, with and without an fsync."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.machine import cachestat
from tidemark.studies.ingest.load.writer import batches
from tidemark.studies.ingest.record import AtRisk
from tidemark.studies.ingest.window.unsynced_data import ALL, COMMITS, NOTHING, RECORD, durability_class, look
from tidemark.systems.base import Context
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.null import NullClientFactory
from tidemark.systems.writers import ClientFactory, CommitStatus, TableWriter

ROWS = 5


@pytest.mark.parametrize(
    ("dirty_files", "dirty_logs", "level"),
    [
        (30, None, NOTHING),
        (30, 10, NOTHING),
        (10, 0, RECORD),
        (30, 1, RECORD),  # something else wrote to the log meanwhile
        (0, None, ALL),
        (0, 0, ALL),  # rows in the catalog
    ],
)
def test_level_of_a_promise_follows_from_the_observation(dirty_files: int, dirty_logs: int | None, level: str) -> None:
    assert durability_class(dirty_files, dirty_logs, 10) == level


class Synced(TableWriter):
    """Client that syncs all files of the table before it acknowledges."""

    def __init__(self, inner: TableWriter, folder: Path) -> None:
        self._inner, self._folder = inner, folder

    def write(self, rows: pa.Table) -> None:
        self._inner.write(rows)
        for path in self._folder.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())

    def commit_status(self, error: Exception) -> CommitStatus:
        return self._inner.commit_status(error)


class SyncedClientFactory(NullClientFactory):
    def __init__(self, inner: ClientFactory, folder: Path) -> None:
        self._inner, self._folder = inner, folder

    def open(self) -> Any:
        return Synced(self._inner.open(), self._folder)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    reason = cachestat.why_not(tmp_path)
    if reason is not None:
        pytest.skip(reason)
    path = tmp_path / "trips.parquet"
    pq.write_table(pa.table({"id": pa.array(range(7), pa.int64()), "fare": [float(n) for n in range(7)]}), path)
    (tmp_path / "table").mkdir()
    yield tmp_path


@pytest.mark.parametrize(("synced", "level", "dirty"), [(False, NOTHING, COMMITS), (True, ALL, 0)])
def test_files_of_commits_are_checked(
    synced: bool, level: str, dirty: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips, own = folder / "trips.parquet", folder / "table"
    table = DeltaRs(Context(own, {}, ROWS), DeltaRs.Options())
    table.create(pq.read_schema(trips))
    if synced:
        client_factory = SyncedClientFactory(table.client_factory(), own)
        monkeypatch.setattr(table, "client_factory", lambda: client_factory)
    seen = look(table, batches(trips, ROWS, 0), own, None, 0)
    assert isinstance(seen, AtRisk)
    assert (seen.level, seen.data_files, seen.dirty_data_files) == (level, COMMITS, dirty)
    assert seen.other_files >= COMMITS and (seen.dirty_other_files == 0) == synced
    assert (seen.seconds is None) == (not synced)
    table.close()
