"""Stand-alone program: one client that maintains a table, to keep it small, while others write to it.

    python -m tidemark.studies.ingest.load.compactor

It reads its `Upkeep`, pickled, from standard input, prints "ready", reads "go <start> <end>" (nanoseconds of the clock
that all processes share), and prints "done <calls as JSON>", each a `Call`. A round is all operations that the client
offers, one after the other; rounds begin every `every_s` seconds, counted from `start`, and none begins after `end`.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass

from tidemark.machine.processes import forget_peak, peak_bytes
from tidemark.studies.ingest.load.writer import LONGEST, told_span
from tidemark.systems.writers import ClientFactory, TableWriter

DONE = "done"  # otherwise a value of `CommitStatus`


@dataclass(frozen=True, slots=True)
class Upkeep:
    client_factory: ClientFactory
    every_s: float


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the client: `outcome` is DONE or a `CommitStatus`, `said` its error, `peak_bytes` peak memory."""

    operation: str
    round: int
    start_ns: int
    elapsed_ns: int
    outcome: str
    said: str
    peak_bytes: int


def rounds(client: TableWriter, start_ns: int, end_ns: int, every_s: float) -> Iterator[Call]:
    """Yield each call once it has returned. A round that is due during the previous one is delayed until its end."""
    operations, due_ns, number = client.maintenance(), start_ns, 0
    while True:
        due_ns = max(due_ns + round(every_s * 1e9), time.perf_counter_ns())
        if due_ns >= end_ns:
            return
        time.sleep(max(0.0, (due_ns - time.perf_counter_ns()) / 1e9))
        if time.perf_counter_ns() >= end_ns:
            return  # the machine woke this process too late
        number += 1
        for name, operation in operations.items():
            outcome, text = DONE, ""
            forget_peak()
            began = time.perf_counter_ns()
            try:
                operation()
            except Exception as error:
                outcome, text = str(client.commit_status(error)), f"{type(error).__name__}: {error}"[:LONGEST]
            ended = time.perf_counter_ns()
            yield Call(name, number, began, ended - began, outcome, text, peak_bytes())
            if outcome != DONE:
                with suppress(Exception):  # the next call shows the consequences
                    client.refresh()


def main() -> None:
    upkeep: Upkeep = pickle.load(sys.stdin.buffer)
    client = upkeep.client_factory.open()
    calls = list(rounds(client, *told_span(), upkeep.every_s))
    client.close()
    print("done", json.dumps([asdict(call) for call in calls]), flush=True)


if __name__ == "__main__":
    main()
