"""Conformance suite for every table system that the registry finds, on real servers.

A new system needs no additional test. It declares what it cannot do, and is not tested for that.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib.metadata
import importlib.util
import pkgutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.measure import table_calls
from tidemark.measure.table_calls import hold, read
from tidemark.services.base import files_below
from tidemark.services.postgres import Postgres
from tidemark.systems import duckdb_client
from tidemark.systems.base import Capability, System
from tidemark.systems.duckdb_table import DuckDBSystem
from tidemark.systems.iceberg.table import IcebergTable
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

from .checks import OpenTable, assert_holds, holds_infinity, reads, write_all
from .conftest import Servers, is_here, skip_where_it_is_not
from .trips import (
    EXTREMES,
    GREEN,
    YELLOW,
    all_null,
    extremes,
    trips,
    with_column,
)

KEEP_NO_HISTORY = ("null", "opensearch")


def variants() -> Iterator[Any]:
    """Yield each system with one setting changed at a time, to each other value that the setting may have."""
    for name, kind in of_kind(TableSystem).items():
        for field in dataclasses.fields(kind.Options):
            values = field.metadata.get("choices", ()) or field.metadata.get("examples", ())
            for value in (False, True) if field.type == "bool" else values:
                if value != field.default:
                    yield pytest.param(kind, {field.name: value}, id=f"{name}-{field.name}={value}")


def test_infinity_is_refused_if_unsupported(open_table: OpenTable) -> None:
    for kind in of_kind(TableSystem).values():
        if not holds_infinity(kind) and Capability.READ_BACK in kind.capabilities:
            system = open_table(kind)
            system.create(YELLOW)
            with pytest.raises(Exception, match=r"(?i)out of range|infinit"):
                system.write(with_column(trips(YELLOW, 1), "tip_amount", pa.array([float("inf")])))
            assert len(system.ids()) == 0


def test_green_trips(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    written = [trips(GREEN, 1, 10), trips(GREEN, 50, 11), extremes(GREEN, holds_infinity(kind))]
    assert_holds(system, write_all(system, written, GREEN), GREEN)


def test_one_commit_per_write(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    write_all(system, [trips(YELLOW, 1)])
    before = system.commits()
    for first in range(1, 13):
        system.write(trips(YELLOW, 2, 2 * first))
    after = system.commits()
    assert (before is None) == (kind.name in KEEP_NO_HISTORY)
    if before is not None and after is not None:
        assert after - before == 12


def test_two_tables_are_independent(kind: type[System], open_table: OpenTable) -> None:
    one, two = open_table(kind), open_table(kind)
    written = write_all(one, [trips(YELLOW, 3)]), write_all(two, [trips(YELLOW, 4, 50)])
    assert_holds(one, written[0])
    assert_holds(two, written[1])


def test_writes_after_a_read(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    system.create(YELLOW)
    assert len(system.ids()) == 0
    assert system.ids().type == pa.int64()
    written = [trips(YELLOW, 3)]
    system.write(written[0])
    assert sorted(system.ids().to_pylist()) == ([0, 1, 2] if reads(system) else [])
    system.write(trips(YELLOW, 3, 3))
    assert_holds(system, [*written, trips(YELLOW, 3, 3)])


@pytest.mark.parametrize(
    ("kind", "compression"),
    [
        pytest.param(kind, compression, id=f"{kind.name}-{compression}")
        for kind in of_kind(TableSystem).values()
        for compression in sorted(kind.compressions)
    ],
)
def test_codec_in_every_file(kind: type[System], compression: str, open_table: OpenTable) -> None:
    system = open_table(kind, compression=compression)
    write_all(system, [trips(YELLOW, 1), trips(YELLOW, 1000, 1)])
    inlines = Capability.INLINING in system.capabilities
    if reads(system):
        assert bool(system.data_files()) != inlines
    table_calls.flush(system)
    files = system.data_files()
    assert bool(files) == reads(system)
    for path in files:
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            codecs = {row_group.column(i).compression for i in range(row_group.num_columns)}
            assert codecs == {system.context.codec.upper()}, path


def test_flush_moves_all_inlined_rows(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    written = write_all(system, [trips(YELLOW, 1), trips(YELLOW, 1000, 1), all_null(YELLOW, 5, 2000)])
    before = len(system.data_files())
    flush = table_calls.flush(system)
    assert (flush is not None) == (Capability.FLUSH in system.capabilities)
    if flush is not None:
        assert flush.rows == 1006
        assert flush.data_files == len(system.data_files()) - before > 0
        assert flush.data_bytes == sum(path.stat().st_size for path in system.data_files())
        again = table_calls.flush(system)
        assert again is not None and (again.rows, again.data_files, again.data_bytes) == (0, 0, 0)
    assert_holds(system, written)
    system.write(trips(YELLOW, 2, 5000))
    assert_holds(system, [*written, trips(YELLOW, 2, 5000)])


def test_merge_leaves_fewer_files_and_the_same_rows(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    written = write_all(system, [trips(YELLOW, 1 + 10 * i, 1000 * i) for i in range(6)])
    table_calls.flush(system)
    files = system.data_files()
    merge = table_calls.merge(system)
    assert (merge is not None) == (Capability.MERGE in system.capabilities)
    if merge is not None:
        left = system.data_files()
        assert merge.files_before == len(files)
        assert merge.files_after == len(left) == 1
        assert merge.bytes_after == sum(path.stat().st_size for path in left)
        assert not [path for path in files if path.exists() and path not in left]
    assert_holds(system, written)
    system.write(trips(YELLOW, 2, 50_000))
    assert_holds(system, [*written, trips(YELLOW, 2, 50_000)])


def place(system: System) -> Path:
    """Return the folder of the table: below its own folder, unless the catalog chooses a place."""
    if isinstance(system, IcebergTable):
        directory = system._directory(system._load())
        assert directory is not None
        return directory
    return system.context.directory


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, kind in of_kind(TableSystem).items()
        if Capability.ASKED in kind.capabilities | kind.of_release() and is_here(kind)
    ],
)
def test_client_that_never_wrote_reads_all_rows(open_table: OpenTable, name: str) -> None:
    system = open_table(of_kind(TableSystem)[name])
    write_all(system, [trips(YELLOW, 3), trips(YELLOW, 40, 3)])
    hold(read(system), 43)
    system.write(trips(YELLOW, 1, 43))
    hold(read(system), 44)


def visible_files(directory: Path) -> list[Path]:
    """Return the files of the table and of a catalog next to it, without names that begin with a dot."""
    relative = ((path, path.relative_to(directory).parts) for path in files_below(directory))
    return [path for path, parts in relative if not any(part.startswith(".") for part in parts)]


def test_footprint_matches_the_files_on_disk(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    write_all(system, [trips(YELLOW, 1), *(trips(YELLOW, 100, 100 * i) for i in range(1, 12))])
    footprint, files = system.footprint(), system.data_files()
    assert footprint.data_files == len(files)
    assert footprint.data_bytes == sum(path.stat().st_size for path in files)
    assert (footprint.catalog_bytes is None) == (footprint.reason is not None)
    on_disk = visible_files(place(system))
    rest = sum(path.stat().st_size for path in on_disk) - footprint.data_bytes - footprint.metadata_bytes
    assert rest in (0, footprint.catalog_bytes)
    assert footprint.data_files + footprint.metadata_files <= len(on_disk)
    sizes = [footprint]
    for start in range(5000, 8000, 1000):  # a server that vacuums its catalog gives space back, but not each time
        system.write(trips(YELLOW, 1000, start))
        sizes.append(system.footprint())
    total = [each.data_bytes + each.metadata_bytes + (each.catalog_bytes or 0) for each in sizes]
    assert max(total) > total[0] or not reads(system)


def test_thread_count_is_the_configured_one(kind: type[System], open_table: OpenTable) -> None:
    for threads in (1, 2):
        system = open_table(kind, threads=threads)
        write_all(system, [trips(YELLOW, 10)])
        assert (system.settings().get("threads") == str(threads)) or Capability.THREADS not in system.capabilities
        system.close()


def test_closes_twice(kind: type[System], open_table: OpenTable) -> None:
    never_used = open_table(kind)
    never_used.close()
    never_used.close()
    system = open_table(kind)
    write_all(system, [trips(YELLOW, 1)])
    system.close()
    system.close()


@pytest.mark.parametrize("name", [name for name, kind in of_kind(TableSystem).items() if Postgres in kind.needs])
def test_dropped_table_leaves_no_database(name: str, open_table: OpenTable, servers: Servers) -> None:
    """Databases of earlier windows are files that each later window looks for in the page cache."""
    postgres = servers.get(Postgres)
    before = databases(postgres)
    system = open_table(of_kind(TableSystem)[name])
    write_all(system, [trips(YELLOW, 1)])
    assert len(databases(postgres) - before) == 1
    system.close()
    system.drop()
    system.drop()
    assert databases(postgres) == before


def databases(postgres: Postgres) -> set[str]:
    with postgres.connect(autocommit=True) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database").fetchall()}


def test_declared_libraries_are_installed(kind: type[System]) -> None:
    """Match every declared name: a name without a package would leave the client's files out of those to be cold."""
    skip_where_it_is_not(kind)
    installed = [module.name for module in pkgutil.iter_modules()]
    for pattern in kind.libraries:
        found = fnmatch.filter(installed, pattern)
        assert found, pattern
        assert all(importlib.util.find_spec(name) is not None for name in found)
    packages = importlib.metadata.packages_distributions()  # distributions by import name
    for program in kind.versions():
        names = [name for name, distributions in packages.items() if program in distributions]
        declared = [name for name in names if any(fnmatch.fnmatch(name, each) for each in ("pyarrow", *kind.libraries))]
        assert declared or not names, f"{program} comes as {names}; its class names none of them in 'libraries'"


