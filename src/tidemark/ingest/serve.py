"""A program of its own: a front, until it is told to end.

    python -m tidemark.ingest.serve

It is given its `Order` on standard input, pickled, and says "ready <port>". SIGTERM, or the end of its standard input,
has it drain: then it says "done <JSON: commits, busy, said>" and ends.
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
    loop.add_reader(sys.stdin.fileno(), ended.set)  # nothing more is said to it: this is its end
    print("ready", port, flush=True)
    await ended.wait()
    loop.remove_reader(sys.stdin.fileno())
    await front.drain()
    print("done", json.dumps({"commits": front.commits, "busy": front.busy, "said": front.said}), flush=True)


def main() -> None:
    asyncio.run(serve(pickle.load(sys.stdin.buffer)))


if __name__ == "__main__":
    main()
