"""An external server is reported as external, without the promises of servers that Tidemark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.services.base import Service
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.postgres import Postgres
from tidemark.systems.base import Context, System
from tidemark.systems.ducklake.servers import DuckLake, DuckLakeInlinedPostgres
from tidemark.systems.iceberg.iceberg_duckdb import IcebergDuckDB
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg

from .conftest import Servers
from .trips import YELLOW, trips


def assert_works(kind: type[System], directory: Path, services: dict[type[Service], Service]) -> System:
    """Write and read a row in a table of `kind` over `services`; return the closed system."""
    system = kind(Context(directory, services, rows_per_write=1), kind.Options())
    try:
        system.create(YELLOW)
        system.write(trips(YELLOW, 1))
        assert system.ids().to_pylist() == [0]
    finally:
        system.close()
    return system


@pytest.fixture
def theirs(servers: Servers, tmp_path: Path) -> Postgres:
    """Return a PostgreSQL that is already running, known only by its address."""
    running = servers.get(Postgres)
    assert isinstance(running, Postgres)
    return Postgres(servers.workspace, tmp_path / "none", running.dsn)


@pytest.mark.parametrize("kind", [DuckLake, DuckLakeInlinedPostgres])
def test_external_postgres_is_reported(kind: type[System], theirs: Postgres, servers: Servers, tmp_path: Path) -> None:
    system = assert_works(kind, tmp_path, {Postgres: theirs})
    assert system.catalog == "PostgreSQL, a server of the user's own"
    assert system.durability.counted is None, "nothing was counted on it: its settings were read"
    assert "not one that Tidemark started" in system.durability.source
    ours = kind(Context(tmp_path, {Postgres: servers.get(Postgres)}, rows_per_write=1), kind.Options())
    assert ours.catalog == "PostgreSQL"
    assert ours.durability == kind.durability


@pytest.mark.parametrize("kind", [IcebergPyIceberg, IcebergDuckDB])
def test_external_rest_catalog_is_reported(kind: type[System], servers: Servers, tmp_path: Path) -> None:
    running = servers.get(IcebergRest)
    assert isinstance(running, IcebergRest)
    outside = IcebergRest(servers.workspace, tmp_path / "none", address=running.uri)
    system = assert_works(kind, tmp_path, {IcebergRest: outside})
    assert system.catalog == "Iceberg REST, a server of the user's own"
    assert "what it flushes is not known" in system.durability.summary and system.durability.counted is None
    assert not any("reference server" in note for note in system.notes)
    assert any("a server of the user's own" in note for note in system.notes)


def test_tidemark_rest_catalog_over_external_postgres(theirs: Postgres, servers: Servers, tmp_path: Path) -> None:
    """Start Tidemark's own catalog over a server whose flushes are not its own."""
    workspace = servers.workspace
    directory = workspace.work / "over-theirs"
    with IcebergRest(workspace, directory, theirs, str(directory / "warehouse")) as server:
        system = assert_works(IcebergPyIceberg, tmp_path, {IcebergRest: server})
        assert system.catalog == "Iceberg REST, reference server"
        assert system.durability.counted is None
        assert "not one that Tidemark started" in system.durability.source
        server.remove_data()
