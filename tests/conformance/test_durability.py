"""Declared durability agrees with strace's counts and with PostgreSQL's settings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tidemark.errors import SystemFailure
from tidemark.machine import cachestat
from tidemark.machine.strace import why_not
from tidemark.paths import Workspace
from tidemark.services.base import Service
from tidemark.services.iceberg.rest import IcebergRest, IcebergRestNio
from tidemark.services.postgres import Postgres
from tidemark.services.servers import in_order
from tidemark.systems.base import NONE_PER_WRITE, Capability, Context, Durability, PerWrite, System
from tidemark.systems.ducklake.servers import DuckLake, DuckLakeInlinedPostgres
from tidemark.systems.full_durability import FullDurability, NewFiles, write_through
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

from .conftest import Servers, skip_where_it_is_not
from .strace import Call, Counts, counts, parse, trace_writes
from .traced_client import BATCH, SINGLE, WRITES
from .trips import YELLOW, trips

Counted = Mapping[str, Mapping[str, Counts]]


@pytest.fixture
def count(servers: Servers, tmp_path: Path) -> Callable[..., Counted]:
    """Return a function that counts the system calls of a system's writes, on the shared servers or on given ones."""
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
        return trace_writes(kind.name, given, services or ours, tmp_path, servers.tools(kind), more_syncs)

    return count


def opened(
    kind: type[System],
    options: Any,
    services: Mapping[type[Service], Service],
    directory: Path,
    tools: Mapping[str, Path] = MappingProxyType({}),
) -> System:
    directory.mkdir()
    return kind(Context(directory, services, rows_per_write=10, tools=tools), options)


def assert_within(expected: PerWrite, found: float, what: str) -> None:
    assert expected.least <= found <= expected.most, f"{what}: {found:.2f} a write, {expected} declared"


def assert_declared(
    durability: Durability, programs: Mapping[type[Service], PerWrite], counted: Counted, kinds: list[type[Service]]
) -> None:
    """Check that clients and servers sync, and servers start programs, exactly as often as declared."""
    assert set(durability.server_syncs_per_write) | set(programs) <= set(kinds)
    for part in (SINGLE, BATCH):
        client = counted["client"][part]
        assert_within(durability.client_syncs_per_write, client.syncs_per_write, f"client, {part}, {client.syncs}")
        assert client.programs == 0
        for kind in kinds:
            found, name = counted[kind.name][part], f"{kind.title}, {part}"
            syncs = durability.server_syncs_per_write.get(kind, NONE_PER_WRITE)
            # A commit need not flush what a background process has just flushed: that counts towards the least.
            enough = found.syncs_per_write + found.background / found.writes >= syncs.least
            at_least = 0 if enough else syncs.least
            assert_within(PerWrite(at_least, syncs.most), found.syncs_per_write, f"{name}, {found.syncs}")
            assert_within(programs.get(kind, NONE_PER_WRITE), found.programs_per_write, f"{name}, programs")


def declared(kind: type[System], options: Mapping[str, Any], servers: Servers, directory: Path) -> tuple[Any, ...]:
    """Return durability and programs as a table of this kind declares them, and the servers that it uses."""
    skip_where_it_is_not(kind)
    chosen = kind.Options(**options)
    kinds = in_order(kind.needs_for(chosen))
    services = {each: servers.get(each) for each in kinds}
    with closing(opened(kind, chosen, services, directory / "said", servers.tools(kind))) as system:
        system.create(YELLOW)
        return system.durability, system.programs_per_write, kinds


@pytest.mark.parametrize("kind", of_kind(TableSystem).values(), ids=of_kind(TableSystem).keys())
def test_syncs_are_as_declared(
    kind: type[System], count: Callable[..., Counted], servers: Servers, tmp_path: Path
) -> None:
    durability, programs, kinds = declared(kind, {}, servers, tmp_path)
    assert durability.counted == Durability("").counted
    assert_declared(durability, programs, count(kind), kinds)


