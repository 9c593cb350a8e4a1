"""One test for each known trap in a release of a client or server; it fails if the trap takes effect again."""

from __future__ import annotations

import itertools
import json
import math
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException

from tidemark.errors import SystemFailure
from tidemark.measure import table_calls
from tidemark.systems import duckdb_client
from tidemark.systems.base import System
from tidemark.systems.delta.delta_duckdb import DeltaDuckDB
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.delta.table import DeltaRsOptions
from tidemark.systems.duckdb_table import DuckDBSystem
from tidemark.systems.ducklake.files import LOSES_NAN, DuckLakeInlined, DuckLakeSqlite
from tidemark.systems.ducklake.servers import DuckLake, DuckLakeInlinedPostgres, DuckLakeQuack
from tidemark.systems.iceberg import client as pyiceberg_client
from tidemark.systems.iceberg.iceberg_duckdb import ONE_TABLE, IcebergDuckDB, IcebergDuckDBOptions
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg, PyIcebergOptions
from tidemark.systems.iceberg.table import CODEC, IcebergTable
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

from .conftest import is_here
from .trips import YELLOW, trips, with_column

OpenTable = Callable[..., Any]


ALL_EXTENSIONS = ("ducklake", "postgres_scanner", "avro", "httpfs", "iceberg", "delta")


def test_duckdb_writes_nothing_to_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with duckdb_client.connect(ALL_EXTENSIONS, tmp_path / "table") as connection:
        connection.execute("CREATE SECRET (TYPE http)")
        settings = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
    assert list(home.iterdir()) == []
    for name in ("home_directory", "secret_directory", "temp_directory", "extension_directory"):
        assert settings[name].startswith(str(tmp_path / "table")), name


def test_duckdb_fetches_no_extension_by_itself() -> None:
    with duckdb_client.connect(()) as connection, pytest.raises(duckdb.Error):
        connection.execute("FROM read_json('http://127.0.0.1:1/x.json')")
    with duckdb_client.connect(()) as connection:
        loaded = connection.execute(
            "SELECT count(*) FROM duckdb_extensions() WHERE loaded AND extension_name = 'httpfs'"
        )
        assert loaded.fetchall() == [(0,)]


def test_every_extension_that_a_system_needs_is_installed() -> None:
    wanted = {
        e
        for kind in of_kind(TableSystem).values()
        if issubclass(kind, DuckDBSystem) and is_here(kind)
        for e in kind.extensions
    }
    assert wanted
    assert duckdb_client.missing_extensions(sorted(wanted)) is None
    assert duckdb_client.missing_extensions(["no_such_thing"]) is not None


def test_ducklake_without_inlining_inlines_nothing(open_table: OpenTable) -> None:
    system = open_table(DuckLake)
    system.create(YELLOW)
    system.write(trips(YELLOW, 1))
    assert system.inlined_rows() == 0
    assert len(system.data_files()) == 1
    assert system.settings()["data_inlining_row_limit"] == "0"


def test_ducklake_inlining_above_its_limit_is_detected(open_table: OpenTable) -> None:
    system = open_table(DuckLake)
    system.create(YELLOW)
    system._writer.execute("CALL lake.set_option('data_inlining_row_limit', 10)")
    system.write(trips(YELLOW, 3))
    with pytest.raises(SystemFailure, match="3 rows are inlined"):
        system.footprint()


@pytest.mark.parametrize("kind", [DuckLake, DuckLakeInlined, DuckLakeSqlite, DuckLakeQuack])
def test_writes_are_inlined_up_to_the_configured_row_limit(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind, kind.Options(inline_rows=3))
    system.create(YELLOW)
    for rows, inlined in ((3, 3), (4, 3), (1, 4)):
        system.write(trips(YELLOW, rows, 10 * rows))
        assert system.inlined_rows() == inlined
    assert table_calls.flush(system).rows == 4
    assert sorted(system.ids().to_pylist()) == [10, 30, 31, 32, 40, 41, 42, 43]
    none = open_table(kind, kind.Options(inline_rows=0))
    none.create(YELLOW)
    none.write(trips(YELLOW, 1))
    assert none.inlined_rows() == 0 and table_calls.flush(none) is None


def test_nan_is_kept_unless_noted(open_table: OpenTable) -> None:
    for rows, keeps in ((0, True), (1, duckdb_client.DUCKDB.release().ducklake_inlines_nan)):
        system = open_table(DuckLakeSqlite, DuckLakeSqlite.Options(inline_rows=rows))
        system.create(YELLOW)
        system.write(with_column(trips(YELLOW, 1), "tip_amount", pa.array([math.nan])))
        assert (str(system.read().column("tip_amount").to_pylist()[0]) == "nan") == keeps
        assert (LOSES_NAN in system.notes) != keeps


