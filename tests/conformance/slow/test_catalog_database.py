"""DuckLake with a standby of its catalog, and with a pooler before it: what a lost answer to a commit leaves.

Failover: the server is killed when it has committed, before its client has the answer, and a standby takes its place. A
synchronous standby has all that was committed. One that follows by itself may lack the last commits: here it is cut
off before the row that precedes the hit.

Pooler: the connection that is cut is that of a client to PgBouncer, or that of PgBouncer to PostgreSQL.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg.conninfo import conninfo_to_dict

from tidemark.paths import Workspace, private_directory
from tidemark.services.fault_proxy import AFTER, RESTART, FaultProxy, PostgresFaults
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import (
    Child,
    give,
    same_or_free,
    server_environment,
    unprivileged_account,
    wait_for_line,
    write_private,
)
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.load.writer import batches
from tidemark.studies.ingest.record import Outcomes
from tidemark.studies.ingest.window.ambiguity import NUMBER, Attempted, Bench, Client, outcomes, proxy_before
from tidemark.systems.base import Context
from tidemark.systems.ducklake.servers import CatalogInPostgres, DuckLake, DuckLakeInlinedPostgres

from ..trips import YELLOW, trips

TRIES = 5
PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
LONGEST_S = 60.0


class FollowedPostgres(Postgres):
    """PostgreSQL with a standby, which takes its place, at its port, when it is killed; a start makes the next one."""

    def __init__(self, workspace: Workspace, directory: Path, synchronous: bool) -> None:
        super().__init__(workspace, directory)
        self._synchronous, self._numbers, self._data = synchronous, itertools.count(1), directory / "data"
        self._standby: Child | None = None
        self._standby_data, self._standby_port = directory, 0

    @property
    def data_directory(self) -> Path:
        return self._data

    def start(self) -> None:
        super().start()
        self._follow()

    def stop(self) -> None:
        if self._standby is not None:
            self._standby.stop(self.stop_signal, LONGEST_S)
            self._standby = None
        super().stop()

    def kill(self) -> None:
        super().kill()
        assert self._standby is not None
        with self._ask_standby() as connection:
            assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
        self._standby.stop(self.stop_signal, LONGEST_S)
        self._standby, self._data = None, self._standby_data

    def cut_off(self) -> None:
        """Let the standby receive nothing more."""
        with self._ask_standby() as connection:
            connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
            connection.execute("SELECT pg_reload_conf()")
            _until(lambda: connection.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() == (0,))

    def _ask_standby(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.dsn, port=self._standby_port, autocommit=True)

    def _follow(self) -> None:
        self._standby_data = data = self.directory / f"standby-{next(self._numbers)}"
        with self.connect(autocommit=True) as connection:
            connection.execute("SELECT pg_backup_start('standby', true)")
            shutil.copytree(self.data_directory, data, ignore=shutil.ignore_patterns("postmaster.*", "pgsql_tmp*"))
            label = connection.execute("SELECT labelfile FROM pg_backup_stop(false)").fetchone()
        assert label is not None
        (data / "backup_label").write_text(label[0])
        (data / "standby.signal").touch()
        with (data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = '{self.dsn}'\nsynchronous_standby_names = ''\n")
        if (account := unprivileged_account()) is not None:
            for path in (data, *data.rglob("*")):
                os.chown(path, account, account)
        self._standby_port = same_or_free(0)
        command: list[str | Path] = [self._binaries / "postgres", "-D", data]
        for setting in ("listen_addresses=127.0.0.1", f"port={self._standby_port}", "unix_socket_directories="):
            command += ["-c", setting]
        self._standby = self._begin("The standby", command, self.directory / f"{data.name}.log", {})
        wait_for_line(self._standby, "ready to accept read-only connections", LONGEST_S, 0)
        with self.connect(autocommit=True) as connection:
            if self._synchronous:
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                connection.execute("SELECT pg_reload_conf()")
            state = ("streaming", "sync" if self._synchronous else "async")
            asked = "SELECT state, sync_state FROM pg_stat_replication"
            _until(lambda: connection.execute(asked).fetchall() == [state])


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LONGEST_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


class PgBouncer:
    """PgBouncer on a free loopback port, before the PostgreSQL that listens on `port` with the password of `server`."""

    def __init__(self, server: Postgres, port: int, pool_mode: str, folder: Path) -> None:
        given = conninfo_to_dict(server.dsn)
        write_private(folder / "users", f'"{given["user"]}" "{given["password"]}"\n')
        self.port = same_or_free(0)
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": folder / "users",
            "pool_mode": pool_mode,
            "ignore_startup_parameters": "extra_float_digits,options",
        }
        lines = ["[databases]", f"* = host=127.0.0.1 port={port}", "[pgbouncer]"]
        lines += [f"{key} = {value}" for key, value in settings.items()]
        write_private(folder / "pgbouncer.ini", "\n".join(lines))
        assert PGBOUNCER is not None
        self._child = Child.start(
            "PgBouncer",
            [PGBOUNCER, folder / "pgbouncer.ini"],
            folder / "pgbouncer.log",
            env=server_environment(),
            cwd=folder,
            account=unprivileged_account(),
        )

    def __enter__(self) -> PgBouncer:
        wait_for_line(self._child, "process up", LONGEST_S, 0)
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop(signal.SIGINT, LONGEST_S)


FAILOVERS = pytest.mark.long(
    reason="five failovers in each cell, each with a copy of the server's files: half a minute"
)
POLICIES = [
    (DuckLake, NEVER, "unreadable"),
    (DuckLake, BLIND, "unreadable"),
    (DuckLake, CHECK, "unreadable"),
    (DuckLakeInlinedPostgres, NEVER, "error_once"),
    (DuckLakeInlinedPostgres, BLIND, "acked_twice"),
    (DuckLakeInlinedPostgres, CHECK, "acked_once"),
]


@FAILOVERS
@pytest.mark.parametrize(("kind", "retry", "expected"), POLICIES)
def test_failover_to_a_synchronous_standby_does_what_a_lost_answer_does(
    kind: type[CatalogInPostgres], retry: str, expected: str, workspace: Workspace, tmp_path: Path
) -> None:
    found = failovers(workspace, tmp_path, kind, retry, synchronous=True)
    assert (getattr(found, expected), found.earlier_lost) == (TRIES, 0), found


@FAILOVERS
@pytest.mark.parametrize("kind", [DuckLake, DuckLakeInlinedPostgres])
@pytest.mark.parametrize(("retry", "expected"), [(NEVER, "error_absent"), (BLIND, "acked_once"), (CHECK, "acked_once")])
def test_failover_to_a_standby_that_lags_loses_acknowledged_rows(
    kind: type[CatalogInPostgres], retry: str, expected: str, workspace: Workspace, tmp_path: Path
) -> None:
    found = failovers(workspace, tmp_path, kind, retry, synchronous=False)
    assert (getattr(found, expected), found.earlier_lost, found.unreadable) == (TRIES, TRIES, 0), found


@pytest.mark.long(reason="it needs PgBouncer, and a new server for each cell: ten seconds a cell")
@pytest.mark.skipif(PGBOUNCER is None, reason="there is no pgbouncer on PATH")
@pytest.mark.parametrize("pool_mode", ["session", "transaction"])
@pytest.mark.parametrize("cut_before_the_pooler", [True, False])
@pytest.mark.parametrize(("kind", "retry", "expected"), POLICIES)
def test_pooler_does_not_change_what_a_lost_answer_does(
    kind: type[CatalogInPostgres],
    retry: str,
    expected: str,
    cut_before_the_pooler: bool,
    pool_mode: str,
    workspace: Workspace,
    tmp_path: Path,
) -> None:
    rows = rows_of(tmp_path)
    server = Postgres(workspace, private_directory(workspace.work / "pooled"))
    pooler_folder = give(private_directory(workspace.work / "pooler"))
    with ExitStack() as stack:
        stack.callback(server.remove_data)
        server.start()
        if cut_before_the_pooler:
            pooler = stack.enter_context(PgBouncer(server, server.host_and_port()[1], pool_mode, pooler_folder))
            proxy: FaultProxy = stack.enter_context(PostgresFaults(pooler.port, server))
            port = proxy.port
        else:
            proxy = stack.enter_context(proxy_before(Postgres, server))
            port = stack.enter_context(PgBouncer(server, proxy.port, pool_mode, pooler_folder)).port
        done = [hit(AFTER, tmp_path, table, kind, retry, server, proxy, port, rows) for table in range(TRIES)]
    (found,) = outcomes([row for row in done if row])
    assert (found.hits, getattr(found, expected), found.earlier_lost, found.stuck) == (TRIES, TRIES, 0, 0), found


def failovers(
    workspace: Workspace, folder: Path, kind: type[CatalogInPostgres], retry: str, synchronous: bool
) -> Outcomes:
    """Hit the commits of `TRIES` rows, each of a new table, with a failover; return what they came to."""
    rows, done = rows_of(folder), []
    server = FollowedPostgres(workspace, private_directory(workspace.work / "followed"), synchronous)
    try:
        server.start()
        for table in range(TRIES):
            with proxy_before(Postgres, server) as proxy:
                cut_off = None if synchronous else server.cut_off
                done.append(hit(RESTART, folder, table, kind, retry, server, proxy, proxy.port, rows, cut_off))
    finally:
        server.remove_data()
    (found,) = outcomes([row for row in done if row])
    return found


def rows_of(folder: Path) -> Callable[[int], pa.Table]:
    pq.write_table(trips(YELLOW, 8), folder / "trips.parquet")
    return batches(folder / "trips.parquet", 1, NUMBER)


def hit(
    fault: str,
    folder: Path,
    number: int,
    kind: type[CatalogInPostgres],
    retry: str,
    server: Postgres,
    proxy: FaultProxy,
    port: int,
    rows: Callable[[int], pa.Table],
    before: Callable[[], None] | None = None,
) -> Attempted | None:
    """Hit the commit of a row of a new table, whose client reaches `server` at `port`."""
    place = private_directory(folder / f"table-{number}")
    system = kind(Context(place, {Postgres: server}, 1), kind.Options())
    with ExitStack() as stack:
        stack.callback(system.close)
        system.create(YELLOW)
        system.write(trips(YELLOW, 1))
        reached = system.reached_by({Postgres: server.by_way_of(port)})
        client = Client(reached.client_factory(), retry, proxy.wait)
        stack.callback(client.close)
        if before is not None:
            before()
        return Bench(system, place, number, client, retry, proxy, rows, itertools.count(100 * number)).hit(fault, 0)
