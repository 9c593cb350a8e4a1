"""Stand-alone program: all clients of a front, on one schedule; a free client takes the oldest due request.

    python -m tidemark.studies.ingest.load.scheduled_clients

It reads its `ClientConfig`, pickled, from standard input, and follows the protocol of `schedule`.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
from collections.abc import Awaitable, Callable

from tidemark.studies.ingest.load.requests import Asking, ClientConfig, Clients
from tidemark.studies.ingest.load.schedule import Due, follow


class Scheduled(Clients):
    """Clients that all share one schedule, or each run a closed loop; `runner` has their event loop."""

    def __init__(self, load: ClientConfig, runner: asyncio.Runner) -> None:
        super().__init__(load)
        self._runner = runner
        runner.run(self.open())

    def warm(self) -> None:
        self._runner.run(self.count(self._load.uncounted))

    def in_closed_loop(self, end_ns: int, most: int) -> None:
        left = most

        async def one(client: Asking) -> None:
            nonlocal left
            while left > 0 and time.perf_counter_ns() < end_ns and not client.gone:
                left -= 1
                await self._ask(client)

        self._runner.run(self._each(one))

    def by_schedule(self, due: Due) -> list[list[int]]:
        clock, meant = time.perf_counter_ns, [list[int]() for _ in self._all]

        async def one(client: Asking) -> None:
            while not client.gone and (start := due.take(clock())) is not None:
                if (ahead := start - clock()) > 0:
                    await asyncio.sleep(ahead / 1e9)
                meant[client.number - 1].append(start)
                await self._ask(client)

        self._runner.run(self._each(one))
        return meant

    async def _each(self, one: Callable[[Asking], Awaitable[None]]) -> None:
        await asyncio.gather(*map(one, self._all))


def main() -> None:
    load: ClientConfig = pickle.load(sys.stdin.buffer)
    with asyncio.Runner() as runner:
        follow(Scheduled(load, runner))


if __name__ == "__main__":
    main()
