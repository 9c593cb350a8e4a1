"""Clients of a front: a blocking one and an asyncio one. Each is one connection with one request at a time."""

from __future__ import annotations

import asyncio
import socket
from types import TracebackType
from typing import TYPE_CHECKING

from tidemark.ingest import wire
from tidemark.ingest.wire import Answer, Outcome

if TYPE_CHECKING:
    import pyarrow as pa

Address = tuple[str, int]
LOST = Answer(Outcome.UNKNOWN)  # answer to a request whose connection ended before the front answered


class FrontClient:
    """Blocking client and context manager. Raises PermissionError if the front rejects the token or the schema."""

    def __init__(self, address: Address, token: str, schema: pa.Schema, timeout_s: float | None = None) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")
        self._socket.sendall(wire.hello(token, schema))
        if self._answers.read(1) != wire.WELCOME:
            self.close()
            raise PermissionError(REFUSED)

    def send(self, rows: pa.RecordBatch) -> Answer:
        """Send `rows` and return the answer; if the connection ends or times out, close it and return UNKNOWN."""
        try:
            self._socket.sendall(wire.request(rows))
            data = self._answers.read(wire.ANSWER.size)
        except OSError:
            data = b""
        if len(data) < wire.ANSWER.size:
            self.close()
            return LOST
        return Answer.unpacked(data)

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> FrontClient:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class Connection:
    """Client for an event loop; created by `open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, address: Address, token: str, schema: pa.Schema) -> Connection:
        """Connect and return the client; raise PermissionError if the front rejects the token or the schema."""
        reader, writer = await asyncio.open_connection(*address)
        writer.write(wire.hello(token, schema))
        if await reader.read(1) != wire.WELCOME:
            writer.close()
            raise PermissionError(REFUSED)
        return cls(reader, writer)

    async def send(self, data: bytes) -> Answer:
        """Send one request encoded by `wire.request` and return its answer; UNKNOWN if the connection has ended."""
        try:
            self._writer.write(data)
            return Answer.unpacked(await self._reader.readexactly(wire.ANSWER.size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return LOST

    def close(self) -> None:
        self._writer.close()


REFUSED = "the front refused the connection: it knows another token, has another schema, or has enough connections"
