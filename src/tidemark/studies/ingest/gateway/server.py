"""The front: a loopback server that accepts requests, commits them by a policy and answers them.

Guarantees:

- A request is acknowledged only after the commit that holds it has returned. If the front is killed, no acknowledged
  request is lost, provided that the system keeps its own durability guarantee.
- All requests in a commit have its outcome: acknowledged, refused, failed or unknown. A request with an unknown
  outcome is never retried.
- The bytes of requests that were accepted and not yet answered never exceed `Limits.waiting_bytes`. A request that
  finds no room is not read from its connection; it is answered BUSY after `Limits.busy_after_s`. In addition, a second
  copy of the rows exists while they are committed, and each connection takes about 128 KiB; there are at most
  `Limits.connections` connections.
- `drain` accepts no further requests, immediately commits those already accepted, and answers them.

It is also a program that runs a gateway until it is asked to stop:

    python -m tidemark.studies.ingest.gateway.server

It reads a pickled `GatewayConfig` from standard input and prints "ready <port>". On SIGTERM, or at the end of standard
input, it drains the gateway, prints "done <JSON: commits, busy, said>" and exits.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import pickle
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from tidemark.studies.ingest.gateway import protocol
from tidemark.studies.ingest.gateway.group_commit import Committer, FileBundling, Policy, TableWorker, committer
from tidemark.studies.ingest.gateway.protocol import Answer, Outcome
from tidemark.systems.writers import ClientFactory

if TYPE_CHECKING:
    import pyarrow as pa

HOST = "127.0.0.1"
PIECE = 1 << 16
LONGEST_SCHEMA = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    waiting_bytes: int = 64 << 20
    request_bytes: int = 16 << 20  # of one request; a longer one is answered FAILED
    busy_after_s: float = 5.0
    greeting_s: float = 10.0  # for a new connection to authenticate
    drain_s: float = 60.0  # for clients to read their answers after the last commit
    connections: int = 1024


class MemoryBudget:
    """Bytes of requests that were accepted and not yet answered; served first come, first served."""

    def __init__(self, size: int) -> None:
        self.size = self.free = self.least_free = size
        self._waiting = 0
        self._turn, self._freed = asyncio.Lock(), asyncio.Event()

    async def take(self, size: int, seconds: float) -> bool:
        """Take `size` bytes, which must not exceed the total; return False if they did not become free in `seconds`."""
        if not self._waiting and size <= self.free:
            self._give(size)
            return True
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds), self._turn:
                while size > self.free:
                    self._freed.clear()
                    await self._freed.wait()
                self._give(size)
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    def put_back(self, size: int) -> None:
        self.free += size
        self._freed.set()

    def _give(self, size: int) -> None:
        self.free -= size
        self.least_free = min(self.least_free, self.free)


class Gateway:
    """Ingest server in one event loop; started by `start`, stopped by `drain`."""

    def __init__(
        self,
        client_factory: ClientFactory,
        schema: pa.Schema,
        policy: Policy,
        *,
        token: str,
        writers: int = 1,
        tries: int = 20,
        limits: Limits | None = None,
    ) -> None:
        """Configure the front; raise ValueError if `limits` contradict each other.

        `writers`: concurrent table clients, a thread each (plus one for `FileBundling`); `tries`: attempts on conflict.
        """
        self.limits = limits or Limits()
        if self.limits.request_bytes > self.limits.waiting_bytes:
            raise ValueError("request_bytes is more than waiting_bytes: such a request could never be taken in")
        self._schema, self._policy, self._token = schema, policy, token.encode()
        count = writers + isinstance(policy, FileBundling)
        self._hands = [TableWorker(client_factory, tries, number) for number in range(count)]
        self.room = MemoryBudget(self.limits.waiting_bytes)
        self.busy = 0  # requests answered BUSY
        self._committer: Committer | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()  # connections without an accepted request

    async def start(self, host: str = HOST, port: int = 0) -> int:
        """Open the table clients, listen and return the port; errors from opening a client propagate."""
        await asyncio.gather(*(hand.open() for hand in self._hands))
        self._committer = committer(self._policy, self._hands)
        self._server = await asyncio.start_server(self._connected, host, port, limit=PIECE, backlog=1024)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def drain(self) -> None:
        """Accept no further requests, commit and answer the accepted ones, and close the table clients."""
        assert self._server is not None and self._committer is not None
        self._server.close()
        for task in tuple(self._idle):
            task.cancel()
        await self._committer.drain()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=self.limits.drain_s)
            for task in late:
                task.cancel()
        await asyncio.gather(*(hand.close() for hand in self._hands))

    @property
    def commits(self) -> int:
        """Number of acknowledged commits."""
        return self._committer.commits if self._committer else 0

    @property
    def said(self) -> tuple[str, ...]:
        """Error messages of the first commits that were not acknowledged."""
        return tuple(self._committer.said) if self._committer else ()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self._idle.add(task)
        try:
            if len(self._connections) <= self.limits.connections:
                async with asyncio.timeout(self.limits.greeting_s):
                    known = await self._greeted(reader)
                if known:
                    writer.write(protocol.WELCOME)
                    await self._serve(reader, writer, task)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass  # the client finds its connection closed
        finally:
            self._connections.discard(task)
            self._idle.discard(task)
            with suppress(ConnectionError):
                writer.close()

    async def _greeted(self, reader: asyncio.StreamReader) -> bool:
        """Return True if the client sent the correct token and the table's schema."""
        import pyarrow as pa

        said = await reader.readexactly(len(protocol.MAGIC) + protocol.TOKEN_BYTES)
        if not hmac.compare_digest(said, protocol.MAGIC + self._token):
            return False
        (length,) = protocol.LENGTH.unpack(await reader.readexactly(protocol.LENGTH.size))
        if length > LONGEST_SCHEMA:
            return False
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(await reader.readexactly(length)))
        except pa.ArrowException:
            return False
        return bool(schema.equals(self._schema))

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        while True:
            (length,) = protocol.LENGTH.unpack(await reader.readexactly(protocol.LENGTH.size))
            answer = await self._answered(reader, length, task)
            writer.write(answer.packed())
            await writer.drain()
            if self._server is None or not self._server.is_serving():
                return

    async def _answered(self, reader: asyncio.StreamReader, length: int, task: asyncio.Task[None]) -> Answer:
        if length > self.limits.request_bytes:
            return await self._skipped(reader, length, Outcome.FAILED)
        if not await self.room.take(length, self.limits.busy_after_s):
            self.busy += 1
            return await self._skipped(reader, length, Outcome.BUSY)
        try:
            rows = self._decoded(await reader.readexactly(length))
            if rows is None:
                return Answer(Outcome.FAILED)
            assert self._committer is not None
            self._idle.discard(task)
            return await self._committer.submit(rows, length)
        finally:
            self._idle.add(task)
            self.room.put_back(length)

    def _decoded(self, data: bytes) -> pa.RecordBatch | None:
        import pyarrow as pa

        try:
            rows = pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)
            rows.validate()
        except (pa.ArrowException, OSError, ValueError):
            return None
        return rows

    async def _skipped(self, reader: asyncio.StreamReader, length: int, outcome: Outcome) -> Answer:
        while length:
            length -= len(await reader.readexactly(min(length, PIECE)))
        return Answer(outcome)


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    client_factory: ClientFactory
    schema: pa.Schema
    policy: Policy
    token: str
    writers: int
    tries: int
    limits: Limits = field(default_factory=Limits)


async def serve(order: GatewayConfig) -> None:
    front = Gateway(**{each.name: getattr(order, each.name) for each in fields(order)})
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    port = await front.start()
    loop.add_reader(sys.stdin.fileno(), ended.set)  # end of standard input: stop
    print("ready", port, flush=True)
    await ended.wait()
    loop.remove_reader(sys.stdin.fileno())
    await front.drain()
    print("done", json.dumps({"commits": front.commits, "busy": front.busy, "said": front.said}), flush=True)


def main() -> None:
    asyncio.run(serve(pickle.load(sys.stdin.buffer)))


if __name__ == "__main__":
    main()
