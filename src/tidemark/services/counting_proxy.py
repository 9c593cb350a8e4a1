"""A proxy in a thread of this process that counts what clients exchange with a server: round trips, requests, bytes."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

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


def asked_by(data: bytes) -> str:
    """Return the HTTP request, or the statement in PostgreSQL's protocol, that `data` begins with; empty for others."""
    if found := REQUEST.match(data):
        return found[0].rpartition(b" ")[0].decode(errors="replace")[:LONGEST]
    kind, text = data[:1], data[5:]  # a letter and four bytes of length
    if kind == b"P":  # the name of a prepared statement comes first
        text = text.partition(b"\0")[2]
    if kind not in (b"P", b"Q"):
        return ""
    return " ".join(text.partition(b"\0")[0].decode(errors="replace").split())[:LONGEST]


def in_series(exchanges: Iterable[Exchange]) -> int:
    """Return the most round trips of which each began after the one before had ended; opening a connection is one."""
    found: list[tuple[float, int]] = []  # the end of each exchange, and the most round trips up to it
    for each in sorted(exchanges, key=lambda each: each.ended_s):
        before = max((count for ended, count in found if ended <= each.began_s), default=0)
        found.append((each.ended_s, before + 1 + each.opens))
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

    def __init__(self, port: int, noted: list[Exchange]) -> None:
        super().__init__("127.0.0.1", port, 0.0)
        self._noted = noted
        self._last: Exchange | None = None

    def data_received(self, data: bytes) -> None:
        if self._last is None or self._last.received_bytes:
            found, now = REQUEST.match(data), time.monotonic()
            method, opens = None if found is None else found[1].decode(), self._last is None
            self._last = Exchange(method, now, now, asked=asked_by(data), opens=opens)
            self._noted.append(self._last)
        self._last.sent_bytes += len(data)
        super().data_received(data)

    def answered(self, count: int) -> None:
        if self._last is not None:
            self._last.received_bytes += count
            self._last.ended_s = time.monotonic()


class CountingProxy:
    """Proxy on a loopback port in front of a server that listens on another; a context manager.

    It forwards bytes as they are, without a delay. TLS is opaque to it: it sees round trips and bytes, no requests.
    """

    def __init__(self, target: int) -> None:
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
        server = await self._loop.create_server(lambda: _Client(self._target, self._noted), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
