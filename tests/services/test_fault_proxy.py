"""Proxies that hit commits: only those, as they say, and with what the server answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, RemoteDisconnected
from urllib.parse import urlsplit

import psycopg
import pytest

from tidemark.paths import Workspace
from tidemark.services.counting_proxy import CountingProxy
from tidemark.services.delay_proxy import Place
from tidemark.services.fault_proxy import AFTER, BEFORE, LATE, STATUS, TWICE, Hit, HttpFaults, PostgresFaults
from tidemark.services.own import NullCatalog
from tidemark.services.postgres import Postgres, PostgresSettings

COMMIT, POST = "/v1/tables/trips", r"^POST .*/tables/[^/]+$"


@pytest.fixture(scope="module")
def postgres(shared_workspace: Workspace) -> Iterator[Postgres]:
    with Postgres(shared_workspace, shared_workspace.work / "postgres", PostgresSettings()) as server:
        with server.connect(autocommit=True) as connection:
            connection.execute("CREATE TABLE kept (id int)")
        yield server


def kept(server: Postgres, number: int) -> int:
    with server.connect() as connection:
        row = connection.execute("SELECT count(*) FROM kept WHERE id = %s", [number]).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.parametrize(
    ("number", "fault", "there", "hits"),
    [
        (1, "", 1, []),
        (2, AFTER, 1, [Hit(AFTER, "COMMIT", ("COMMIT",))]),
        (3, BEFORE, 0, [Hit(BEFORE, "COMMIT", ())]),
    ],
)
def test_commit_in_sql_is_hit_and_nothing_else(
    postgres: Postgres, number: int, fault: str, there: int, hits: list[Hit]
) -> None:
    with PostgresFaults(postgres.host_and_port()[1]) as proxy:
        near = postgres.by_way_of(proxy.port)
        with near.connect() as connection:
            if fault:
                proxy.hit_next(fault)
            assert connection.execute("SELECT count(*) FROM kept WHERE id < 0").fetchone() == (0,)
            connection.commit()  # of a transaction that wrote nothing
            connection.execute("INSERT INTO kept VALUES (-1)")
            connection.rollback()
            connection.execute("INSERT INTO kept VALUES (%s)", [number])
            if fault:
                with pytest.raises(psycopg.OperationalError):
                    connection.commit()
            else:
                connection.commit()
        found = proxy.take()
        assert found == hits and all(each.counts for each in found)
        with near.connect() as connection:  # the next commit gets through
            connection.execute("INSERT INTO kept VALUES (%s)", [10 * number])
        assert proxy.take() == []
    assert (kept(postgres, number), kept(postgres, 10 * number)) == (there, 1)


def test_commit_that_the_server_refuses_does_not_count(postgres: Postgres) -> None:
    with (
        PostgresFaults(postgres.host_and_port()[1]) as proxy,
        postgres.by_way_of(proxy.port).connect(autocommit=True) as connection,
    ):
        connection.execute("BEGIN")
        connection.execute("INSERT INTO kept VALUES (4)")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        proxy.hit_next(AFTER)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("COMMIT")
        (hit,) = proxy.take()
    assert hit.answers == ("ROLLBACK",) and not hit.counts and kept(postgres, 4) == 0


@pytest.fixture(scope="module")
def counted(shared_workspace: Workspace) -> Iterator[CountingProxy]:
    """Yield a proxy that counts the requests that reach a server which answers each at once."""
    with (
        NullCatalog(shared_workspace, shared_workspace.work / "null") as server,
        CountingProxy(Place(urlsplit(server.uri).port or 0)) as proxy,
    ):
        yield proxy


@pytest.mark.parametrize(
    ("fault", "status", "delivered", "answers"),
    [("", 200, 1, None), (AFTER, 0, 1, ("200",)), (BEFORE, 0, 0, ()), (TWICE, 200, 2, ("200", "200")),
     (STATUS, 503, 1, ("200",))],
)  # fmt: skip
def test_request_that_commits_is_hit_and_nothing_else(
    counted: CountingProxy, fault: str, status: int, delivered: int, answers: tuple[str, ...] | None
) -> None:
    def ask(method: str, path: str, body: bytes | None = None) -> int:
        connection = HTTPConnection("127.0.0.1", proxy.port)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except RemoteDisconnected:
            return 0
        finally:
            connection.close()

    with HttpFaults(counted.port, POST) as proxy:
        counted.take()
        if fault:
            proxy.hit_next(fault)
        assert ask("GET", COMMIT) == ask("POST", "/v1/tables", b"{}") == 200 and len(counted.take()) == 2
        assert ask("POST", COMMIT, b"x" * 100_000) == status
        found = counted.take()
        assert [each.asked for each in found] == [f"POST {COMMIT}"] * delivered
        assert all(each.sent_bytes > 100_000 for each in found)
        assert [each.answers for each in proxy.take()] == ([] if answers is None else [answers])
        assert ask("POST", COMMIT, b"{}") == 200 and proxy.take() == []


@pytest.mark.parametrize(("limit_s", "held_s", "status"), [(1.0, 60.0, None), (60.0, 0.3, 200)])
def test_late_answer_is_held_until_the_client_gives_up_or_has_waited(
    counted: CountingProxy, limit_s: float, held_s: float, status: int | None
) -> None:
    with HttpFaults(counted.port, POST, held_s) as proxy:
        counted.take()
        proxy.hit_next(LATE)
        connection, found = HTTPConnection("127.0.0.1", proxy.port, timeout=limit_s), None
        connection.request("POST", COMMIT, b"{}")
        with suppress(TimeoutError):
            found = connection.getresponse().status
        connection.close()
        assert found == status and [each.asked for each in counted.take()] == [f"POST {COMMIT}"]
        assert [(each.fault, each.answers) for each in proxy.take()] == [(LATE, ("200",))]
