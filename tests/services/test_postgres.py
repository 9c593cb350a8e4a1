from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import Child, free_ports


@pytest.fixture(scope="module")
def postgres(shared_workspace: Workspace) -> Iterator[Postgres]:
    with Postgres(shared_workspace, shared_workspace.work / "postgres") as server:
        yield server


def test_server_is_the_pinned_version_with_default_durability(postgres: Postgres) -> None:
    assert postgres.version() == "18.0"
    with postgres.connect() as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
            assert connection.execute(f"SHOW {setting}").fetchone() == ("on",), setting


def test_server_listens_on_loopback_only(postgres: Postgres, listening: Callable[[Iterable[int]], set[str]]) -> None:
    assert listening(postgres.pids()) == {"127.0.0.1"}
    with postgres.connect() as connection:
        assert connection.execute("SHOW unix_socket_directories").fetchone() == ("",)


def test_server_never_runs_as_root(postgres: Postgres) -> None:
    uids = {psutil.Process(pid).uids().effective for pid in postgres.pids()[:1]}
    assert uids == {65534 if os.geteuid() == 0 else os.geteuid()}
    if os.geteuid() == 0:
        assert postgres.directory.stat().st_mode & 0o077 == 0, "the account must get by below a private folder"


def test_password_is_required_and_written_nowhere(postgres: Postgres) -> None:
    password = psycopg.conninfo.conninfo_to_dict(postgres.dsn)["password"]
    assert isinstance(password, str) and len(password) >= 24
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(psycopg.conninfo.make_conninfo(postgres.dsn, password="wrong"))
    kept = [p for p in postgres.directory.rglob("*") if p.is_file() and password.encode() in p.read_bytes()]
    assert kept == []
    assert password not in "".join(part for pid in postgres.pids() for part in psutil.Process(pid).cmdline())
    assert password not in repr(postgres)


def test_databases_are_created_and_dropped(postgres: Postgres) -> None:
    dsn = postgres.create_database('odd "name"')
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE t AS SELECT generate_series(1, 10) AS a")
        connection.commit()
        assert postgres.database_bytes('odd "name"') > 1_000_000
        postgres.drop_database('odd "name"')
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    postgres.drop_database('odd "name"')


def test_settled_server_has_written_a_checkpoint(postgres: Postgres) -> None:
    def last() -> object:
        with postgres.connect() as connection:
            return connection.execute("SELECT checkpoint_lsn FROM pg_control_checkpoint()").fetchall()

    before = last()
    assert last() == before, "asking writes none"
    postgres.settle()
    assert last() != before


def test_statements_are_counted_once_counting_is_enabled(shared_workspace: Workspace) -> None:
    """Count the successful statements of one database, without those of the connection that reads the count."""
    with Postgres(shared_workspace, shared_workspace.work / "counting") as server:
        dsn = server.create_database("counted")
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS a")
        assert "shared_preload_libraries" not in " ".join(psutil.Process(server.pids()[0]).cmdline())
        server.count_statements()
        with psycopg.connect(dsn, autocommit=True) as connection, server.connect(autocommit=True) as elsewhere:
            before = server.statements("counted")
            assert server.statements("counted") == before, "who asks is not counted"
            for number in range(7):
                connection.execute("INSERT INTO kept VALUES (%s)", [number])
            elsewhere.execute("SELECT 1")
            assert server.statements("counted") == before + 7
            with connection.transaction():  # begins, and commits
                connection.execute("SELECT a FROM kept")
            assert server.statements("counted") == before + 10
            with pytest.raises(psycopg.errors.UndefinedTable):
                connection.execute("SELECT 1 FROM nowhere")
            assert server.statements("counted") == before + 10
            assert server.statements() == server.statements("counted")
            size = server.log_path.stat().st_size
            assert server.transactions(size) == 0, "those of its own database are left out"
            for count in (1, 2):
                connection.execute("INSERT INTO kept VALUES (%s)", [7])  # a transaction by itself
                with connection.transaction():
                    connection.execute("SELECT a FROM kept")
                    connection.execute("SELECT a + 1 FROM kept")
                assert server.transactions(size) == 2 * count
    outside = Postgres(server.workspace, server.directory / "none", "host=127.0.0.1")
    with pytest.raises(ServiceError, match="was not started here"):
        outside.count_statements()


def test_files_list_program_and_data(postgres: Postgres) -> None:
    files = postgres.files()
    assert any(p.name == "postgres" for p in files.program)
    assert any(p.name == "PG_VERSION" for p in files.data)


