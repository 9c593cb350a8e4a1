"""Stand-alone program: all clients of a front, one connection each, in a closed loop and in one thread.

    python -m tidemark.studies.ingest.load.requests

It reads its `ClientConfig`, pickled, from standard input, and follows the protocol of `writer`. A client sends its next
request when the previous one is answered; each request is a record of its client, with the number of the commit that
holds it.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.studies.ingest.gateway import protocol
from tidemark.studies.ingest.gateway.protocol import LOST, Connection, Outcome
from tidemark.studies.ingest.load.records import ACKED, FAILED, GIVEN_UP, NUMBERS, UNKNOWN, Records
from tidemark.studies.ingest.load.writer import MOST_KEPT, obey, prepared

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


@dataclass(frozen=True, slots=True)
class ClientConfig:
    address: tuple[str, int]
    token: str
    trips: Path
    rows: int
    uncounted: int  # warm-up requests per client
    records: tuple[Path, ...]  # one file per client
    most: int  # requests per client that its records have room for


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
    """All clients of a front; `said` holds the first outcomes that were not acknowledgements."""

    def __init__(self, load: ClientConfig) -> None:
        self.said: list[str] = []
        self._load = load
        self._batch = prepared(load.trips, load.rows)
        self._all = [Asking(load, number) for number in range(1, len(load.records) + 1)]

    async def open(self) -> None:
        schema = self._batch(0, 0).schema
        for each in self._all:  # one after the other: a server's queue of connections is short
            await each.open(self._load, schema)

    async def count(self, requests: int) -> None:
        async def one(client: Asking) -> None:
            for _ in range(requests):
                await self._ask(client)

        await asyncio.gather(*map(one, self._all))

    async def until(self, end_ns: int) -> None:
        async def one(client: Asking) -> None:
            while time.perf_counter_ns() < end_ns and not client.records.is_full and not client.gone:
                await self._ask(client)

        await asyncio.gather(*map(one, self._all))

    async def _ask(self, client: Asking) -> None:
        outcome = await client.ask(self._batch(client.number, client.sequence))
        if outcome is not Outcome.ACKED:
            self._keep(f"a request was {outcome.name.lower()}")
            if outcome is Outcome.BUSY:
                await asyncio.sleep(BUSY_S)

    def _keep(self, words: str) -> None:
        if len(self.said) < MOST_KEPT:
            self.said.append(words)


def main() -> None:
    load: ClientConfig = pickle.load(sys.stdin.buffer)
    clients = Clients(load)
    with asyncio.Runner() as runner:
        runner.run(clients.open())
        obey(lambda: runner.run(clients.count(load.uncounted)), lambda end_ns: runner.run(clients.until(end_ns)))
    print("done", json.dumps(clients.said), flush=True)


if __name__ == "__main__":
    main()