def test_one_extra_sync_is_detected(count: Callable[..., Counted], servers: Servers, tmp_path: Path) -> None:
    durability, programs, kinds = declared(of_kind(TableSystem)["delta-rs"], {}, servers, tmp_path)
    counted = count(of_kind(TableSystem)["delta-rs"], more_syncs=1)
    assert counted["client"][SINGLE].syncs_per_write == counted["client"][BATCH].syncs_per_write == 1
    with pytest.raises(AssertionError, match=r"client, single.*1\.00 a write, 0 declared"):
        assert_declared(durability, programs, counted, kinds)


def test_undeclared_sync_of_a_server_is_detected() -> None:
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
def test_strace_lines_are_parsed(line: str, call: Call | None) -> None:
    assert parse(line) == call


def test_only_calls_within_the_writing_are_counted() -> None:
    calls = [Call(1, at, "fsync", "/a") for at in (0.9, 1.0, 1.5, 2.0, 2.1)]
    calls += [Call(7, 1.2, "execve", None), Call(7, 1.3, "execve", None), Call(8, 1.4, "execve", None)]
    found = counts(calls, 1.0, 2.0, 2)
    assert found.syncs == {"fsync": 3}
    assert found.paths == ("/a", "/a", "/a")
    assert (found.syncs_per_write, found.programs_per_write) == (1.5, 1)
    behind = counts(calls, 1.0, 2.0, 2, {1})
    assert (behind.syncs_per_write, behind.background) == (0, 3)


def test_source_states_the_counts() -> None:
    both = Durability("", PerWrite(2, 2), {Postgres: PerWrite(1, 1.4)})
    assert both.source == "strace of 20 single writes and 5 batches, syncs a write: client: 2, PostgreSQL: 1 to 1.4"
    assert Durability("", counted=None, remark="by definition").source == "by definition"


KEYS = {f"PostgreSQL {name}" for name in ("fsync", "full_page_writes", "synchronous_commit", "wal_sync_method")}


