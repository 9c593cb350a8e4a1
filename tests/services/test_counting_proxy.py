"""The counting proxy forwards what it gets, and counts each round trip, request and byte of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tidemark.paths import Workspace
from tidemark.services.own import NullCatalog
from tidemark.services.proxies import CountingProxy, Exchange, Place, asked_by, in_series


@pytest.fixture(scope="module")
def proxy(shared_workspace: Workspace) -> Iterator[CountingProxy]:
    """Yield a proxy before a server that answers each request at once."""
    with (
        NullCatalog(shared_workspace, shared_workspace.work / "null") as server,
        CountingProxy(Place(urlsplit(server.uri).port or 0)) as proxy,
    ):
        yield proxy


@pytest.mark.parametrize("count", [3, 4])
def test_each_request_is_counted_once(proxy: CountingProxy, count: int) -> None:
    connection = HTTPConnection("127.0.0.1", proxy.port)
    answered = 0
    for _ in range(count):
        connection.request("GET", "/v1/config")
        answered += len(connection.getresponse().read())
    found = proxy.take()
    assert [each.method for each in found] == ["GET"] * count
    assert [each.opens for each in found] == [True, *[False] * (count - 1)]
    assert in_series(found) == count + 1, "the opening of the connection is one"
    assert sum(each.received_bytes for each in found) > answered > 0
    assert proxy.take() == []
    connection.request("POST", "/v1/namespaces", b"x" * 300_000)
    connection.getresponse().read()
    (posted,) = proxy.take()
    assert posted.method == "POST" and 300_000 < posted.sent_bytes < 301_000
    connection.close()


def test_concurrent_connections_are_counted_apart(proxy: CountingProxy) -> None:
    connections = [HTTPConnection("127.0.0.1", proxy.port) for _ in range(3)]
    for each in connections:
        each.request("GET", "/v1/config")
    for each in connections:
        each.getresponse().read()
        each.close()
    assert len(proxy.take()) == 3


@pytest.mark.parametrize(
    ("data", "asked"),
    [
        (b"POST /v1/tables/trips HTTP/1.1\r\nHost: here\r\n\r\n", "POST /v1/tables/trips"),
        (b"Q\0\0\0\x12BEGIN\n  READ ONLY\0", "BEGIN READ ONLY"),
        (b"P\0\0\0\x12named\0SELECT $1\0\0\0", "SELECT $1"),
        (b"Q\0\0\0\x12" + b"x" * 1000 + b"\0", "x" * 200),
        (b"X\0\0\0\x04", ""),
        (b"\x16\x03\x01", ""),
    ],
)
def test_requests_and_statements_are_named(data: bytes, asked: str) -> None:
    assert asked_by(data, {}) == asked


def test_prepared_statement_is_named_where_it_is_bound() -> None:
    prepared: dict[bytes, str] = {}
    bind = b"B\0\0\0\x12\0named\0\0\0"
    assert asked_by(bind, prepared) == ""
    assert asked_by(b"P\0\0\0\x12named\0SELECT $1\0\0\0", prepared) == asked_by(bind, prepared) == "SELECT $1"
    assert asked_by(bind.replace(b"named", b"other"), prepared) == ""


def test_round_trips_in_series_are_the_longest_chain() -> None:
    def at(began: float, ended: float) -> Exchange:
        return Exchange(None, began, ended, 1, 1)

    assert in_series([]) == 0
    assert in_series([at(1, 2), at(2, 3), at(4, 5)]) == 3
    assert in_series([at(1, 5), at(1, 2), at(2, 3), at(2, 4)]) == 2
    assert in_series([at(1, 9), at(2, 8)]) == 1
    opening = replace(at(2, 3), opens=True)
    assert in_series([at(1, 2), opening, at(4, 5)]) == 4
    assert in_series([at(2, 2.5), at(2.5, 3.5), opening]) == 2
    assert in_series([at(1, 5), at(6, 7)], [at(2, 3), at(3, 4), at(8, 9)]) == 4, "two of them are within the first"
