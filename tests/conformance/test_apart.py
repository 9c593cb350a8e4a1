"""Round trip and serializable isolation of a catalog's database, observed in the database and by a clock."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from psycopg import IsolationLevel

from tidemark.services.postgres import ISOLATIONS, READ_COMMITTED, SERIALIZABLE, Postgres
from tidemark.studies.catalogs.requests import CREATIONS, READS, Request
from tidemark.systems.base import Context
from tidemark.systems.catalogs.pyiceberg_sql import PyIcebergSqlPostgres
from tidemark.systems.catalogs.rest import IsolationOptions, RestPostgres
from tidemark.systems.registry import SystemEntry, variant

from .conftest import OF_A_STACK, Servers
from .test_catalogs import send, succeed

pytestmark = pytest.mark.skipif(OF_A_STACK in os.environ, reason="servers and distances are the same under every stack")
RTT_MS = 20
NAMESPACE, TABLE, _ = CREATIONS
# Reads of a serializable transaction stay locked while another transaction that began before its end is open.
LOCKED = "SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND pid <> pg_backend_pid()"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_transactions_have_the_declared_isolation_level(servers: Servers, tmp_path: Path, isolation: str) -> None:
    options = IsolationOptions(database_rtt_ms=RTT_MS, isolation=isolation)
    services = {needed: servers.get(needed) for needed in RestPostgres.needs_for(options)}
    system = RestPostgres(Context(tmp_path, services, 1), options)
    assert system.settings()["default_transaction_isolation"] == isolation
    root = (f"isolated_{isolation.replace(' ', '_')}",)
    succeed(system, [Request(NAMESPACE, root)])
    assert system.postgres is not None
    postgres, database = system.postgres
    with postgres.connect(database) as mine:
        mine.isolation_level = IsolationLevel.SERIALIZABLE
        mine.execute("SELECT count(*) FROM iceberg_tables")
        began = time.monotonic()
        succeed(system, [Request(TABLE, root, "T_0")])
        took_ms = 1000 * (time.monotonic() - began)
        (locks,) = mine.execute(LOCKED).fetchone() or (0,)
    assert (locks > 0) is (isolation == SERIALIZABLE)
    assert took_ms >= 2 * RTT_MS, "the creation of a table asks more than once"


def test_clients_without_a_server_have_the_same_distance_and_isolation(servers: Servers, tmp_path: Path) -> None:
    options = IsolationOptions(database_rtt_ms=RTT_MS, isolation=SERIALIZABLE)
    services = {needed: servers.get(needed) for needed in PyIcebergSqlPostgres.needs_for(options)}
    tools = servers.tools(PyIcebergSqlPostgres)
    system = PyIcebergSqlPostgres(Context(tmp_path, services, 1, tools=tools), options)
    succeed(system, [Request(NAMESPACE, ("far",))])
    began = time.monotonic()
    assert send(system, Request(READS[2], ("far",))) == 200
    assert 1000 * (time.monotonic() - began) >= RTT_MS
    assert system.settings()["default_transaction_isolation"] == SERIALIZABLE
    assert "serializable" in " ".join(system.notes) and f"{RTT_MS} ms" in " ".join(system.notes)
    system.close()


def test_default_options_need_no_proxy() -> None:
    from tidemark.schema import Origin

    plain = variant(SystemEntry("rest-jdbc-postgres", "rest-jdbc-postgres", None, ()), Origin("a test", {}))
    assert plain.needs == (RestPostgres.service,) == RestPostgres.needs
    assert PyIcebergSqlPostgres.needs_for(IsolationOptions()) == (Postgres,)
    assert IsolationOptions().isolation == READ_COMMITTED