@pytest.mark.parametrize("kind", of_kind(TableSystem).values(), ids=of_kind(TableSystem).keys())
def test_postgresql_settings_are_reported_by_every_system_that_uses_it(
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
    """Yield a separate PostgreSQL that acknowledges commits before they are on the disk, and a catalog over it."""
    assert cache
    workspace = Workspace(tmp_path_factory.mktemp("careless"))
    with Postgres(workspace, workspace.work / "postgres") as postgres:
        with postgres.connect(autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_commit = off")
            connection.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 10
        while postgres.durability_settings("postgres")["synchronous_commit"] == "on" and time.monotonic() < deadline:
            time.sleep(0.05)
        warehouse = str(workspace.work / "warehouse")
        with IcebergRest(workspace, workspace.work / "iceberg-rest", postgres, warehouse) as rest:
            yield {Postgres: postgres, IcebergRest: rest}


@pytest.mark.parametrize("kind", [DuckLake, DuckLakeInlinedPostgres, IcebergPyIceberg])
def test_server_that_does_not_flush_is_reported_as_such(
    kind: type[System], careless: dict[type[Service], Service], tmp_path: Path
) -> None:
    with closing(opened(kind, kind.Options(), careless, tmp_path / "table")) as system:
        system.create(YELLOW)
        system.write(trips(YELLOW, 1))
        assert system.settings()["PostgreSQL synchronous_commit"] == "off"
        assert system.settings()["PostgreSQL fsync"] == "on"
        assert "before it is on the disk (synchronous_commit = off)" in system.durability.summary
        assert system.durability.source == "the server's settings, read back"


def test_server_that_does_not_flush_makes_fewer_syncs_than_writes(
    count: Callable[..., Counted], careless: dict[type[Service], Service]
) -> None:
    counted = count(DuckLake, services={Postgres: careless[Postgres]})
    assert counted["postgres"][SINGLE].syncs_per_write < DuckLake.durability.server_syncs_per_write[Postgres].least


def test_external_server_is_queried_and_reported_as_not_traced(servers: Servers, tmp_path: Path) -> None:
    ours = servers.get(Postgres)
    assert isinstance(ours, Postgres)
    # A setting of the database only, which the server's configuration file does not show.
    name = "durability_of_one_database"
    ours.create_database(name)
    with ours.connect(autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    assert ours.durability_settings(name)["synchronous_commit"] == "off"
    assert ours.durability_settings("postgres")["synchronous_commit"] == "on"
    ours.drop_database(name)
    theirs = Postgres(servers.workspace, tmp_path / "none", ours.dsn)
    with closing(opened(DuckLake, DuckLake.Options(), {Postgres: theirs}, tmp_path / "table")) as system:
        system.create(YELLOW)
        assert system.settings()["PostgreSQL fsync"] == "on"
        assert "was not traced" in system.durability.source


def test_no_process_is_left_stopped_or_traced(count: Callable[..., Counted], servers: Servers) -> None:
    count(DuckLake)
    for pid in servers.get(Postgres).pids():
        for task in Path(f"/proc/{pid}/task").iterdir():
            status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines() if ":" in line)
            assert status["TracerPid"].strip() == "0"
            assert status["State"].strip()[0] in "SRD"


@pytest.mark.parametrize("name", ["iceberg-duckdb", "iceberg-pyiceberg"])
def test_catalog_that_writes_without_hadoop_starts_no_program(
    name: str, count: Callable[..., Counted], servers: Servers, tmp_path: Path
) -> None:
    """Check a wrong declaration too: Hadoop's file system starts the programs, and the count of none is a real one."""
    options = {"file_io": "nio"}
    durability, programs, kinds = declared(of_kind(TableSystem)[name], options, servers, tmp_path)
    counted = count(of_kind(TableSystem)[name], options)
    assert_declared(durability, programs, counted, kinds)
    assert counted["iceberg-rest-nio"][SINGLE].programs == 0
    with pytest.raises(AssertionError, match=r"programs: 0\.00 a write, 2 declared"):
        assert_declared(durability, {IcebergRestNio: PerWrite(2, 2)}, counted, kinds)


CAN_BE_FULL = [kind for kind in of_kind(TableSystem).values() if issubclass(kind, FullDurability)]
ON_DISK = {
    "Delta Lake": (".parquet", ".json"),
    "DuckLake": (".parquet",),
    "Iceberg": (".parquet", ".avro", ".json"),
    "Apache Paimon": (".parquet",),
    "Lance": (".lance", ".txn", ".manifest"),
}


@pytest.mark.parametrize("kind", CAN_BE_FULL, ids=lambda kind: kind.name)
def test_full_durability_syncs_data_and_metadata_of_each_write(
    kind: type[System], count: Callable[..., Counted], servers: Servers, tmp_path: Path
) -> None:
    options = {"durability": "full"}
    durability, programs, kinds = declared(kind, options, servers, tmp_path)
    counted = count(kind, options)
    assert_declared(durability, programs, counted, kinds)
    if Capability.INLINING not in kind.capabilities:
        for part, writes in WRITES.items():
            paths = [Path(path) for path in counted["client"][part].paths]
            for suffix in ON_DISK[kind.format]:
                assert len([path for path in paths if path.suffix == suffix]) >= writes
            folders = {path.parent for path in paths if path.suffix}
            assert folders <= set(paths)
        with pytest.raises(AssertionError, match="client, single"):
            assert_declared(kind.durability, programs, counted, kinds)


def name_of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def files(system: System) -> set[Path]:
    return {path for path in system.context.directory.rglob("*") if ".duckdb" not in path.parts and path.is_file()}


def assert_data_first(synced: Sequence[Path], suffixes: Sequence[str]) -> None:
    """Check that neither log entry nor metadata goes to the disk before the data that it names."""
    found = list(dict.fromkeys(path.suffix for path in synced if path.suffix in suffixes and not path.is_dir()))
    assert found == [suffix for suffix in suffixes if suffix in found], synced


@pytest.mark.parametrize("kind", CAN_BE_FULL, ids=lambda kind: kind.name)
def test_full_durability_leaves_out_no_file_of_a_write(
    kind: type[TableSystem], open_table: Callable[..., TableSystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    sync = os.fsync

    def recording(descriptor: int) -> None:
        synced.append(Path(name_of(descriptor)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", recording)
    plain, full = open_table(kind), open_table(kind, kind.Options(durability="full"))
    assert (plain.durability_level, full.durability_level) == ("default", "full")
    for system in (plain, full):
        system.create(YELLOW)
        write = system.write
        for first in range(12):
            if first == 8 and Capability.WRITERS in kind.capabilities:
                write = system.client_factory().open().write  # of a client other than the table's own
            before = files(system)
            synced.clear()
            write(trips(YELLOW, 1 + first, 100 * first))
            made = files(system) - before
            expected = made | {path.parent for path in made} if system is full else set()
            assert expected <= set(synced)
            assert bool(synced) == bool(expected)
            assert_data_first(synced, ON_DISK[kind.format])
        assert sorted(system.ids().to_pylist()) == sorted(100 * i + j for i in range(12) for j in range(i + 1))


@pytest.mark.parametrize("name", ["ducklake", "iceberg-pyiceberg", "iceberg-duckdb", "delta-duckdb"])
def test_full_durability_syncs_data_before_the_commit_is_visible(
    name: str, open_table: Callable[..., TableSystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the order: a power failure in between would leave a catalog that names an empty file."""
    kind = of_kind(TableSystem)[name]
    system = open_table(kind, kind.Options(durability="full"))
    system.create(YELLOW)
    there: list[int] = []
    sync = os.fsync

    def looking(descriptor: int) -> None:
        if name_of(descriptor).endswith(".parquet"):
            there.append(len(system.ids()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", looking)
    system.write(trips(YELLOW, 3))
    assert there == [0]
    with closing(system.client_factory().open()) as writer:
        writer.write(trips(YELLOW, 2, 100))
        assert there == [0, 3] and len(system.ids()) == 5


def test_files_in_a_write_through_folder_are_on_disk_at_once(tmp_path: Path) -> None:
    if why := cachestat.why_not(tmp_path):
        pytest.skip(why)
    folders = [tmp_path / "through", tmp_path / "not"]
    for folder in folders:
        folder.mkdir()
    if not write_through(folders[:1]):
        pytest.skip("this file system has no such flag")
    for folder in folders:
        temporary = folder / "temporary"
        temporary.write_bytes(b"tide" * 2500)
        temporary.rename(folder / "file")
    assert [cachestat.at_risk(folder / "file") for folder in folders] == [0, 3]


def test_watch_syncs_files_in_new_folders_links_and_renames_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(name_of(descriptor)))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "before").write_text("x")
    watch = NewFiles(tmp_path)
    watch.sync()
    assert synced == []
    (tmp_path / "new" / "below").mkdir(parents=True)
    (tmp_path / "new" / "below" / "deep").write_text("x")
    (tmp_path / "old" / "temporary").write_text("x")
    (tmp_path / "old" / "linked").hardlink_to(tmp_path / "old" / "temporary")
    (tmp_path / "old" / "temporary").rename(tmp_path / "old" / "renamed")
    (tmp_path / ".private").mkdir()
    (tmp_path / ".private" / "file").write_text("x")
    watch.sync()
    found = [str(Path(path).relative_to(tmp_path)) for path in synced]
    files, folders = ["new/below/deep", "old/linked", "old/renamed"], [".", "new", "new/below", "old"]
    assert sorted(found[: len(files)]) == files and sorted(found[len(files) :]) == folders
    synced.clear()
    watch.sync()
    assert synced == []
    watch.close()
    watch.close()


def test_full_durability_is_refused_where_the_catalog_does_not_flush(
    careless: dict[type[Service], Service], tmp_path: Path
) -> None:
    for number, kind in enumerate((DuckLake, IcebergPyIceberg)):
        options = kind.Options(durability="full")
        with (
            closing(opened(kind, options, careless, tmp_path / str(number))) as system,
            pytest.raises(SystemFailure, match="full cannot be had: this PostgreSQL has synchronous_commit = off"),
        ):
            system.create(YELLOW)


def test_full_durability_is_refused_for_a_remote_table(
    open_table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    system = open_table(IcebergPyIceberg, IcebergPyIceberg.Options(durability="full"))
    monkeypatch.setattr(system, "_directory", lambda _table: None)
    with pytest.raises(SystemFailure, match="not on a disk of this machine"):
        system.create(YELLOW)
