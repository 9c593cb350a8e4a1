"""Servers of the user's own, which are real ones here that the test started and gives by their address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tidemark.config import load
from tidemark.errors import ConfigError, ServiceError
from tidemark.measure.servers import prepared
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service
from tidemark.services.http import is_loopback, keep_loopback_direct, open_url
from tidemark.services.iceberg_rest import IcebergRest
from tidemark.services.postgres import Postgres, PostgresSettings
from tidemark.services.process import free_ports
from tidemark.systems import registry
from tidemark.systems.base import Context, System

pytestmark = pytest.mark.services
SHIPPED = Path(__file__).parents[2] / "config.yaml"
PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(scope="module")
def theirs(shared_workspace: Workspace) -> Iterator[Postgres]:
    """A PostgreSQL that asks for a password."""
    with Postgres(shared_workspace, shared_workspace.work / "theirs", PostgresSettings()) as server:
        yield server


def parted(server: Postgres) -> tuple[str, str]:
    """The server's address, as the configuration may hold it, and the password."""
    parts = conninfo_to_dict(server.dsn)
    password = str(parts.pop("password"))
    return make_conninfo(**{key: str(value) for key, value in parts.items()}), password


@pytest.fixture
def address(theirs: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of `theirs`, its password in PGPASSWORD alone."""
    address, password = parted(theirs)
    monkeypatch.setenv("PGPASSWORD", password)
    return address


def use(system: str, services: dict[type[Service], Service], directory: Path, **options: str) -> None:
    """Make a table, write to it and read it back."""
    kind: type[System] = registry()[system]
    table = kind(Context(private_directory(directory), services, rows_per_write=3), kind.Options(**options))
    try:
        table.create(ROWS.schema)
        table.write(ROWS)
        assert sorted(table.ids().to_pylist()) == [1, 2, 3]
    finally:
        table.close()


def test_a_password_in_the_environment_reaches_every_client(workspace: Workspace, address: str) -> None:
    config = load(SHIPPED, [f"services.postgres_address={address}"])
    with prepared([IcebergRest], workspace, workspace.work, config.services) as servers:
        servers.start()
        assert servers.by_class[Postgres].pids() == [] and servers.by_class[IcebergRest].pids() != []
        services = dict(servers.by_class)
        use("iceberg-pyiceberg", services, workspace.work / "pyiceberg")
        use("ducklake", services, workspace.work / "ducklake")
    assert os.environ["PGPASSWORD"] not in config.effective


def test_a_passfile_reaches_jdbc(theirs: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, password = parted(theirs)
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"127.0.0.1:*:*:postgres:{password}\n")
    passfile.chmod(0o600)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    outside = Postgres(theirs.workspace, tmp_path / "none", PostgresSettings(address))
    port = conninfo_to_dict(address)["port"]
    assert outside.jdbc("template1") == (f"jdbc:postgresql://127.0.0.1:{port}/template1", "postgres", password)
    passfile.unlink()
    with pytest.raises(psycopg.OperationalError, match="no password"):
        outside.jdbc("template1")


def test_a_wrong_password_is_a_server_that_cannot_be_reached(
    workspace: Workspace, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wr0ng-5ecret")
    with pytest.raises(ServiceError, match=r"cannot be reached.*authentication failed") as caught:
        Postgres(workspace, workspace.work / "none", PostgresSettings(address)).start()
    assert "5ecret" not in str(caught.value)


def test_the_whole_address_of_a_real_server_is_refused_with_its_password(theirs: Postgres) -> None:
    with pytest.raises(ConfigError, match="PGPASSWORD") as caught:
        load(SHIPPED, [f"services.postgres_address={theirs.dsn}"])
    assert parted(theirs)[1] not in str(caught.value)


@pytest.mark.parametrize("named", ["", "example.org, .internal"])
def test_no_proxy_stands_between_us_and_our_servers(
    named: str, workspace: Workspace, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (closed,) = free_ports(1)
    for variable in PROXIES:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{closed}")
    monkeypatch.setenv("NO_PROXY", named)
    monkeypatch.setenv("no_proxy", "")
    config = load(SHIPPED, [f"services.postgres_address={address}"])
    with prepared([IcebergRest], workspace, workspace.work, config.services) as servers:
        servers.start()
        services = dict(servers.by_class)
        with pytest.raises(Exception, match=r"(?i)proxy|connection"):
            use("iceberg-pyiceberg", services, workspace.work / "before")
        keep_loopback_direct()
        use("iceberg-pyiceberg", services, workspace.work / "pyiceberg")
        for client in ("default", "curl"):
            use("iceberg-duckdb", services, workspace.work / f"duckdb-{client}", http_client=client)
    kept = os.environ["no_proxy"].split(",")
    assert os.environ["NO_PROXY"].split(",") == kept
    assert set(kept) == {"127.0.0.1", "localhost", "::1", *(each for each in named.split(", ") if each)}


def test_a_server_elsewhere_is_still_asked_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    (closed,) = free_ports(1)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed}")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(OSError, match="refused"):
        open_url("http://tidemark.invalid/", 5)
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "LOCALHOST", "localhost.org", None)] == [
        *[True] * 4, False, False,
    ]  # fmt: skip
