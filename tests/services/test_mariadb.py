from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import psutil
import pytest

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.base import ServiceContext
from tidemark.services.mariadb import USER, MariaDB


@pytest.fixture(scope="module")
def mariadb(shared_workspace: Workspace) -> Iterator[MariaDB]:
    place = shared_workspace.work / "mariadb"
    server = MariaDB.from_config(ServiceContext(shared_workspace, place, ServicesConfig()))
    with server:
        yield server
    server.remove_data()
    assert not server.data_directory.exists() and server.pids() == []


def test_server_is_the_pinned_version_with_default_durability(mariadb: MariaDB) -> None:
    assert mariadb.version() == "11.4.5-MariaDB"
    found = mariadb.durability_settings()
    assert found == {
        "innodb_doublewrite": "ON", "innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF", "sync_binlog": "0",
    }  # fmt: skip


def test_server_listens_on_loopback_only_and_never_runs_as_root(
    mariadb: MariaDB, listening: Callable[[Iterable[int]], set[str]]
) -> None:
    assert listening(mariadb.pids()) == {"127.0.0.1"}
    (pid,) = mariadb.leader()
    assert [each.laddr for each in psutil.Process(pid).net_connections("unix") if each.laddr] == []
    assert psutil.Process(pid).uids().effective == (65534 if os.geteuid() == 0 else os.geteuid())
    assert mariadb.directory.stat().st_mode & 0o077 == 0


def test_password_is_required_and_written_nowhere(mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch) -> None:
    _, user, password = mariadb.jdbc("x")
    assert {name for (name,) in mariadb.ask("SELECT DISTINCT User FROM mysql.global_priv")} == {USER, "mariadb.sys"}
    written = [path for path in mariadb.directory.rglob("*") if path.is_file()]
    assert written and not [path for path in written if password.encode() in path.read_bytes()]
    assert password not in "".join(psutil.Process(mariadb.leader()[0]).cmdline()) and user == USER
    monkeypatch.setattr(mariadb, "_password", "another")
    with pytest.raises(ServiceError, match="Access denied"):
        mariadb.version()


def test_databases_are_created_and_dropped_and_writes_are_counted(mariadb: MariaDB) -> None:
    mariadb.create_database("kept")
    with pytest.raises(ServiceError, match="database exists"):
        mariadb.create_database("kept")
    mariadb.ask("CREATE TABLE kept.t (a INT)")
    before = mariadb.counters()
    assert mariadb.counters()["statements"] == before["statements"], "who reads the counters is not counted"
    mariadb.ask("INSERT INTO kept.t VALUES (1); INSERT INTO kept.t VALUES (2)")
    after = mariadb.counters()
    assert after["statements"] == before["statements"] + 3, "the end of a session is one"
    assert after["write_transactions"] >= before["write_transactions"] + 2 and after["wal_bytes"] > before["wal_bytes"]
    assert mariadb.database_bytes("kept") > 0
    mariadb.restart()
    assert mariadb.ask("SELECT a FROM kept.t ORDER BY a") == [("1",), ("2",)]
    mariadb.drop_database("kept")
    mariadb.drop_database("kept")
    assert mariadb.database_bytes("kept") == 0


def test_files_list_program_and_data(mariadb: MariaDB) -> None:
    files = mariadb.files()
    assert any(path.name == "mariadbd" for path in files.program) and any(p.name == "ibdata1" for p in files.data)
