"""Tests of untrusted Parquet files: invalid content is refused by file and column before complete reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runs.runset import DUCKLAKE, write_run_set

from tidemark.errors import AnalysisError
from tidemark.pipeline.build import build_database
from tidemark.runs import run as reading
from tidemark.runs.runset import RunSet


@pytest.fixture
def operations(tmp_path: Path) -> Path:
    """Return operations.parquet of a run set's first run."""
    results = write_run_set(tmp_path, [DUCKLAKE], window_s=1)
    return next(results.glob("runs/**/run-0/operations.parquet"))


def refused(path: Path, message: str) -> None:
    results = next(folder for folder in path.parents if folder.name == "results")
    with pytest.raises(AnalysisError, match=message) as caught:
        RunSet.load(results)
    assert str(caught.value).startswith(f"{path}: ") and str(caught.value).isprintable()


def more(name: str, values: pa.Array) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.append_column(name, values.take(pa.array([0] * table.num_rows)))


def other(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(name), name, table[name].cast(kind))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (more("x INTEGER); COPY (SELECT 1) TO '/tmp/x'; --\"", pa.array([1])), "found the column x INTEGER"),
        (more("\x1b]0;mine\x07", pa.array([1])), "found the column \ufffd]0;mine\ufffd of int64"),
        (more("deep", pa.array([[[1]]])), "found the column deep of list"),
        (more("kind", pa.array(["a"]).dictionary_encode()), "found the column kind of dictionary"),
        (other("start_ns", pa.string()), "column 'start_ns': found string; allowed: numbers"),
        (lambda table: table.drop_columns(["rows"]), "found no column rows"),
    ],
)
def test_invalid_columns_are_refused(operations: Path, change: Callable[[pa.Table], pa.Table], message: str) -> None:
    pq.write_table(change(pq.read_table(operations)), operations)
    refused(operations, message)


def test_too_many_rows_or_columns_are_refused_by_the_footer(operations: Path) -> None:
    rows = reading.MOST_ROWS + 1
    one = pa.table({name: np.zeros(1_000_000, np.int32) for name in ("start_ns", "rows")})
    with pq.ParquetWriter(operations, one.schema, compression="zstd") as file:
        for _ in range(rows // one.num_rows + 1):
            file.write_table(one)
    assert operations.stat().st_size < 1 << 20, "small on the disk"
    refused(operations, "found 201,000,000 rows of 2 columns; allowed: up to 200,000,000 of 1000")
    pq.write_table(pa.table({f"c{place}": [1] for place in range(reading.MOST_COLUMNS + 1)}), operations)
    refused(operations, "found 1 rows of 1,001 columns")


@pytest.mark.parametrize("keep", [0, 3, 200, -1, -100])
def test_truncated_file_is_refused(operations: Path, keep: int) -> None:
    operations.write_bytes(operations.read_bytes()[:keep])
    refused(operations, "cannot be read as Parquet")


def test_damaged_pages_are_reported(operations: Path) -> None:
    data = bytearray(operations.read_bytes())
    data[4:-2000] = bytes(len(data) - 2004)
    operations.write_bytes(bytes(data))
    refused(operations, "cannot be read")


def test_damaged_pages_of_other_columns_are_reported_by_the_database(operations: Path) -> None:
    group = pq.read_metadata(operations).row_group(0)
    chunk = group.column(next(at for at in range(group.num_columns) if group.column(at).path_in_schema == "write_ns"))
    data, begin = bytearray(operations.read_bytes()), chunk.data_page_offset
    data[begin : begin + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    operations.write_bytes(bytes(data))
    results = next(folder for folder in operations.parents if folder.name == "results")
    with pytest.raises(AnalysisError, match=f"{operations.parent}: its Parquet files cannot be read"):
        build_database(results)


def test_seconds_are_numbers(operations: Path) -> None:
    seconds = operations.with_name("machine.parquet")
    table = pq.read_table(seconds)
    pq.write_table(table.set_column(0, "second", pa.array(["x"] * table.num_rows)), seconds)
    refused(seconds, "column 'second': found string; allowed: numbers")


def test_process_groups_may_have_names_of_several_words_and_operations_columns_may_not(operations: Path) -> None:
    """The catalogs study has a 'load generator'; a column of operations becomes one of the database."""
    name, machine = "cpu_load generator_percent", operations.with_name("machine.parquet")
    results = next(folder for folder in operations.parents if folder.name == "results")
    for path in (machine, operations):
        table = pq.read_table(path)
        pq.write_table(table.append_column(name, pa.array([1.0] * table.num_rows)), path)
        if path == machine:
            assert RunSet.load(results).runs and build_database(results)
    refused(operations, f"found the column {name} of double")


def test_invalid_arrow_schema_is_refused(operations: Path) -> None:
    pq.write_table(pq.read_table(operations).replace_schema_metadata({"ARROW:schema": "bm90IGEgc2NoZW1h"}), operations)
    refused(operations, "cannot be read as Parquet")


def test_arbitrary_metadata_is_ignored(operations: Path) -> None:
    table = pq.read_table(operations)
    odd = {"\x1b]0;mine\x07": "\x07" * 1000, "pandas": "{"}
    pq.write_table(table.replace_schema_metadata(odd), operations)
    results = next(folder for folder in operations.parents if folder.name == "results")
    assert RunSet.load(results).runs and build_database(results).is_file()
