"""Query latency of a client that did not write the streamed table, measured outside of any window."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tidemark.errors import DiskFull, OracleError, SystemFailure, is_disk_full
from tidemark.systems.read_api import ReadClient
from tidemark.systems.tables import TableSystem

TIMES = 2  # executions of a query by one client: the first, and one once it knows the table


@dataclass(frozen=True, slots=True)
class Latencies:
    """Query latencies in seconds, in order, of count(*) and of a sum over two columns, as run.json records them."""

    count_s: tuple[float, ...]
    sum_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """Results of both queries; every repetition returned the same.

    Each of the two queries has a new client, whose first latency includes locating the table.
    """

    latencies: Latencies
    rows: int
    ids: int  # the sum of all ids


def read(table: TableSystem) -> Reading:
    """Query `table`, which must declare `Capability.ASKED`.

    Raises OracleError if one client's results differ, SystemFailure or DiskFull if a query fails.
    """
    count_s, rows = _asked("count(*)", table.open_reader(), lambda asker: asker.count())
    sum_s, ids = _asked("sum(id)", table.open_reader(), lambda asker: asker.sum_ids())
    return Reading(Latencies(count_s, sum_s), rows, ids)


def hold(reading: Reading, rows: int) -> Reading:
    """Return `reading` if it fits a table with the ids 0 .. `rows` - 1, each once; otherwise raise OracleError."""
    ids = rows * (rows - 1) // 2
    if (reading.rows, reading.ids) != (rows, ids):
        raise OracleError(
            f"a table of {rows:,} rows was asked by a client that never wrote to it: count(*) is {reading.rows:,}, and "
            f"the ids add up to {reading.ids:,} where they are to add up to {ids:,}"
        )
    return reading


def _asked(
    what: str, opened: AbstractContextManager[ReadClient], ask: Callable[[ReadClient], int]
) -> tuple[tuple[float, ...], int]:
    seconds, answers = [], []
    try:
        with opened as asker:
            for _ in range(TIMES):
                began = time.perf_counter()
                answers.append(ask(asker))
                seconds.append(time.perf_counter() - began)
    except Exception as error:
        if is_disk_full(error):
            raise DiskFull(f"reading: no room left on the device: {error}") from error
        raise SystemFailure(f"{what} failed: {type(error).__name__}: {error}") from error
    if len(set(answers)) > 1:
        raise OracleError(f"{what} was run {TIMES} times on a table without writers; the answers are {answers}")
    return tuple(seconds), answers[0]
