"""The delay proxy adds its configured round trip, changes nothing else, and ends with its parent."""

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
from tidemark.services.own import NullCatalog
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import free_ports
from tidemark.services.proxies import DelayProxy, Reachable, delayed
from tidemark.services.servers import in_order

ASKED = 60  # exchanges
LATE_MS = 2.0  # added by a busy machine in at least one in ten exchanges; up to nine in ten may take longer


class Echo:
    """Server that echoes what it receives and closes a connection after its client does."""

    def __init__(self) -> None:
        self.answered = 0  # pieces of data, of all connections
        self._lock = threading.Lock()
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
                with self._lock:
                    self.answered += 1
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
    """Return the milliseconds until all of `data` came back."""
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
def test_round_trip_takes_the_configured_time(shared_workspace: Workspace, echo: Echo, rtt_ms: float) -> None:
    with proxied(shared_workspace, echo, rtt_ms) as proxy, connect(proxy.host_and_port()) as client:
        first, *others = [exchange(client) for _ in range(ASKED)]
    assert min(others) >= rtt_ms, "nothing comes early"
    assert statistics.quantiles(others, n=10)[0] <= rtt_ms + LATE_MS
    assert first >= 1.9 * rtt_ms, "a connection costs a round trip, as a handshake does"


def test_data_arrives_complete_in_order_and_at_full_speed(shared_workspace: Workspace, echo: Echo) -> None:
    """Send 8 MB, which would take minutes if the delay line waited for each piece."""
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


def test_connections_are_delayed_concurrently(shared_workspace: Workspace, echo: Echo) -> None:
    """All reach the server before the first answer returns; one after the other, only the first would have."""
    with proxied(shared_workspace, echo, 2000.0) as proxy:
        clients = [connect(proxy.host_and_port()) for _ in range(40)]
        before = echo.answered
        for client in clients:
            client.sendall(b"all at once")
        assert clients[0].recv(100) == b"all at once"
        assert echo.answered - before == len(clients)
        for client in clients[1:]:
            assert client.recv(100) == b"all at once"
        for client in clients:
            client.close()


def test_client_of_an_unreachable_server_is_disconnected(shared_workspace: Workspace) -> None:
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


def test_proxy_listens_on_loopback_only_and_keeps_its_port(
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


def test_server_class_has_one_proxy_class_per_round_trip_time() -> None:
    kind = delayed(Postgres, 5)
    assert kind is delayed(Postgres, 5) and kind is not delayed(Postgres, 20)
    assert in_order([kind]) == [Postgres, kind] and kind.name == "delay-proxy-postgres"
    assert delayed(NullCatalog, 5).name != kind.name
