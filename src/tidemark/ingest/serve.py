"""Program that runs a front until it is asked to stop.

    python -m tidemark.ingest.serve

It reads a pickled `Order` from standard input and prints "ready <port>". On SIGTERM, or at the end of standard input,
it drains the front, prints "done <JSON: commits, busy, said>" and exits.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import signal
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemark.ingest.front import Front, Limits
from tidemark.ingest.policies import Policy
from tidemark.systems.writers import Door

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Order:
    door: Door
    schema: pa.Schema
    policy: Policy
    token: str
    writers: int
    tries: int
    limits: Limits = field(default_factory=Limits)


async def serve(order: Order) -> None:
    front = Front(
        order.door,
        order.schema,
        order.policy,
        token=order.token,
        writers=order.writers,
        tries=order.tries,
        limits=order.limits,
    )
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
