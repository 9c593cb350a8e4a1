"""Server of DuckLake's catalog over Quack: access control, and the state after a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psutil
import pytest

from tidemark.services.quack import Quack, QuackCatalog
from tidemark.systems.duckdb_client import connect
from tidemark.systems.ducklake.servers import PROTOCOL, DuckLakeQuack

from .conftest import Servers
from .trips import YELLOW, trips


def ask(catalog: QuackCatalog) -> list[Any]:
    with connect(PROTOCOL) as connection:
        connection.execute(catalog.secret())
        return connection.execute(f"FROM quack_query('{catalog.address}', 'SELECT 1')").fetchall()


def test_server_is_on_loopback_only_and_requires_the_token(open_table: Callable[..., Any], servers: Servers) -> None:
    system = open_table(DuckLakeQuack)
    system.create(YELLOW)
    server, catalog = servers.get(Quack), system._catalog
    listening = [
        each.laddr
        for pid in server.pids()
        for each in psutil.Process(pid).net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]
    assert catalog.port in {each.port for each in listening} and {each.ip for each in listening} == {"127.0.0.1"}
    assert ask(catalog) == [(1,)]
    with pytest.raises(Exception, match="Authentication failed"):
        ask(replace(catalog, token="another"))
    assert (server.directory / ".token").stat().st_mode & 0o077 == 0
    assert not any(catalog.token in word for pid in server.pids() for word in psutil.Process(pid).cmdline())


def test_catalogs_are_served_again_after_a_kill(open_table: Callable[..., Any], servers: Servers) -> None:
    system = open_table(DuckLakeQuack)
    system.create(YELLOW)
    system.write(trips(YELLOW, 2))
    server = servers.get(Quack)
    server.kill()
    server.start()
    system.reconnect()
    assert sorted(system.ids().to_pylist()) == [0, 1]
    system.client_factory().open().write(trips(YELLOW, 1, 2))
    assert sorted(system.ids().to_pylist()) == [0, 1, 2]


def test_server_and_extension_have_different_names(open_table: Callable[..., Any]) -> None:
    """Compare letters and digits only: a table of versions takes names that agree in these for one."""
    letters = {"".join(filter(str.isalnum, name.lower())) for name in open_table(DuckLakeQuack).versions()}
    assert "duckdbquack" in letters
    assert "".join(filter(str.isalnum, Quack.title.lower())) not in letters
