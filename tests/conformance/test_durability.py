"""What is said of durability is what strace counts, and what PostgreSQL says of itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidemark.measure.servers import in_order
from tidemark.paths import Workspace
from tidemark.services.base import Service
from tidemark.services.iceberg_rest import IcebergRest, IcebergRestNio, IcebergRestSettings
from tidemark.services.postgres import Postgres, PostgresSettings
from tidemark.systems import registry
from tidemark.systems.base import NONE_PER_WRITE, Context, Durability, PerWrite, System
from tidemark.systems.ducklake import DuckLake, DuckLakeInlinedPostgres
from tidemark.systems.iceberg_pyiceberg import IcebergPyIceberg

from .conftest import Servers
from .strace import Call, Counts, counts, parse, trace_writes, why_not
from .traced_client import BATCH, SINGLE
from .trips import YELLOW, trips

pytestmark = pytest.mark.services

Counted = Mapping[str, Mapping[str, Counts]]


@pytest.fixture
def count(servers: Servers, tmp_path: Path) -> Callable[..., Counted]:
    """A function that counts what the writes of a system, on our servers or others, ask the kernel for."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)

    def count(
        kind: type[System],
        options: Mapping[str, Any] | None = None,
        services: Mapping[type[Service], Service] | None = None,
        more_syncs: int = 0,
    ) -> Counted:
        given = options or {}
        ours = {each: servers.get(each) for each in in_order(kind.needs_for(kind.Options(**given)))}
        return trace_writes(kind.name, given, services or ours, tmp_path, more_syncs)

    return count


def opened(kind: type[System], options: Any, services: Mapping[type[Service], Service], directory: Path) -> System:
    directory.mkdir()
    return kind(Context(directory, services, rows_per_write=10), options)


def assert_within(expected: PerWrite, found: float, what: str) -> None:
    assert expected.least <= found <= expected.most, f"{what}: {found:.2f} a write, {expected} declared"


def assert_declared(
    durability: Durability, programs: Mapping[type[Service], PerWrite], counted: Counted, kinds: list[type[Service]]
) -> None:
    """Client and servers sync, and servers start programs, as often as is declared; nobody else does."""
    assert set(durability.server_syncs_per_write) | set(programs) <= set(kinds)
    for part in (SINGLE, BATCH):
        client = counted["client"][part]
        assert_within(durability.client_syncs_per_write, client.syncs_per_write, f"client, {part}, {client.syncs}")
        assert client.programs == 0
        for kind in kinds:
            found, name = counted[kind.name][part], f"{kind.title}, {part}"
            syncs = durability.server_syncs_per_write.get(kind, NONE_PER_WRITE)
            assert_within(syncs, found.syncs_per_write, f"{name}, {found.syncs}")
            assert_within(programs.get(kind, NONE_PER_WRITE), found.programs_per_write, f"{name}, programs")


def declared(kind: type[System], options: Mapping[str, Any], servers: Servers, directory: Path) -> tuple[Any, ...]:
    """What a table of this kind says of itself, and the servers that take part in it."""
    chosen = kind.Options(**options)
    kinds = in_order(kind.needs_for(chosen))
    with closing(opened(kind, chosen, {each: servers.get(each) for each in kinds}, directory / "said")) as system:
        system.create(YELLOW)
        return system.durability, system.programs_per_write, kinds


@pytest.mark.parametrize("kind", registry().values(), ids=registry().keys())
def test_syncs_are_as_declared(
    kind: type[System], count: Callable[..., Counted], servers: Servers, tmp_path: Path
) -> None:
    durability, programs, kinds = declared(kind, {}, servers, tmp_path)
    assert durability.counted == Durability("").counted
    assert_declared(durability, programs, count(kind), kinds)


