"""Stand-alone program: clients of a front, in a closed loop, that reconnect when the front is gone.

    python -m tidemark.studies.ingest.load.reconnecting_clients

It reads its `ReconnectingClientConfig`, pickled, from standard input, and then exchanges lines:

    prints "ready", reads "go", and later "end", prints "done <errors as JSON>"

A request whose connection ended without an answer is not resent: its rows are present once, or not at all.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from tidemark.studies.ingest.load.requests import Asking, ClientConfig, Clients
from tidemark.studies.ingest.load.writer import told_to_go

BACK_OFF_S = 0.05  # before a client reconnects


@dataclass(frozen=True, slots=True)
class ReconnectingClientConfig(ClientConfig):
    """Load of reconnecting clients. `place` is a file with the front's current port: a restarted front has another."""

    place: Path


def leave_port(port: int, place: Path) -> None:
    """Write `port` to the file `place`, for clients that connect from now on."""
    beside = place.with_name(f"{place.name}.new")
    beside.write_text(f"{port}\n")
    beside.replace(place)


class ReconnectingClients(Clients):
    """All clients of a front, running until they are stopped."""

    def __init__(self, load: ReconnectingClientConfig) -> None:
        super().__init__(load)
        self._place = load.place
        self._is_over = False

    def end(self) -> None:
        """Begin no further request; called from another thread."""
        self._is_over = True

    async def until_told(self) -> None:
        async def one(client: Asking) -> None:
            while not self._is_over and not client.records.is_full:
                if client.gone:
                    await asyncio.sleep(BACK_OFF_S)
                    await self._connect(client)
                else:
                    await self._ask(client)

        await asyncio.gather(*map(one, self._all))

    async def _connect(self, client: Asking) -> None:
        """Try once to connect `client` to the front, and keep the error if that fails."""
        host, _ = self._load.address
        load = replace(self._load, address=(host, int(self._place.read_text())))
        try:
            await client.open(load, self._batch(0, 0).schema)
        except OSError as error:
            self._keep(f"{type(error).__name__} on the way to the front")


def main() -> None:
    load: ReconnectingClientConfig = pickle.load(sys.stdin.buffer)
    clients = ReconnectingClients(load)
    with asyncio.Runner() as runner:
        runner.run(clients.open())
        told_to_go(clients.end)
        runner.run(clients.until_told())
    print("done", json.dumps(clients.said), flush=True)


if __name__ == "__main__":
    main()
