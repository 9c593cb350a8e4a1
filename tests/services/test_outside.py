"""External servers given by their address; here they are real servers that the test starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tidemark.config import load
from tidemark.errors import ConfigError, ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service
from tidemark.services.http import is_loopback, keep_loopback_direct, open_url
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.kafka import Kafka
from tidemark.services.leftovers import drop_leftovers
from tidemark.services.outside import folder_of, read
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import free_ports
from tidemark.services.servers import prepared
from tidemark.systems.base import Context, System
from tidemark.systems.registry import registry

SHIPPED = Path(__file__).parents[2] / "config.yaml"
PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(scope="module")
def theirs(shared_workspace: Workspace) -> Iterator[Postgres]:
    """Yield a PostgreSQL server that requires a password."""
    with Postgres(shared_workspace, shared_workspace.work / "theirs") as server:
        yield server


def parted(server: Postgres) -> tuple[str, str]:
    """Return the server's address in the form that the configuration accepts, and the password."""
    parts = conninfo_to_dict(server.dsn)
    password = str(parts.pop("password"))
    return make_conninfo(**{key: str(value) for key, value in parts.items()}), password


@pytest.fixture
def address(theirs: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of `theirs`; its password is only in PGPASSWORD."""
    address, password = parted(theirs)
    monkeypatch.setenv("PGPASSWORD", password)
    return address


def use(system: str, services: dict[type[Service], Service], directory: Path, **options: str) -> None:
    """Create a table, write to it and read it back."""
    kind: type[System] = registry()[system]
    table = kind(Context(private_directory(directory), services, rows_per_write=3), kind.Options(**options))
    try:
        table.create(ROWS.schema)
        table.write(ROWS)
        assert sorted(table.ids().to_pylist()) == [1, 2, 3]
    finally:
        table.close()


def test_password_in_the_environment_reaches_every_client(workspace: Workspace, address: str) -> None:
    config = load(SHIPPED, [f"services.postgres_address={address}"])
    with prepared([IcebergRest], workspace, workspace.work, config.services) as servers:
        servers.start()
        assert servers.by_class[Postgres].pids() == [] and servers.by_class[IcebergRest].pids() != []
        services = dict(servers.by_class)
        use("iceberg-pyiceberg", services, workspace.work / "pyiceberg")
        use("ducklake", services, workspace.work / "ducklake")
    assert os.environ["PGPASSWORD"] not in config.effective


def test_passfile_reaches_jdbc(theirs: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, password = parted(theirs)
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"127.0.0.1:*:*:postgres:{password}\n")
    passfile.chmod(0o600)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    outside = Postgres(theirs.workspace, tmp_path / "none", address)
    port = conninfo_to_dict(address)["port"]
    assert outside.jdbc("template1") == (f"jdbc:postgresql://127.0.0.1:{port}/template1", "postgres", password)
    passfile.unlink()
    with pytest.raises(psycopg.OperationalError, match="no password"):
        outside.jdbc("template1")


def test_wrong_password_is_reported_as_an_unreachable_server(
    workspace: Workspace, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wr0ng-5ecret")
    with pytest.raises(ServiceError, match=r"cannot be reached.*authentication failed") as caught:
        Postgres(workspace, workspace.work / "none", address).start()
    assert "5ecret" not in str(caught.value)


def test_address_that_holds_a_password_is_refused_without_showing_it(theirs: Postgres) -> None:
    with pytest.raises(ConfigError, match="PGPASSWORD") as caught:
        load(SHIPPED, [f"services.postgres_address={theirs.dsn}"])
    assert parted(theirs)[1] not in str(caught.value)


@pytest.mark.parametrize("named", ["", "example.org, .internal"])
def test_loopback_servers_are_reached_without_a_proxy(
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


def test_remote_server_is_still_requested_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    (closed,) = free_ports(1)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed}")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(OSError, match="refused"):
        open_url("http://tidemark.invalid/", 5)
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "LOCALHOST", "localhost.org", None)] == [
        *[True] * 4, False, False,
    ]  # fmt: skip


MAKER = """
import sys, time
from pathlib import Path
import pyarrow as pa
from tidemark.config import ServicesConfig
from tidemark.services.servers import prepared
from tidemark.paths import Workspace, private_directory
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.kafka import Kafka
from tidemark.systems.registry import registry
from tidemark.systems.base import Context

root, kafka, postgres, rest, how = sys.argv[1:]
workspace = Workspace(Path(root))
config = ServicesConfig(kafka_address=kafka, postgres_address=postgres, iceberg_rest_address=rest)
rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
with prepared([Kafka, IcebergRest], workspace, workspace.work, config) as servers:
    servers.start()
    servers.by_class[Kafka].create_topic("tidemark-left")
    for name in ("ducklake", "iceberg-pyiceberg"):
        kind = registry()[name]
        folder = private_directory(workspace.work / name)
        table = kind(Context(folder, dict(servers.by_class), rows_per_write=3), kind.Options())
        table.create(rows.schema)
        table.write(rows)
    print("made", flush=True)
    if how == "killed":
        time.sleep(600)
"""


@dataclass(frozen=True, slots=True)
class Theirs:
    """External servers, and the objects on them."""

    postgres: Postgres
    kafka: Kafka
    rest: IcebergRest

    def everything(self) -> set[str]:
        with self.postgres.connect() as connection:
            databases = {row[0] for row in connection.execute("SELECT datname FROM pg_database").fetchall()}
        with open_url(f"{self.rest.uri}/v1/namespaces", 10) as answer:
            namespaces = {".".join(each) for each in json.load(answer)["namespaces"]}
        # The broker still lists a topic briefly after it has agreed to delete it.
        return databases | namespaces | set(self.kafka.topics())

    def settles_at(self, expected: set[str]) -> bool:
        deadline = time.monotonic() + 10
        while self.everything() != expected and time.monotonic() < deadline:
            time.sleep(0.2)
        return self.everything() == expected


@pytest.fixture(scope="module")
def all_theirs(shared_workspace: Workspace, theirs: Postgres) -> Iterator[Theirs]:
    work = shared_workspace.work
    with (
        Kafka(shared_workspace, work / "their-kafka", heap_mb=256) as kafka,
        IcebergRest(shared_workspace, work / "their-rest", theirs, str(work / "their-warehouse")) as rest,
    ):
        kafka.create_topic("tidemark-theirs")
        theirs.create_database("ducklake_theirs")
        yield Theirs(theirs, kafka, rest)


def make(workspace: Workspace, servers: Theirs, how: str) -> subprocess.Popen[str]:
    """Start another process that creates objects on the servers; return once it has created them."""
    address, password = parted(servers.postgres)
    command = [sys.executable, "-c", MAKER, workspace.root, servers.kafka.bootstrap, address, servers.rest.uri, how]
    maker = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PGPASSWORD": password},
    )
    assert maker.stdout is not None and maker.stdout.readline() == "made\n"
    return maker


def test_objects_on_external_servers_are_dropped_at_the_end(workspace: Workspace, all_theirs: Theirs) -> None:
    before = all_theirs.everything()
    assert {"tidemark-theirs", "ducklake_theirs"} < before
    assert make(workspace, all_theirs, "to the end").wait(60) == 0
    assert all_theirs.settles_at(before)
    assert list(folder_of(workspace).glob("*.jsonl")) == []


def test_objects_of_a_killed_process_are_dropped_by_the_next_one(
    workspace: Workspace, all_theirs: Theirs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = all_theirs.everything()
    maker = make(workspace, all_theirs, "killed")
    try:
        left = all_theirs.everything() - before
        assert len(left) == 3, "a topic, a database, a namespace"
        _, password = parted(all_theirs.postgres)
        (ledger,) = folder_of(workspace).glob("*.jsonl")
        assert password not in ledger.read_text() and {made.name for made in read(ledger)} == left
        monkeypatch.setenv("PGPASSWORD", password)
        drop_leftovers(workspace)
        assert all_theirs.everything() - before == left, "its process lives"
    finally:
        maker.kill()
        maker.wait(30)
    monkeypatch.setenv("PGPASSWORD", "wrong")
    drop_leftovers(workspace)
    said = capsys.readouterr().err
    assert "could not be dropped" in said and "authentication failed" in said and str(ledger) in said
    (database,) = {made.name for made in read(ledger)}
    assert all_theirs.settles_at(before | {database}), "the others could be"
    monkeypatch.setenv("PGPASSWORD", password)
    drop_leftovers(workspace)
    assert all_theirs.settles_at(before)
    assert not ledger.exists() and capsys.readouterr().err == ""
    drop_leftovers(workspace)


def test_objects_of_others_are_never_dropped(workspace: Workspace, all_theirs: Theirs) -> None:
    before = all_theirs.everything()
    postgres = Postgres(workspace, workspace.work / "none", all_theirs.postgres.dsn)
    kafka = Kafka(workspace, workspace.work / "none", all_theirs.kafka.bootstrap)
    with pytest.raises(psycopg.errors.DuplicateDatabase):
        postgres.create_database("ducklake_theirs")
    with pytest.raises(ServiceError, match="already exists"):
        kafka.create_topic("tidemark-theirs")
    assert list(folder_of(workspace).glob("*.jsonl")) == []
    for service in (postgres, kafka):
        service.remove_data()
    assert all_theirs.everything() == before


def test_object_that_an_earlier_version_noted_is_reported_with_its_server(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = private_directory(folder_of(workspace)) / "1-a.jsonl"
    ledger.write_text(json.dumps({"made": {"service": "kafka", "address": {"bootstrap": "b:1"}, "name": "one"}}))
    drop_leftovers(workspace)
    said = capsys.readouterr().err
    assert "one, which" in said and "noted its server as {'bootstrap': 'b:1'}; drop it there" in said
    assert [made.name for made in read(ledger)] == ["one"]


def test_ledger_line_cut_off_by_a_crash_is_ignored(tmp_path: Path) -> None:
    whole = {"made": {"service": "kafka", "address": {"bootstrap": "b:1"}, "name": "one"}}
    path = tmp_path / "1-a.jsonl"
    path.write_text(json.dumps(whole) + "\n" + json.dumps(whole).replace("one", "two")[:-5])
    assert [made.name for made in read(path)] == ["one"]
