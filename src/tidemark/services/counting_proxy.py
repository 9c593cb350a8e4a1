"""A proxy in a thread of this process that counts what clients exchange with a server: round trips, requests, bytes."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Self

from tidemark.services.delay_proxy import Reachable
from tidemark.services.programs.delay import Client, Side

REQUEST = re.compile(rb"([A-Z]+) \S+ HTTP/1\.[01]\r\n")
READY_S = 30.0
LONGEST = 200  # characters of a statement that are kept


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
