"""Stand-alone program: all clients of a front, one connection each and in one thread.

    python -m tidemark.studies.ingest.load.requests

It reads its `ClientConfig`, pickled, from standard input, and follows the protocol of `schedule`. In a closed loop, a
client sends its next request when the previous one is answered; of a schedule, a free client takes the oldest due
request. Each request is a record of its client, with the number of the commit that holds it.

With a `place`, the clients reconnect when the front is gone, and it exchanges these lines:

    prints "ready", reads "go", and later "end", prints "done <errors as JSON>"

A request whose connection ended without an answer is not resent: its rows are present once, or not at all.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.studies.ingest.gateway import protocol
from tidemark.studies.ingest.gateway.protocol import LOST, Connection, Outcome
from tidemark.studies.ingest.load.records import ACKED, FAILED, GIVEN_UP, NUMBERS, UNKNOWN, Records
from tidemark.studies.ingest.load.schedule import Due, follow
from tidemark.studies.ingest.load.writer import MOST_KEPT, found_at, prepared, told_to_go

if TYPE_CHECKING:
    import pyarrow as pa

TOLD = {
    Outcome.ACKED: NUMBERS[ACKED],
    Outcome.REFUSED: NUMBERS[GIVEN_UP],
    Outcome.FAILED: NUMBERS[FAILED],
    Outcome.BUSY: NUMBERS[FAILED],
    Outcome.UNKNOWN: NUMBERS[UNKNOWN],
}
BUSY_S = 0.01  # pause after a request that was not accepted
BACK_OFF_S = 0.05  # before a client reconnects


@dataclass(frozen=True, slots=True)
class ClientConfig:
    address: tuple[str, int]
    token: str
    trips: Path
    rows: int
    uncounted: int  # warm-up requests per client
    records: tuple[Path, ...]  # one file per client
    most: int  # requests per client that its records have room for
    place: Path | None = None  # of clients that reconnect: file of the front's port, as a restarted front has another


class Asking:
    """One client: its connection, its records, and the number of its next request."""

    def __init__(self, load: ClientConfig, number: int) -> None:
        self.number, self.sequence, self.gone = number, 0, False
        self.records = Records(load.records[number - 1], load.most)
        self._connection: Connection | None = None

    async def open(self, load: ClientConfig, schema: pa.Schema) -> None:
        """Connect to the front; close the previous connection first, if there was one."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self.gone = await Connection.open(load.address, load.token, schema), False

    async def ask(self, rows: pa.Table) -> Outcome:
        assert self._connection is not None
        clock = time.perf_counter_ns
        data = protocol.request(rows.to_batches()[0])
        place = self.records.begin(clock(), self.sequence, 1)
        self.sequence += 1
        answer = await self._connection.send(data)
        self.records.end(place, clock(), TOLD[answer.outcome], answer.commit or None)
        self.gone = answer is LOST
        return answer.outcome


class Clients:
    """All clients of a front, connected; `said` holds the first outcomes that were not acknowledgements."""

    def __init__(self, load: ClientConfig, runner: asyncio.Runner) -> None:
        """Connect the clients, in the event loop of `runner`."""
        self.said: list[str] = []
        self._load, self._runner = load, runner
        self._batch = prepared(load.trips, load.rows)
        self._all = [Asking(load, number) for number in range(1, len(load.records) + 1)]
        runner.run(self._open())

    async def _open(self) -> None:
        schema = self._batch(0, 0).schema
        for each in self._all:  # one after the other: a server's queue of connections is short
            await each.open(self._load, schema)

    def warm(self) -> None:
        async def one(client: Asking) -> None:
            for _ in range(self._load.uncounted):
                await self._ask(client)

        self._run(one)

    def until(self, end_ns: int) -> None:
        async def one(client: Asking) -> None:
            while time.perf_counter_ns() < end_ns and not client.records.is_full and not client.gone:
                await self._ask(client)

        self._run(one)

    def in_closed_loop(self, end_ns: int, most: int) -> None:
        left = most

        async def one(client: Asking) -> None:
            nonlocal left
            while left > 0 and time.perf_counter_ns() < end_ns and not client.gone:
                left -= 1
                await self._ask(client)

        self._run(one)

    def by_schedule(self, due: Due) -> list[list[int]]:
        clock, meant = time.perf_counter_ns, [list[int]() for _ in self._all]

        async def one(client: Asking) -> None:
            while not client.gone and (start := due.take(clock())) is not None:
                if (ahead := start - clock()) > 0:
                    await asyncio.sleep(ahead / 1e9)
                meant[client.number - 1].append(start)
                await self._ask(client)

        self._run(one)
        return meant

    def _run(self, one: Callable[[Asking], Awaitable[None]]) -> None:
        """Run `one` for all clients at the same time."""

        async def each() -> None:
            await asyncio.gather(*map(one, self._all))

        self._runner.run(each())

    async def _ask(self, client: Asking) -> None:
        outcome = await client.ask(self._batch(client.number, client.sequence))
        if outcome is not Outcome.ACKED:
            self._keep(f"a request was {outcome.name.lower()}")
            if outcome is Outcome.BUSY:
                await asyncio.sleep(BUSY_S)

    def _keep(self, words: str) -> None:
        if len(self.said) < MOST_KEPT:
            self.said.append(words)


class ReconnectingClients(Clients):
    """All clients of a front, running until they are stopped."""

    _is_over = False

    def end(self) -> None:
        """Begin no further request; called from another thread."""
        self._is_over = True

    def until_told(self, place: Path) -> None:
        """Send requests until `end`; `place` has the front's port."""

        async def one(client: Asking) -> None:
            while not self._is_over and not client.records.is_full:
                if client.gone:
                    await asyncio.sleep(BACK_OFF_S)
                    await self._connect(client, found_at(place))
                else:
                    await self._ask(client)

        self._run(one)

    async def _connect(self, client: Asking, port: int) -> None:
        """Try once to connect `client` to the front, and keep the error if that fails."""
        load = replace(self._load, address=(self._load.address[0], port))
        try:
            await client.open(load, self._batch(0, 0).schema)
        except OSError as error:
            self._keep(f"{type(error).__name__} on the way to the front")


def main() -> None:
    load: ClientConfig = pickle.load(sys.stdin.buffer)
    with asyncio.Runner() as runner:
        clients: Clients
        if load.place is not None:
            clients = ReconnectingClients(load, runner)
            told_to_go(clients.end)
            clients.until_told(load.place)
        else:
            clients = Clients(load, runner)
            follow(clients)
    print("done", json.dumps(clients.said), flush=True)


if __name__ == "__main__":
    main()
