"""A flush or a merge lasts as long as the client's own call, and is counted by its effect on the table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tidemark.errors import SystemFailure
from tidemark.measure import table_calls
from tidemark.systems.base import Context, System
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.ducklake.files import DuckLakeInlined
from tidemark.systems.null import Null

LISTING_S = 1.0


class SlowToFlush(DuckLakeInlined):
    """System whose files and inlined rows take long to count, which is no part of a flush."""

    def data_files(self) -> list[Path]:
        time.sleep(LISTING_S)
        return super().data_files()

    def inlined_rows(self) -> int:
        time.sleep(LISTING_S)
        return super().inlined_rows()


class SlowToMerge(DeltaRs):
    def data_files(self) -> list[Path]:
        time.sleep(LISTING_S)
        return super().data_files()


class Failing(DuckLakeInlined):
    def flush(self) -> None:
        raise OSError("planted")


def table(kind: type[System], directory: Path) -> System:
    """Return a table with three writes of ten rows."""
    system = kind(Context(directory, {}, 10), kind.Options())
    schema = pa.schema([("id", pa.int64())])
    system.create(schema)
    for first in (0, 10, 20):
        system.write(pa.table({"id": range(first, first + 10)}, schema))
    return system


@pytest.fixture
def closing() -> Iterator[list[System]]:
    systems: list[System] = []
    yield systems
    for system in systems:
        system.close()


def test_counting_is_no_part_of_a_flush(tmp_path: Path, closing: list[System]) -> None:
    closing.append(system := table(SlowToFlush, tmp_path))
    flush = table_calls.flush(system)
    assert flush is not None
    assert 0 < flush.seconds < LISTING_S
    assert (flush.rows, flush.data_files) == (30, 1)
    assert flush.data_bytes == sum(path.stat().st_size for path in system.data_files())


def test_counting_is_no_part_of_a_merge(tmp_path: Path, closing: list[System]) -> None:
    closing.append(system := table(SlowToMerge, tmp_path))
    merge = table_calls.merge(system)
    assert merge is not None
    assert 0 < merge.seconds < LISTING_S
    assert (merge.files_before, merge.files_after) == (3, 1)
    assert merge.bytes_before > merge.bytes_after > 0


def test_undeclared_maintenance_is_not_requested(tmp_path: Path) -> None:
    system = Null(Context(tmp_path, {}, 10), Null.Options())
    assert table_calls.flush(system) is None
    assert table_calls.merge(system) is None
    with pytest.raises(NotImplementedError, match="null declares no flush"):
        system.flush()


def test_failed_flush_raises_system_failure(tmp_path: Path, closing: list[System]) -> None:
    closing.append(system := table(Failing, tmp_path))
    with pytest.raises(SystemFailure, match="flush failed: OSError: planted"):
        table_calls.flush(system)
