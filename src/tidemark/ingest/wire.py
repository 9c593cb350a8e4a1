"""What goes over a connection, little-endian.

    client: MAGIC, a token of TOKEN_BYTES bytes, the length of a schema (4 bytes), the schema as Arrow IPC has it
    front:  1 byte, WELCOME; otherwise it closes the connection
    client: the length of a request (4 bytes), a record batch of that schema as Arrow IPC has it
    front:  1 byte, what became of it (`Outcome`); 8 bytes, the number of the commit that holds it, or 0

A client sends a request once the one before is answered; several at once take several connections. A connection that
ends without an answer leaves the request before it `UNKNOWN`.
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
    """What became of a request. BUSY, REFUSED and FAILED: it is certainly not in the table."""

    ACKED = 1  # committed
    REFUSED = 2  # other commits came first, each time that it was tried
    FAILED = 3  # refused for another reason
    UNKNOWN = 4  # it may be committed or not
    BUSY = 5  # not taken in: no room was free for as long as a request may wait for it


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    commit: int = 0  # from 1, of the front since it started

    def packed(self) -> bytes:
        return ANSWER.pack(self.outcome, self.commit)

    @classmethod
    def unpacked(cls, data: bytes) -> Answer:
        """ValueError where it is none."""
        outcome, commit = ANSWER.unpack(data)
        return cls(Outcome(outcome), commit)


def new_token() -> str:
    """A secret that only those know who are given it, as text of TOKEN_BYTES characters."""
    return secrets.token_hex(TOKEN_BYTES // 2)


def hello(token: str, schema: pa.Schema) -> bytes:
    """What a client begins with; ValueError for a token of another length."""
    if len(token.encode()) != TOKEN_BYTES:
        raise ValueError(f"a token of {len(token.encode())} bytes; allowed: {TOKEN_BYTES}")
    spelled = schema.serialize().to_pybytes()
    return b"".join((MAGIC, token.encode(), LENGTH.pack(len(spelled)), spelled))


def request(rows: pa.RecordBatch) -> bytes:
    """`rows` as they are sent."""
    body = rows.serialize()
    return b"".join((LENGTH.pack(body.size), body))
