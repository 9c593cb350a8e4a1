"""Wire protocol of a gateway, little-endian, and its clients: a blocking one and an asyncio one.

    client: MAGIC, a token of TOKEN_BYTES bytes, the length of a schema (4 bytes), the schema in Arrow IPC format
    front:  1 byte, WELCOME; otherwise it closes the connection
    client: the length of a request (4 bytes), a record batch of that schema in Arrow IPC format
    front:  1 byte, the outcome (`Outcome`); 8 bytes, the number of the commit that holds the request, or 0

A client sends a request after the previous one was answered; concurrent requests need separate connections. If a
connection ends without an answer, the outcome of the last request is `UNKNOWN`. Each client is one connection with one
request at a time.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"tidemark"
TOKEN_BYTES = 32
LENGTH = struct.Struct("<I")
ANSWER = struct.Struct("<BQ")
WELCOME = b"\x01"

Address = tuple[str, int]


class Outcome(IntEnum):
    """Outcome of a request. After BUSY, REFUSED and FAILED its rows are guaranteed not to be in the table."""

    ACKED = 1  # committed
    REFUSED = 2  # every attempt conflicted with an earlier commit
    FAILED = 3  # refused for another reason
    UNKNOWN = 4  # may or may not be committed
    BUSY = 5  # not accepted: no room became free within the time limit


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    commit: int = 0  # counted from 1 since the front started

    def packed(self) -> bytes:
        return ANSWER.pack(self.outcome, self.commit)

    @classmethod
    def unpacked(cls, data: bytes) -> Answer:
        """Decode an answer; raise ValueError if the outcome is not valid."""
        outcome, commit = ANSWER.unpack(data)
        return cls(Outcome(outcome), commit)


def new_token() -> str:
    """Return a random secret as text of TOKEN_BYTES characters."""
    return secrets.token_hex(TOKEN_BYTES // 2)


def hello(token: str, schema: pa.Schema) -> bytes:
    """Return the first message of a client; raise ValueError if the token has another length."""
    if len(token.encode()) != TOKEN_BYTES:
        raise ValueError(f"a token of {len(token.encode())} bytes; allowed: {TOKEN_BYTES}")
    spelled = schema.serialize().to_pybytes()
    return b"".join((MAGIC, token.encode(), LENGTH.pack(len(spelled)), spelled))


def request(rows: pa.RecordBatch) -> bytes:
    """Return `rows` as a request message."""
    body = rows.serialize()
    return b"".join((LENGTH.pack(body.size), body))


LOST = Answer(Outcome.UNKNOWN)  # answer to a request whose connection ended before the gateway answered
REFUSED = "the front refused the connection: it knows another token, has another schema, or has enough connections"


class GatewayClient:
    """Blocking client and context manager. Raises PermissionError if the front rejects the token or the schema."""

    def __init__(self, address: Address, token: str, schema: pa.Schema, timeout_s: float | None = None) -> None:
        self._socket = socket.create_connection(address, timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")
        self._socket.sendall(hello(token, schema))
        if self._answers.read(1) != WELCOME:
            self.close()
            raise PermissionError(REFUSED)

    def send(self, rows: pa.RecordBatch) -> Answer:
        """Send `rows` and return the answer; if the connection ends or times out, close it and return UNKNOWN."""
        try:
            self._socket.sendall(request(rows))
            data = self._answers.read(ANSWER.size)
        except OSError:
            data = b""
        if len(data) < ANSWER.size:
            self.close()
            return LOST
        return Answer.unpacked(data)

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> GatewayClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Connection:
    """Client for an event loop; created by `open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, address: Address, token: str, schema: pa.Schema) -> Connection:
        """Connect and return the client; raise PermissionError if the front rejects the token or the schema."""
        reader, writer = await asyncio.open_connection(*address)
        writer.write(hello(token, schema))
        if await reader.read(1) != WELCOME:
            writer.close()
            raise PermissionError(REFUSED)
        return cls(reader, writer)

    async def send(self, data: bytes) -> Answer:
        """Send one request encoded by `request` and return its answer; UNKNOWN if the connection has ended."""
        try:
            self._writer.write(data)
            return Answer.unpacked(await self._reader.readexactly(ANSWER.size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return LOST

    def close(self) -> None:
        self._writer.close()
