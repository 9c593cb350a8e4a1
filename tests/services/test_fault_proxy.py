"""Proxies that hit commits: only those, as they say, and with what the server answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection, RemoteDisconnected
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import psycopg
import pytest

from tidemark.paths import Workspace
from tidemark.services.fault_proxy import (
    AFTER,
    ANSWERED,
    BEFORE,
    LATE,
    RESTART,
    STATUS,
    TWICE,
    FaultProxy,
    Hit,
    HttpFaults,
    PostgresFaults,
)
from tidemark.services.own import NullCatalog
from tidemark.services.postgres import Postgres
from tidemark.services.proxies import CountingProxy, Place

COMMIT, POST = "/v1/tables/trips", r"^POST .*/tables/[^/]+$"


@pytest.fixture(scope="module")
def postgres(shared_workspace: Workspace) -> Iterator[Postgres]:
    with Postgres(shared_workspace, shared_workspace.work / "postgres") as server:
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


def cut(proxy: FaultProxy) -> None:
    """Cut all connections through `proxy` now."""
    proxy.cut_after(0)
    until(lambda: proxy._cutter is None)
    with proxy._lock:  # it is done
        pass


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(3000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it did not become so")


SLOW = """
    CREATE TABLE slow (id int);
    CREATE FUNCTION queue() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER queue AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION queue()
"""
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_cut_in_sql_tells_what_it_did_to_the_commit(postgres: Postgres) -> None:
    with PostgresFaults(postgres.host_and_port()[1]) as proxy, postgres.connect(autocommit=True) as straight:
        near, done = postgres.by_way_of(proxy.port), Hit(ANSWERED, "COMMIT", ("COMMIT",))
        for number, commits, expected in ((5, False, Hit(BEFORE, "", ())), (6, True, done)):
            with closing(near.connect()) as connection, closing(near.connect(autocommit=True)) as other:
                connection.execute("INSERT INTO kept VALUES (%s)", [number])
                if commits:
                    connection.commit()
                cut(proxy)
                for each in (connection, other):
                    with pytest.raises(psycopg.OperationalError):
                        each.execute("SELECT 1")
            assert proxy.take() == [expected] and not expected.lost
        assert (kept(postgres, 5), kept(postgres, 6)) == (0, 1)
        straight.execute(SLOW.encode())
        with closing(near.connect()) as connection, ThreadPoolExecutor(1) as pool:
            straight.execute("SELECT pg_advisory_lock(1)")
            connection.execute("INSERT INTO slow VALUES (1)")
            committed = pool.submit(connection.commit)  # waits in the server
            until(lambda: straight.execute(WAITING).fetchone() == (1,))
            cut(proxy)
            straight.execute("SELECT pg_advisory_unlock(1)")
            with pytest.raises(psycopg.OperationalError):
                committed.result()
        (hit,) = proxy.take()
        assert hit == Hit(AFTER, "COMMIT", ("COMMIT",)) and hit.lost
        assert straight.execute("SELECT count(*) FROM slow").fetchone() == (1,)
        with near.connect() as connection:  # later ones get through
            connection.execute("INSERT INTO kept VALUES (7)")
        assert kept(postgres, 7) == 1 and proxy.take() == []


class Slow(BaseHTTPRequestHandler):
    """Server that answers a POST once it may."""

    protocol_version = "HTTP/1.1"
    came, may = threading.Event(), threading.Event()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.came.set()
        self.may.wait(30)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def test_cut_in_http_tells_what_it_did_to_the_commit() -> None:
    def ask(connection: HTTPConnection) -> int:
        try:
            connection.request("POST", COMMIT, b"{}")
            with connection.getresponse() as answer:
                answer.read()
                return answer.status
        except (RemoteDisconnected, ConnectionError):
            return 0

    def answers(number: int) -> Future[int]:
        return pool.submit(ask, connections[number])

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server, ThreadPoolExecutor(1) as pool:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with HttpFaults(server.server_address[1], POST) as proxy:
            connections = [HTTPConnection("127.0.0.1", proxy.port) for _ in range(4)]
            for each in connections:
                each.connect()
            until(lambda: len(proxy._passing) == len(connections))
            cut(proxy)
            assert [answers(number).result() for number in (0, 1)] == [0, 0] and not Slow.came.is_set()
            assert proxy.take() == [Hit(BEFORE, "", ())]
            connections[2] = HTTPConnection("127.0.0.1", proxy.port)
            lost = answers(2)
            Slow.came.wait(30)
            cut(proxy)
            Slow.may.set()
            assert lost.result() == 0
            (hit,) = proxy.take()
            assert hit == Hit(AFTER, f"POST {COMMIT}", ("200",)) and hit.lost
            connections[3] = HTTPConnection("127.0.0.1", proxy.port)
            assert answers(3).result() == 200
            cut(proxy)
            assert proxy.take() == [Hit(ANSWERED, f"POST {COMMIT}", ("200",))] and answers(3).result() == 0
        server.shutdown()


def test_server_is_killed_after_its_commit_and_started_again(postgres: Postgres) -> None:
    with PostgresFaults(postgres.host_and_port()[1], postgres) as proxy:
        near, killed = postgres.by_way_of(proxy.port), postgres.pids()
        with closing(near.connect()) as connection:
            connection.execute("INSERT INTO kept VALUES (8)")
            proxy.hit_next(RESTART)
            with pytest.raises(psycopg.OperationalError):
                proxy.during(connection.commit)
        proxy.wait()
        assert proxy.take() == [Hit(RESTART, "COMMIT", ("COMMIT",))] and not set(postgres.pids()) & set(killed)
        with near.connect() as connection:
            connection.execute("INSERT INTO kept VALUES (9)")
    assert kept(postgres, 8) == kept(postgres, 9) == 1
