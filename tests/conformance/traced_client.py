"""A separate client process for strace: opens a table of a system, and writes on command.

`python -m conformance.traced_client`, in the folder `tests`: reads a pickled `Order` from standard input and then one
line, "go". Prints lines of JSON: its process id once the table exists and has been written to, the start and end of
each part of the writing, and the number of ids that the table has then.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.services.base import Service
from tidemark.systems.base import Context
from tidemark.systems.registry import registry

from .trips import YELLOW, trips

SINGLE, BATCH = "single", "batch"
WRITES = {SINGLE: 20, BATCH: 5}
ROWS = {SINGLE: 1, BATCH: 1000}
WARM_UP = 3


@dataclass(frozen=True, slots=True)
class Order:
    """Table to open; `more_syncs` plants a client that makes this many additional syncs in each write."""

    system: str
    options: Mapping[str, Any]
    directory: Path
    services: Mapping[type[Service], Service]
    more_syncs: int = 0
    tools: Mapping[str, Path] = field(default_factory=dict)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    order = pickle.load(sys.stdin.buffer)
    kind = registry()[order.system]
    options = kind.Options(**order.options)
    given = Context(order.directory, order.services, rows_per_write=max(ROWS.values()), tools=order.tools)
    system = kind(given, options)
    system.create(YELLOW)
    first = 0

    def write(rows: int) -> None:
        nonlocal first
        given = trips(YELLOW, rows, first)
        first += rows
        system.write(given)
        for _ in range(order.more_syncs):
            descriptor = os.open(order.directory, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

    for _ in range(WARM_UP):
        write(1)
    say(pid=os.getpid())
    assert sys.stdin.buffer.readline() == b"go\n"
    for part, count in WRITES.items():
        began = time.time()
        for _ in range(count):
            write(ROWS[part])
        say(part=part, began=began, ended=time.time())
    say(ids=len(system.ids()))
    assert sys.stdin.buffer.readline() == b""
    system.close()


if __name__ == "__main__":
    main()
