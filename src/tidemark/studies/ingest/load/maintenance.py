"""Stand-alone program: a client that maintains a table, or that counts its rows, while others write to it.

    python -m tidemark.studies.ingest.load.maintenance

It reads an `Upkeep`, or a reader's `ClientFactory`, pickled, from standard input, prints "ready", reads "go <start>
<end>" (nanoseconds of the clock that all processes share), and prints "done <calls or counts as JSON>". Moments are
seconds from `start`.

A round of maintenance is all operations that the client offers, one after the other; rounds begin every `every_s`
seconds, counted from `start`, and none begins after `end`. A reader keeps its client when a count fails, as an ordinary
reader of a table would.
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
from tidemark.studies.ingest.load.writer import LONGEST, MOST_KEPT, told_span
from tidemark.studies.ingest.record import Counts, MaintenanceCall, in_seconds
from tidemark.systems.writers import ClientFactory, TableWriter

DONE = "done"  # otherwise a value of `CommitStatus`
PAUSE_S = 0.05  # after each count


@dataclass(frozen=True, slots=True)
class Upkeep:
    client_factory: ClientFactory
    every_s: float


def rounds(client: TableWriter, start_ns: int, end_ns: int, every_s: float) -> Iterator[MaintenanceCall]:
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
            took = time.perf_counter_ns() - began
            moment_s, seconds = in_seconds(began - start_ns), in_seconds(took)
            yield MaintenanceCall(moment_s, seconds, name, number, outcome, text, peak_bytes())
            if outcome != DONE:
                with suppress(Exception):  # the next call shows the consequences
                    client.refresh()


def watch(client: TableWriter, start_ns: int, end_ns: int) -> Counts:
    """Count the rows again and again."""
    moments, took, counted, said = list[float](), list[float](), list[int | None](), list[str]()
    time.sleep(max(0, start_ns - time.perf_counter_ns()) / 1e9)
    while (began := time.perf_counter_ns()) < end_ns:
        rows: int | None = None
        try:
            rows = client.count()
        except Exception as error:
            if len(said) < MOST_KEPT:
                said.append(f"{type(error).__name__}: {error}"[:LONGEST])
        took.append(in_seconds(time.perf_counter_ns() - began))
        moments.append(in_seconds(began - start_ns))
        counted.append(rows)
        time.sleep(PAUSE_S)
    return Counts(tuple(moments), tuple(took), tuple(counted), tuple(said))


def main() -> None:
    order: Upkeep | ClientFactory = pickle.load(sys.stdin.buffer)
    if isinstance(order, ClientFactory):
        client = order.open()
        done: object = asdict(watch(client, *told_span()))
    else:
        client = order.client_factory.open()
        done = [asdict(call) for call in rounds(client, *told_span(), order.every_s)]
    client.close()
    print("done", json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
