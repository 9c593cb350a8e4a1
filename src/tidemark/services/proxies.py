"""Proxies between a server and its clients: one adds a round-trip time, which a loopback address lacks; one counts.

`DelayProxy` is a server of its own. `CountingProxy` runs in a thread of this process, and counts what clients exchange
with a server: round trips, requests, bytes.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

from tidemark.paths import Workspace
from tidemark.services.base import Service, ServiceContext
from tidemark.services.own import OwnProgram
from tidemark.services.programs.delay import Client, Side
from tidemark.services.programs.process import is_free

REQUEST = re.compile(rb"([A-Z]+) \S+ HTTP/1\.[01]\r\n")
READY_S = 30.0
LONGEST = 200  # characters of a statement that are kept


@dataclass(frozen=True, slots=True)
class Place:
    """A port of this machine's loopback."""

    port: int

    def host_and_port(self) -> tuple[str, int]:
        return "127.0.0.1", self.port


type Reachable = Service | Place  # accepts TCP connections; a proxy reads its address when it starts


class DelayProxy(OwnProgram):
    """Proxy on a loopback port in front of one server: each byte arrives `rtt_ms` / 2 later, in either direction.

    There is no bandwidth limit and no loss. `delayed` creates the proxy class for a class of servers.
    A round trip of one byte to an echo server on loopback takes 0.03 ms without the proxy. On two processors with eight
    programs competing for them, its 10th percentile was 0.19 ms at 0 ms, 1.4 at 1, 5.6 at 5 and 20.7 at 20: about
    0.2 ms are the proxy's overhead, the rest is timers waiting for a processor. Nothing arrives early.
    """

    name: ClassVar[str] = "delay-proxy"
    title: ClassVar[str] = "Delay proxy"
    has_one_port: ClassVar[bool] = True
    is_instrument: ClassVar[bool] = True
    program: ClassVar[str] = "tidemark.services.programs.delay"
    ready_line: ClassVar[str] = "delays on port: "
    target: ClassVar[type[Service]]
    rtt_ms: ClassVar[float]

    def __init__(self, workspace: Workspace, directory: Path, target: Reachable, rtt_ms: float) -> None:
        super().__init__(workspace, directory)
        self.before, self._rtt_ms = target, rtt_ms

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around.workspace, around.directory, around.server(cls.target), cls.rtt_ms)

    def _arguments(self) -> tuple[str, ...]:
        host, port = self.before.host_and_port()
        # Reuse the previous port if it is free: clients know that address.
        listen = self._port if is_free(self._port) else 0
        return host, str(port), f"{self._rtt_ms:g}", str(listen)


@cache
def delayed(kind: type[Service], milliseconds: float) -> type[DelayProxy]:
    """Return the proxy class that puts a server of `kind` a round trip of `milliseconds` away; cached.

    A user lists it in `needs` next to the server, and connects to its `host_and_port` instead of the server's.
    """

    class Delayed(DelayProxy):
        name: ClassVar[str] = f"{DelayProxy.name}-{kind.name}"
        title: ClassVar[str] = f"{DelayProxy.title} ({kind.title}, {milliseconds:g} ms)"
        needs: ClassVar[tuple[type[Service], ...]] = (kind,)
        target: ClassVar[type[Service]] = kind
        rtt_ms: ClassVar[float] = milliseconds

    return Delayed


@dataclass(slots=True)
class Exchange:
    """Bytes that a client sent in one go, and the answer before it sent more: a round trip, if there was an answer."""

    method: str | None  # of an HTTP request that it begins with
    began_s: float
    ended_s: float
    sent_bytes: int = 0
    received_bytes: int = 0
    asked: str = ""  # what it begins with: an HTTP request, or a statement to PostgreSQL
    opens: bool = False  # it is the first one of its connection, whose opening took a round trip as well


