"""The delay proxy puts a server away by the time that it is told, changes nothing else, and ends with its parent."""

from __future__ import annotations

import os
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest

from tidemark.paths import Workspace
from tidemark.services.delay.proxy import DelayProxy, Reachable, delayed
from tidemark.services.null_catalog import NullCatalog
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import free_ports
from tidemark.services.servers import in_order

pytestmark = pytest.mark.services
ASKED = 60  # exchanges
LATE_MS = 2.0  # that a busy machine may add to each, but for those that it adds more to: nine in ten at the most


class Echo:
    """Says all that it hears, and the end when it hears that."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def host_and_port(self) -> tuple[str, int]:
        return "127.0.0.1", int(self._socket.getsockname()[1])

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                taken, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(taken,), daemon=True).start()

    def _answer(self, taken: socket.socket) -> None:
        with taken:
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while heard := taken.recv(1 << 16):
                taken.sendall(heard)


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@contextmanager
def proxied(workspace: Workspace, target: Reachable, rtt_ms: float) -> Iterator[DelayProxy]:
    with DelayProxy(workspace, workspace.work / f"delay-{rtt_ms:g}", target, rtt_ms) as proxy:
        yield proxy


def exchange(client: socket.socket, data: bytes = b"x") -> float:
    """Milliseconds until all of `data` came back."""
    began = time.perf_counter_ns()
    client.sendall(data)
    left = len(data)
    while left:
        left -= len(client.recv(left))
    return (time.perf_counter_ns() - began) / 1e6


def connect(place: tuple[str, int]) -> socket.socket:
    client = socket.create_connection(place, timeout=30)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


@pytest.mark.parametrize("rtt_ms", [0.0, 5.0, 20.0])
def test_a_round_trip_takes_what_it_is_told(shared_workspace: Workspace, echo: Echo, rtt_ms: float) -> None:
    with proxied(shared_workspace, echo, rtt_ms) as proxy, connect(proxy.host_and_port()) as client:
        first, *others = [exchange(client) for _ in range(ASKED)]
    assert min(others) >= rtt_ms, "nothing comes early"
    assert statistics.quantiles(others, n=10)[0] <= rtt_ms + LATE_MS
    assert first >= 1.9 * rtt_ms, "a connection costs a round trip, as a handshake does"


def test_what_it_passes_on_is_whole_in_order_and_not_slowed(shared_workspace: Workspace, echo: Echo) -> None:
    """Of a delay line that waited for each piece, 8 MB would take minutes."""
    data = os.urandom(8 << 20)
    heard = bytearray()
    with proxied(shared_workspace, echo, 20.0) as proxy, connect(proxy.host_and_port()) as client:

        def say() -> None:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)

        threading.Thread(target=say, daemon=True).start()
        while piece := client.recv(1 << 16):
            heard += piece
    assert bytes(heard) == data, "whole, in order, and its end as well"


def test_connections_are_delayed_side_by_side(shared_workspace: Workspace, echo: Echo) -> None:
    with proxied(shared_workspace, echo, 20.0) as proxy:
        clients = [connect(proxy.host_and_port()) for _ in range(40)]
        began = time.monotonic()
        for client in clients:
            client.sendall(b"all at once")
        for client in clients:
            assert client.recv(100) == b"all at once"
            client.close()
        assert time.monotonic() - began < 0.5, "one after the other they would take 800 ms and more"


def test_who_is_away_is_not_reached(shared_workspace: Workspace) -> None:
    class Gone:
        def host_and_port(self) -> tuple[str, int]:
            return "127.0.0.1", free_ports(1)[0]

    with proxied(shared_workspace, Gone(), 5.0) as proxy, connect(proxy.host_and_port()) as client:
        try:
            client.sendall(b"x")
            assert client.recv(1) == b""
        except ConnectionError:
            pass
        proxy.check()


def test_it_stays_on_loopback_and_keeps_its_port(
    shared_workspace: Workspace,
    echo: Echo,
    listening: Callable[[Iterable[int]], set[str]],
    wait_until_gone: Callable[[Iterable[int]], list[int]],
) -> None:
    with proxied(shared_workspace, echo, 0.0) as proxy:
        pids, place = proxy.pids(), proxy.host_and_port()
        assert listening(pids) == {"127.0.0.1"}
        proxy.kill()
        assert wait_until_gone(pids) == []
        proxy.start()
        assert proxy.host_and_port() == place
        with connect(place) as client:
            assert exchange(client) > 0


def test_a_kind_of_server_has_one_kind_of_proxy_for_each_distance() -> None:
    kind = delayed(Postgres, 5)
    assert kind is delayed(Postgres, 5) and kind is not delayed(Postgres, 20)
    assert in_order([kind]) == [Postgres, kind] and kind.name == "delay-proxy-postgres"
    assert delayed(NullCatalog, 5).name != kind.name