def test_one_sync_more_is_found_out(count: Callable[..., Counted], servers: Servers, tmp_path: Path) -> None:
    durability, programs, kinds = declared(registry()["delta-rs"], {}, servers, tmp_path)
    counted = count(registry()["delta-rs"], more_syncs=1)
    assert counted["client"][SINGLE].syncs_per_write == counted["client"][BATCH].syncs_per_write == 1
    with pytest.raises(AssertionError, match=r"client, single.*1\.00 a write, 0 declared"):
        assert_declared(durability, programs, counted, kinds)


def test_a_sync_of_a_server_that_declares_none_is_found_out() -> None:
    one, none = Counts(20), Counts(20)
    one.syncs["fdatasync"] = 20
    counted = {"client": {SINGLE: none, BATCH: none}, "postgres": {SINGLE: one, BATCH: one}}
    with pytest.raises(AssertionError, match=r"PostgreSQL, single.*1\.00 a write, 0 declared"):
        assert_declared(Durability(""), {}, counted, [Postgres])


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("12 1.5 fdatasync(5</d/pg_wal/0001>) = 0", Call(12, 1.5, "fdatasync", "/d/pg_wal/0001")),
        ("12 1.5 fsync(5</d/a>", Call(12, 1.5, "fsync", "/d/a")),
        ("12 1.5 fsync(5</d/a> <unfinished ...>", Call(12, 1.5, "fsync", "/d/a")),
        ("12 1.6 <... fsync resumed>) = 0", None),
        ("12 1.5 sync() = 0", Call(12, 1.5, "sync", None)),
        ("12 1.5 msync(0x7f, 4096, MS_ASYNC) = 0", None),
        ("12 1.5 msync(0x7f, 4096, MS_SYNC) = 0", Call(12, 1.5, "msync", None)),
        ('12 1.5 openat(AT_FDCWD</d>, "a", O_RDWR|O_CREAT, 0600) = 3</d/a>', None),
        ('12 1.5 openat(AT_FDCWD</d>, "a", O_RDWR|O_DSYNC) = 3</d/a>', Call(12, 1.5, "openat O_DSYNC", None)),
        ('12 1.5 execve("/usr/bin/chmod", ["chmod"], 0x7f) = 0', Call(12, 1.5, "execve", None)),
        ("12 1.5 +++ exited with 0 +++", None),
    ],
)
def test_lines_of_strace_are_understood(line: str, call: Call | None) -> None:
    assert parse(line) == call


def test_only_what_happens_within_the_writing_counts() -> None:
    calls = [Call(1, at, "fsync", "/a") for at in (0.9, 1.0, 1.5, 2.0, 2.1)]
    calls += [Call(7, 1.2, "execve", None), Call(7, 1.3, "execve", None), Call(8, 1.4, "execve", None)]
    found = counts(calls, 1.0, 2.0, 2)
    assert found.syncs == {"fsync": 3}
    assert found.paths == ("/a", "/a", "/a")
    assert (found.syncs_per_write, found.programs_per_write) == (1.5, 1)


def test_the_source_says_what_was_counted() -> None:
    both = Durability("", PerWrite(2, 2), {Postgres: PerWrite(1, 1.6)})
    assert both.source == "strace of 20 single writes and 5 batches, syncs a write: client: 2, PostgreSQL: 1 to 1.6"
    assert Durability("", counted=None, remark="by definition").source == "by definition"


KEYS = {f"PostgreSQL {name}" for name in ("fsync", "full_page_writes", "synchronous_commit", "wal_sync_method")}