def test_external_server_is_reached_and_left_running(postgres: Postgres) -> None:
    outside = Postgres(postgres.workspace, postgres.directory / "none", postgres.dsn)
    with outside:
        assert outside.version() == "18.0"
        assert (outside.pids(), outside.files().program, outside.files().data) == ([], (), ())
    outside.remove_data()
    postgres.check()
    assert postgres.version() == "18.0"
    (closed,) = free_ports(1)
    with pytest.raises(ServiceError, match="cannot be reached"):
        Postgres(postgres.workspace, postgres.directory / "none", f"host=127.0.0.1 port={closed}").start()


def test_stopped_server_leaves_no_process_and_restarts_on_the_same_data(
    workspace: Workspace, wait_until_gone: Callable[[Iterable[int]], list[int]]
) -> None:
    server = Postgres(workspace, workspace.work / "postgres")
    server.start()
    with pytest.raises(ServiceError, match="started already"):
        server.start()
    session = psycopg.connect(server.create_database("kept"))
    pids = server.pids()
    assert len(pids) > 1
    server.stop()
    server.stop()
    assert wait_until_gone(pids) == []
    assert server.pids() == []
    session.close()
    with pytest.raises(ServiceError, match="not running"):
        server.check()
    before = server.dsn
    server.restart()
    assert server.dsn == before, "servers that work on it find it again"
    with server.connect("kept"):
        pass
    pids = server.pids()
    server.kill()
    assert wait_until_gone(pids) == []
    server.start()
    with server.connect("kept"):
        pass
    server.remove_data()
    assert not server.data_directory.exists() and server.log_path.exists()
    with server, pytest.raises(psycopg.OperationalError):
        server.connect("kept")
    server.stop()


def test_leftovers_of_a_killed_run_are_removed(workspace: Workspace) -> None:
    directory = workspace.work / "postgres"
    (directory / "data").mkdir(parents=True)
    (directory / "data" / "postmaster.pid").write_text("1\n")
    with Postgres(workspace, directory) as server:
        assert server.version() == "18.0"


def test_foreign_directory_is_left_untouched(workspace: Workspace, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    with pytest.raises(ServiceError, match="precious"):
        Postgres(workspace, precious).start()
    assert (precious / "file").exists()


def test_taken_port_is_replaced(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        taken = occupied.getsockname()[1]
        offered = iter([taken, *free_ports(1)])
        monkeypatch.setattr("tidemark.services.programs.process.free_ports", lambda _count: [next(offered)])
        with Postgres(workspace, workspace.work / "postgres") as server:
            assert f"port={taken}" not in server.dsn
            assert server.version() == "18.0"


def test_killed_server_is_reported_with_its_log_and_recovers(
    workspace: Workspace, wait_until_gone: Callable[[Iterable[int]], list[int]]
) -> None:
    with Postgres(workspace, workspace.work / "postgres") as server:
        server.check()
        server.create_database("kept")
        pids = server.pids()
        os.kill(pids[0], signal.SIGKILL)
        assert wait_until_gone(pids) == [], "its children notice"
        with pytest.raises(ServiceError) as caught:
            server.check()
        assert "SIGKILL" in str(caught.value) and str(server.log_path) in str(caught.value)
        server.restart()
        server.connect("kept").close()


def test_failed_start_is_reported_with_the_log(workspace: Workspace) -> None:
    server = Postgres(workspace, workspace.work / "postgres")
    server.prepare()
    (server.data_directory / "postgresql.conf").write_text("nonsense = 1\n")
    with pytest.raises(ServiceError, match="nonsense") as caught:
        server.start()
    assert str(server.log_path) in str(caught.value)
    assert server.pids() == []


def test_servers_start_only_from_the_main_thread(workspace: Workspace) -> None:
    caught: list[BaseException] = []

    def start() -> None:
        try:
            Child.start("sleep", ["/bin/sleep", "60"], workspace.root / "log", env={}, cwd=workspace.root)
        except ServiceError as error:
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


PARENT = """
import sys, time
from pathlib import Path
from tidemark.paths import Workspace
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.kafka import Kafka
from tidemark.services.postgres import Postgres

workspace = Workspace(Path(sys.argv[1]))
with Postgres(workspace, workspace.work / "postgres") as postgres:
    with IcebergRest(workspace, workspace.work / "rest", postgres, str(workspace.work / "warehouse")) as rest:
        with Kafka(workspace, workspace.work / "kafka", heap_mb=256) as kafka:
            print(*postgres.pids(), *rest.pids(), *kafka.pids(), flush=True)
            time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda s: s.name)
def test_no_server_outlives_its_parent(
    workspace: Workspace, how: signal.Signals, wait_until_gone: Callable[[Iterable[int]], list[int]]
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(workspace.root)],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) >= 5, "PostgreSQL has children of its own"
    finally:
        parent.send_signal(how)
        parent.wait(30)
    assert wait_until_gone(pids) == []
