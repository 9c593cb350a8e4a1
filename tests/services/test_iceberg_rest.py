from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import psycopg
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.postgres import Postgres


@pytest.fixture(scope="module")
def postgres(shared_workspace: Workspace) -> Iterator[Postgres]:
    with Postgres(shared_workspace, shared_workspace.work / "postgres") as server:
        yield server


@pytest.fixture(scope="module")
def rest(shared_workspace: Workspace, postgres: Postgres) -> Iterator[IcebergRest]:
    warehouse = str(shared_workspace.work / "warehouse")
    with IcebergRest(shared_workspace, shared_workspace.work / "rest", postgres, warehouse) as server:
        yield server


def test_server_is_the_pinned_version(rest: IcebergRest) -> None:
    assert rest.version() == "1.10.1"


def test_server_listens_on_loopback_only(rest: IcebergRest, listening: Callable[[Iterable[int]], set[str]]) -> None:
    assert listening(rest.pids()) == {"127.0.0.1"}


def test_tables_are_committed_through_the_server_and_kept_in_postgresql(rest: IcebergRest) -> None:
    catalog = load_catalog("test", type="rest", uri=rest.uri)
    catalog.create_namespace("trips")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    table = catalog.create_table("trips.yellow", schema=rows.schema)
    table.append(rows)
    table.append(rows)
    assert catalog.load_table("trips.yellow").scan().to_arrow().num_rows == 6
    assert Path(table.location()).is_relative_to(rest.warehouse)
    rest.restart()
    again = load_catalog("test", type="rest", uri=rest.uri)
    assert again.load_table("trips.yellow").scan().to_arrow().num_rows == 6


def test_database_password_is_in_no_log_and_no_argument(rest: IcebergRest, postgres: Postgres) -> None:
    password = str(psycopg.conninfo.conninfo_to_dict(postgres.dsn)["password"])
    logs = [path.read_text(errors="replace") for path in rest.directory.glob("*.log")]
    assert any(logs), "the server writes a log"
    assert not any(password in log for log in logs)
    assert password not in "".join(part for pid in rest.pids() for part in psutil.Process(pid).cmdline())


def test_files_list_the_program(rest: IcebergRest) -> None:
    names = {p.name for p in rest.files().program}
    assert {"iceberg-open-api-1.10.1.jar", "postgresql-42.7.8.jar", "launcher.jar"} <= names


def test_classes_are_loaded_from_the_archive_that_the_cold_proof_checks(rest: IcebergRest) -> None:
    (archive,) = (path for path in rest.files().program if path.suffix == ".jsa")
    (pid,) = rest.pids()
    assert str(archive) in {region.path for region in psutil.Process(pid).memory_maps()}


def test_external_catalog_is_reached_and_left_running(rest: IcebergRest) -> None:
    outside = IcebergRest(rest.workspace, rest.directory / "none", address=rest.uri)
    with outside:
        assert outside.uri == rest.uri and outside.pids() == []
    outside.remove_data()
    urllib.request.urlopen(f"{rest.uri}/v1/config", timeout=10).close()


def test_killed_server_is_reported_restarted_and_removed(
    workspace: Workspace, postgres: Postgres, wait_until_gone: Callable[[Iterable[int]], list[int]]
) -> None:
    warehouse = workspace.work / "warehouse"
    server = IcebergRest(workspace, workspace.work / "rest", postgres, str(warehouse))
    server.start()
    pids = server.pids()
    os.kill(pids[0], signal.SIGKILL)
    wait_until_gone(pids)
    with pytest.raises(ServiceError) as caught:
        server.check()
    assert "SIGKILL" in str(caught.value) and str(server.log_path) in str(caught.value)
    server.restart()
    pids = server.pids()
    server.remove_data()
    server.stop()
    assert wait_until_gone(pids) == []
    assert not warehouse.exists()
    with postgres.connect() as connection:
        names = [row[0] for row in connection.execute("SELECT datname FROM pg_database").fetchall()]
    assert len([name for name in names if name.startswith("tidemark_iceberg")]) == 1, "its own is dropped"