@pytest.mark.parametrize("kind", registry().values(), ids=registry().keys())
def test_settings_of_postgresql_are_those_of_every_system_that_uses_one(
    kind: type[System], open_table: Callable[..., System]
) -> None:
    system = open_table(kind)
    system.create(YELLOW)
    found = {name: value for name, value in system.settings().items() if name.startswith("PostgreSQL ")}
    assert set(found) == (KEYS if Postgres in in_order(kind.needs_for(kind.Options())) else set())
    if found:
        assert found["PostgreSQL fsync"] == found["PostgreSQL synchronous_commit"] == "on"
        assert found["PostgreSQL wal_sync_method"] == "fdatasync"


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[dict[type[Service], Service]]:
    """A PostgreSQL of its own that acknowledges commits before they are on the disk, and a catalog over it."""
    assert cache
    workspace = Workspace(tmp_path_factory.mktemp("careless"))
    with Postgres(workspace, workspace.work / "postgres", PostgresSettings()) as postgres:
        with postgres.connect(autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_commit = off")
            connection.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 10
        while postgres.durability_settings("postgres")["synchronous_commit"] == "on" and time.monotonic() < deadline:
            time.sleep(0.05)
        settings = IcebergRestSettings(postgres, str(workspace.work / "warehouse"))
        with IcebergRest(workspace, workspace.work / "iceberg-rest", settings) as rest:
            yield {Postgres: postgres, IcebergRest: rest}


@pytest.mark.parametrize("kind", [DuckLake, DuckLakeInlinedPostgres, IcebergPyIceberg])
def test_a_server_that_does_not_flush_is_not_said_to(
    kind: type[System], careless: dict[type[Service], Service], tmp_path: Path
) -> None:
    with closing(opened(kind, kind.Options(), careless, tmp_path / "table")) as system:
        system.create(YELLOW)
        system.write(trips(YELLOW, 1))
        assert system.settings()["PostgreSQL synchronous_commit"] == "off"
        assert system.settings()["PostgreSQL fsync"] == "on"
        assert "before it is on the disk (synchronous_commit = off)" in system.durability.summary
        assert system.durability.source == "the server's settings, read back"


def test_a_server_that_does_not_flush_makes_fewer_syncs_than_writes(
    count: Callable[..., Counted], careless: dict[type[Service], Service]
) -> None:
    counted = count(DuckLake, services={Postgres: careless[Postgres]})
    with pytest.raises(AssertionError, match="PostgreSQL, single"):
        assert_declared(DuckLake.durability, {}, counted, [Postgres])


def test_a_server_of_somebody_elses_is_asked_and_not_vouched_for(servers: Servers, tmp_path: Path) -> None:
    ours = servers.get(Postgres)
    assert isinstance(ours, Postgres)
    # A setting of the database alone, which the server's own file does not show.
    name = "durability_of_one_database"
    ours.create_database(name)
    with ours.connect(autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    assert ours.durability_settings(name)["synchronous_commit"] == "off"
    assert ours.durability_settings("postgres")["synchronous_commit"] == "on"
    ours.drop_database(name)
    theirs = Postgres(servers.workspace, tmp_path / "none", PostgresSettings(ours.dsn))
    with closing(opened(DuckLake, DuckLake.Options(), {Postgres: theirs}, tmp_path / "table")) as system:
        system.create(YELLOW)
        assert system.settings()["PostgreSQL fsync"] == "on"
        assert "was not traced" in system.durability.source


def test_nothing_is_left_stopped_or_traced(count: Callable[..., Counted], servers: Servers) -> None:
    count(DuckLake)
    for pid in servers.get(Postgres).pids():
        for task in Path(f"/proc/{pid}/task").iterdir():
            status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines() if ":" in line)
            assert status["TracerPid"].strip() == "0"
            assert status["State"].strip()[0] in "SRD"


@pytest.mark.parametrize("name", ["iceberg-duckdb", "iceberg-pyiceberg"])
def test_a_catalog_that_writes_without_hadoop_starts_no_program(
    name: str, count: Callable[..., Counted], servers: Servers, tmp_path: Path
) -> None:
    """It is Hadoop's file system that starts them, and the count of none is not for want of looking."""
    options = {"file_io": "nio"}
    durability, programs, kinds = declared(registry()[name], options, servers, tmp_path)
    counted = count(registry()[name], options)
    assert_declared(durability, programs, counted, kinds)
    assert counted["iceberg-rest-nio"][SINGLE].programs == 0
    with pytest.raises(AssertionError, match=r"programs: 0\.00 a write, 2 declared"):
        assert_declared(durability, {IcebergRestNio: PerWrite(2, 2)}, counted, kinds)