@pytest.mark.parametrize(("kind", "changed"), list(variants()))
def test_with_each_setting(kind: type[System], changed: dict[str, Any], open_table: OpenTable) -> None:
    options = kind.Options(**changed)
    reason = kind.unavailable(options)
    if reason is not None:
        pytest.skip(reason)
    system = open_table(kind, options)
    written = write_all(system, [trips(YELLOW, 10, 10 * i) for i in range(12)])
    assert_holds(system, written)
    assert system.commits() is None or reads(system)


def test_extreme_values_cover_every_type() -> None:
    assert {field.type for field in YELLOW} <= set(EXTREMES)


READERS = {
    "delta-rs": "DuckDB * delta extension",
    "iceberg-pyiceberg": "DuckDB * iceberg extension",
    "iceberg-duckdb": "PyIceberg *",
    "ducklake": "psycopg * and PyArrow *",
    "ducklake-quack": "DuckDB * quack extension (the catalog's tables, without DuckLake) and PyArrow *",
    "ducklake-sqlite": "SQLite * and PyArrow *",
    "ducklake-inlined-postgres": "psycopg * and PyArrow *",
    "ducklake-inlined": "DuckDB * ducklake extension, as the writer, on a copy of the catalog: *",
    "paimon": "fastavro * (the manifests, without Paimon's client) and PyArrow * (the Parquet files)",
    "null": "none: *",
}


