"""Stand-alone program: one client that counts the rows of a table repeatedly while others write to it.

    python -m tidemark.studies.ingest.load.row_counter

It reads the table's `ClientFactory`, pickled, from standard input, and follows the protocol of `compactor`, but prints
`Polls` after "done". It keeps its client when a count fails, as an ordinary reader of a table would.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from dataclasses import asdict, dataclass, field

from tidemark.studies.ingest.load.writer import LONGEST, MOST_KEPT, told_span
from tidemark.systems.writers import ClientFactory, TableWriter

PAUSE_S = 0.05  # after each count
NOT_COUNTED = -1


@dataclass(slots=True)
class Polls:
    """Counts of rows, one per position: the start, the duration, and the rows or NOT_COUNTED."""

    start_ns: list[int] = field(default_factory=list)
    elapsed_ns: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # the first errors


def watch(client: TableWriter, start_ns: int, end_ns: int) -> Polls:
    polls = Polls()
    time.sleep(max(0, start_ns - time.perf_counter_ns()) / 1e9)
    while (began := time.perf_counter_ns()) < end_ns:
        try:
            rows = client.count()
        except Exception as error:
            rows = NOT_COUNTED
            if len(polls.said) < MOST_KEPT:
                polls.said.append(f"{type(error).__name__}: {error}"[:LONGEST])
        polls.start_ns.append(began)
        polls.elapsed_ns.append(time.perf_counter_ns() - began)
        polls.rows.append(rows)
        time.sleep(PAUSE_S)
    return polls


def main() -> None:
    client_factory: ClientFactory = pickle.load(sys.stdin.buffer)
    client = client_factory.open()
    polls = watch(client, *told_span())
    client.close()
    print("done", json.dumps(asdict(polls)), flush=True)


if __name__ == "__main__":
    main()
