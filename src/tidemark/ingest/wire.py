"""Wire protocol of a front, little-endian.

    client: MAGIC, a token of TOKEN_BYTES bytes, the length of a schema (4 bytes), the schema in Arrow IPC format
    front:  1 byte, WELCOME; otherwise it closes the connection
    client: the length of a request (4 bytes), a record batch of that schema in Arrow IPC format
    front:  1 byte, the outcome (`Outcome`); 8 bytes, the number of the commit that holds the request, or 0

A client sends a request after the previous one was answered; concurrent requests need separate connections. If a
connection ends without an answer, the outcome of the last request is `UNKNOWN`.
"""

from __future__ import annotations

import secrets
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