def asked_by(data: bytes, prepared: dict[bytes, str]) -> str:
    """Return the HTTP request, or the statement in PostgreSQL's protocol, that `data` begins with; empty for others.

    `prepared` has the connection's prepared statements by name, and gets those that `data` prepares.
    """
    if found := REQUEST.match(data):
        return found[0].rpartition(b" ")[0].decode(errors="replace")[:LONGEST]
    kind, text, name = data[:1], data[5:], b""  # a letter and four bytes of length
    if kind == b"B":  # the name of a portal comes first
        return prepared.get(text.partition(b"\0")[2].partition(b"\0")[0], "")
    if kind not in (b"P", b"Q"):
        return ""
    if kind == b"P":
        name, _, text = text.partition(b"\0")
    asked = " ".join(text.partition(b"\0")[0].decode(errors="replace").split())[:LONGEST]
    if name:
        prepared[name] = asked
    return asked


def is_during(one: Exchange, other: Exchange) -> bool:
    """Return True if `one` began and ended while `other` waited for its answer."""
    return other.began_s <= one.began_s and one.ended_s <= other.ended_s


def in_series(exchanges: Iterable[Exchange], behind: Collection[Exchange] = ()) -> int:
    """Return the most round trips of which each began after the one before had ended; opening a connection is one.

    `behind` are those that a server makes for its answers: a round trip takes as many longer as are in series in it.
    """
    found: list[tuple[float, int]] = []  # the end of each exchange, and the most round trips up to it
    for each in sorted(exchanges, key=lambda each: each.ended_s):
        before = max((count for ended, count in found if ended <= each.began_s), default=0)
        for_it = in_series(one for one in behind if is_during(one, each))
        found.append((each.ended_s, before + 1 + each.opens + for_it))
    return max((count for _, count in found), default=0)


class _Server(Side):
    """The server's side of a connection."""

    def data_received(self, data: bytes) -> None:
        if isinstance(self.other, _Client):
            self.other.answered(len(data))
        super().data_received(data)


class _Client(Client):
    """The client's side of a connection, which notes the exchanges."""

    beyond = _Server

    def __init__(self, place: tuple[str, int], noted: list[Exchange]) -> None:
        super().__init__(*place, 0.0)
        self._noted = noted
        self._last: Exchange | None = None
        self._request = ""  # the last one, if the connection is of HTTP
        self._prepared: dict[bytes, str] = {}

    def data_received(self, data: bytes) -> None:
        if self._last is None or self._last.received_bytes:
            found, now = REQUEST.match(data), time.monotonic()
            method, opens = None if found is None else found[1].decode(), self._last is None
            if method is None and self._request:  # the server was asked first whether it would take the content
                asked = f"content of {self._request}"
            else:
                asked = asked_by(data, self._prepared)
                self._request = asked if method is not None else ""
            self._last = Exchange(method, now, now, asked=asked, opens=opens)
            self._noted.append(self._last)
        self._last.sent_bytes += len(data)
        super().data_received(data)

    def answered(self, count: int) -> None:
        if self._last is not None:
            self._last.received_bytes += count
            self._last.ended_s = time.monotonic()


class CountingProxy:
    """Proxy on a loopback port in front of a server, whose address is read for each connection; a context manager.

    It forwards bytes as they are, without a delay. TLS is opaque to it: it sees round trips and bytes, no requests.
    """

    def __init__(self, target: Reachable) -> None:
        self._target = target
        self._noted: list[Exchange] = []
        self._ready = threading.Event()
        self.port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def noted(self) -> list[Exchange]:
        """Return the exchanges since the last `take`, with those that are not answered yet."""
        return self._noted[:]

    def take(self) -> list[Exchange]:
        """Return the exchanges since the last call that were answered."""
        noted = self._noted[:]
        del self._noted[: len(noted)]
        return [each for each in noted if each.received_bytes]

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(READY_S)
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._end is not None:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(
            lambda: _Client(self._target.host_and_port(), self._noted), "127.0.0.1", 0
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