def test_the_reader_is_named(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind)
    valid = Capability.READ_BY_OTHERS in system.capabilities
    readers = READERS | {"delta-duckdb": "delta-rs *" if valid else "DuckDB * delta extension, as the writer, *"}
    others = duckdb_client.has_extensions(("lance",))  # DuckDB has it from 1.5 on
    readers |= {"lance": "DuckDB * lance extension" if others else "pylance *, as the writer, *"}
    assert fnmatch.fnmatch(system.reader, readers.get(kind.name, "?*")), system.reader


@pytest.mark.parametrize("name", ["delta-rs", "iceberg-pyiceberg", "lance"])
def test_missing_reader_is_replaced_and_reported(
    name: str, open_table: OpenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = open_table(of_kind(TableSystem)[name])
    write_all(system, [trips(YELLOW, 3)])
    monkeypatch.setattr(duckdb_client, "extension_file", lambda _extension: None)
    assert fnmatch.fnmatch(system.reader, f"{system.client} * as the writer, on a separate *: *"), system.reader
    assert sorted(system.ids().to_pylist()) == [0, 1, 2]


def test_uncommitted_row_is_not_read(kind: type[System], open_table: OpenTable) -> None:
    """Keep a transaction of the writer open, and unseen, while the oracle reads."""
    system = open_table(kind)
    if not isinstance(system, DuckDBSystem):
        pytest.skip(f"{kind.client} has no transactions that stay open")
    write_all(system, [trips(YELLOW, 2)])
    system._writer.execute("BEGIN")
    system.write(trips(YELLOW, 1, 2))
    assert sorted(system.ids().to_pylist()) == [0, 1]
    system._writer.execute("COMMIT")
    assert sorted(system.ids().to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize(
    "name", [name for name, kind in of_kind(TableSystem).items() if Capability.HISTORY in kind.capabilities]
)
def test_history_holds_time_and_rows_of_each_commit(open_table: OpenTable, name: str) -> None:
    table = open_table(of_kind(TableSystem)[name])
    assert isinstance(table, TableSystem)
    table.create(YELLOW)
    assert (list(table.history()), table.visible_rows()) == ([], 0)
    began_ms, first = 1000 * time.time(), 0
    for count in (5, 1, 7):
        table.write(trips(YELLOW, count, first))
        first += count
        assert table.visible_rows() == first
    told = table.history()
    assert [each.rows for each in told] == [5, 1, 7]
    times = [each.at_ms for each in told]
    assert times == sorted(times) and began_ms - 2000 < times[0] and times[-1] < 1000 * time.time() + 2000