@pytest.mark.parametrize("kind", [DuckLakeInlined, DuckLakeInlinedPostgres])
def test_inlining_ends_above_the_rows_of_a_write(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind, rows_per_write=5)
    system.create(YELLOW)
    system.write(trips(YELLOW, 6))
    assert system.inlined_rows() == 6
    system.write(trips(YELLOW, 7, 6))
    assert system.inlined_rows() == 6
    assert len(system.data_files()) == 1


def test_password_of_the_catalog_stays_out_of_sql(open_table: OpenTable) -> None:
    system = open_table(DuckLake)
    system.create(YELLOW)
    password = (system.context.directory / ".pgpass").read_text().strip().rpartition(":")[2]
    assert len(password) > 10
    assert password not in system._catalog_address
    assert password not in str(system._writer.execute("FROM duckdb_databases()").fetchall())
    assert stat.S_IMODE((system.context.directory / ".pgpass").stat().st_mode) == 0o600


def test_reference_server_would_choose_zstd(open_table: OpenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    system = open_table(IcebergPyIceberg)
    system.create(YELLOW)
    assert system.settings()[CODEC] == "snappy"
    careless = open_table(IcebergPyIceberg)
    monkeypatch.setattr(careless, "_properties", dict)
    careless.create(YELLOW)
    careless.write(trips(YELLOW, 1))
    (file,) = careless.data_files()
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


def test_duckdb_gets_the_folders_that_it_does_not_create(open_table: OpenTable) -> None:
    system = open_table(IcebergDuckDB)
    with duckdb_client.connect(IcebergDuckDB.extensions) as connection:
        system.create(YELLOW)
        system._attach(connection)
        own = f"CREATE TABLE iceberg.{system._namespace}.own AS SELECT 1 AS id"
        with pytest.raises(duckdb.Error, match="No such file or directory"):
            connection.execute(own)
    assert (system.context.directory / "table" / "metadata").is_dir()
    system.write(trips(YELLOW, 1))
    assert (system.context.directory / "table" / "data").is_dir()


@contextmanager
def listener() -> Iterator[tuple[str, list[str]]]:
    """Yield an address with capital letters, and the list of paths requested from it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/API/Catalog", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_duckdb_release_that_changes_case_refuses_an_address_with_capitals(
    open_table: OpenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeps_case = duckdb_client.DUCKDB.release().iceberg_keeps_case_of_endpoint
    with listener() as (address, asked):
        with duckdb_client.connect(IcebergDuckDB.extensions) as connection, pytest.raises(duckdb.Error):
            connection.execute(f"ATTACH '' AS x (TYPE iceberg, ENDPOINT '{address}', AUTHORIZATION_TYPE 'none')")
        assert asked
        assert all(path.startswith("/API/Catalog") == keeps_case for path in asked)
        system = open_table(IcebergDuckDB)
        monkeypatch.setattr(type(system._rest), "uri", address)
        refused = pytest.raises(duckdb.Error if keeps_case else SystemFailure)
        with duckdb_client.connect(IcebergDuckDB.extensions) as connection, refused:
            system._attach(connection)


@pytest.mark.parametrize("client", ["default", "curl"])
def test_http_client_is_the_configured_one(client: str, open_table: OpenTable) -> None:
    system = open_table(IcebergDuckDB, IcebergDuckDBOptions(http_client=client))
    system.create(YELLOW)
    assert system.settings()["httpfs_client_implementation"] == client
    assert IcebergDuckDBOptions().http_client == "default"


def test_iceberg_keeps_commits_beside_expiries_if_they_go_to_the_endpoint_of_one_table(open_table: OpenTable) -> None:
    """The finding iceberg-transactions: at the other endpoint some 14 of 100 commits are lost so."""
    options = IcebergDuckDBOptions(commit_endpoint=ONE_TABLE)
    if reason := IcebergDuckDB.unavailable(options):
        pytest.skip(reason)
    system = open_table(IcebergDuckDB, options)
    system.create(YELLOW)
    system.write(trips(YELLOW, 1))
    expiries, is_over = itertools.count(), threading.Event()

    def expire() -> None:
        while not is_over.is_set():
            with suppress(CommitFailedException):
                pyiceberg_client.expire_snapshots(system._load())
                next(expiries)

    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(expire)
        for number in range(1, 60):
            system.write(trips(YELLOW, 1, number))
        is_over.set()
        beside.result()
    assert sorted(system.ids().to_pylist()) == list(range(60))
    assert next(expiries) > 10


def log_entries(system: System, action: str) -> list[dict[str, Any]]:
    """Return the entries for one kind of action in the Delta log's JSON files, oldest first."""
    files = sorted((system.context.directory / "table" / "_delta_log").glob("*.json"))
    entries = [json.loads(line) for file in files for line in file.read_text().splitlines() if line]
    return [entry[action] for entry in entries if action in entry]


def test_delta_log_of_duckdb_is_valid_if_its_release_declares_it(open_table: OpenTable) -> None:
    system = open_table(DeltaDuckDB)
    system.create(YELLOW)
    system.write(trips(YELLOW, 7))
    (added,) = log_entries(system, "add")
    (file,) = system.data_files()
    is_right = not added["path"].startswith("/") and added["size"] == file.stat().st_size
    assert is_right == duckdb_client.DUCKDB.release().delta_log_is_valid


@pytest.mark.parametrize("interval", [10, 3])
def test_delta_rs_makes_checkpoints_at_the_configured_interval(interval: int, open_table: OpenTable) -> None:
    system = open_table(DeltaRs, DeltaRsOptions(checkpoint_interval=interval))
    system.create(YELLOW)
    for first in range(12):
        system.write(trips(YELLOW, 1, first))
    assert system.settings()["delta.checkpointInterval"] == str(interval)
    assert system.settings()["checkpoints"] == str(13 // interval)


def test_pyiceberg_expires_snapshots_of_each_table_separately(open_table: OpenTable) -> None:
    tables = [open_table(IcebergPyIceberg, PyIcebergOptions(expire_every=3)) for _ in range(2)]
    for system in tables:
        system.create(YELLOW)
    for first in range(8):
        for system in tables:
            system.write(trips(YELLOW, 1, first))
    for system in tables:
        assert len(system._load().metadata.snapshots) == 3
        assert sorted(system.ids().to_pylist()) == list(range(8))


def metadata_files(system: IcebergTable) -> list[Path]:
    table = system._load()  # a catalog that chooses its tables' locations does not put them below the table's folder
    directory = system._directory(table)
    assert directory is not None, table.location()
    return sorted((directory / "metadata").glob("*.metadata.json"))


def test_pyiceberg_keeps_metadata_files_only_as_configured(open_table: OpenTable) -> None:
    growing = open_table(IcebergPyIceberg)
    bounded = open_table(IcebergPyIceberg, PyIcebergOptions(delete_after_commit=True, previous_versions_max=2))
    for system in (growing, bounded):
        system.create(YELLOW)
        for first in range(6):
            system.write(trips(YELLOW, 1, first))
    assert len(metadata_files(growing)) == 7
    assert len(metadata_files(bounded)) == 3
    # The snapshot list is not bounded by these properties, only by expiry.
    assert len(bounded._load().metadata.snapshots) == 6


def test_pyiceberg_merges_manifests_only_if_configured(open_table: OpenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {}
    for merge in (False, True):
        system = open_table(IcebergPyIceberg, PyIcebergOptions(manifest_merge=merge))
        properties = {**system._properties(), "commit.manifest.min-count-to-merge": "4"}
        monkeypatch.setattr(system, "_properties", lambda properties=properties: properties)
        system.create(YELLOW)
        for first in range(6):
            system.write(trips(YELLOW, 1, first))
        table = system._load()
        counts[merge] = len(table.current_snapshot().manifests(table.io))
        assert sorted(system.ids().to_pylist()) == list(range(6))
    assert counts[False] == 6
    assert counts[True] < 4


def test_pyiceberg_has_as_many_workers_as_threads(open_table: OpenTable) -> None:
    for threads in (1, 3):
        system = open_table(IcebergPyIceberg, threads=threads)
        system.create(YELLOW)
        system.write(trips(YELLOW, 1))
        assert system.settings()["threads"] == str(threads)


def test_unity_catalog_is_never_silently_left_out() -> None:
    for kind in (DeltaRs, DeltaDuckDB):
        assert "unity_address" in str(kind.unavailable(kind.Options(catalog="unity")))
        assert kind.unavailable(kind.Options(catalog="unity", unity_address="http://127.0.0.1:1")) is None


def test_notes_describe_the_role_of_unity_catalog(open_table: OpenTable) -> None:
    plain = open_table(DeltaRs)
    registered = open_table(DeltaRs, DeltaRsOptions(catalog="unity", unity_address="http://127.0.0.1:1"))
    assert "no catalog service" in plain.notes
    assert "no catalog service" not in registered.notes
    assert "registered in, not committed through, Unity Catalog" in registered.notes
    with pytest.raises(SystemFailure, match="unity_address"):
        registered.create(YELLOW)


def test_timestamp_property_is_not_a_setting(open_table: OpenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out Polaris's table property `created-at`, which would differ between any two runs."""
    system = open_table(IcebergPyIceberg)
    properties = {**system._properties(), "created-at": "2025-11-01T00:00:00Z"}
    monkeypatch.setattr(system, "_properties", lambda: properties)
    system.create(YELLOW)
    assert "created-at" in system._load().properties
    assert "created-at" not in system.settings()
    assert system.settings()[CODEC] == "snappy"


def test_checkpoint_interval_other_than_the_clients_default_is_noted(open_table: OpenTable) -> None:
    notes = {
        interval: open_table(DeltaRs, DeltaRsOptions(checkpoint_interval=interval)).notes for interval in (10, 100)
    }
    said = {interval: [note for note in each if "checkpoint" in note] for interval, each in notes.items()}
    assert said[100] == []
    assert len(said[10]) == 1 and "every 10 commits" in said[10][0] and "every 100" in said[10][0]
    plain = open_table(DeltaRs, None)
    assert plain.options.checkpoint_interval == 10
