"""Calls on a table outside of any window, of which only the client's own is timed.

After a window: flush and merge, whose effects are determined apart from the call. On a table without writers: queries
by a client that did not write to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tidemark.errors import DiskFull, OracleError, SystemFailure, TidemarkError, is_disk_full
from tidemark.runs.manifest import Flush, Merge
from tidemark.systems.base import Capability
from tidemark.systems.tables import ReadClient, TableSystem

TIMES = 2  # executions of a query by one client: the first, and one once it knows the table


def flush(system: TableSystem) -> Flush | None:
    """Move inlined rows to Parquet; return None if the system inlines nothing."""
    if Capability.FLUSH not in system.capabilities:
        return None
    # Counted here rather than by the client: DuckLake 0.3 reports nothing, and may count rows twice.
    rows, before = system.inlined_rows(), set(system.data_files())
    seconds = timed("flush", system.flush)
    files, size = system.weigh(set(system.data_files()) - before)
    return Flush(seconds, rows - system.inlined_rows(), files, size)


def merge(system: TableSystem) -> Merge | None:
    """Replace small files by larger ones; return None if the system has no such operation."""
    if Capability.MERGE not in system.capabilities:
        return None
    before = system.weigh(system.data_files())
    seconds = timed("merge", system.merge)
    after = system.weigh(system.data_files())
    return Merge(seconds, before[0], after[0], before[1], after[1])


def timed(what: str, call: Callable[[], object]) -> float:
    """Return the seconds that `call` takes; raise SystemFailure or DiskFull, naming `what`, if it fails."""
    began = time.perf_counter()
    try:
        call()
    except Exception as error:
        raise _of_system(what, error) from error
    return time.perf_counter() - began


def _of_system(what: str, error: Exception) -> TidemarkError:
    if is_disk_full(error):
        return DiskFull(f"{what}: no room left on the device: {error}")
    return SystemFailure(f"{what} failed: {type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Query latencies in seconds, in order, of count(*) and of a sum over two columns, as run.json records them."""

    count_s: tuple[float, ...]  # latency of each count(*), in order
    sum_s: tuple[float, ...]  # latency of each sum over two columns, in order


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
        raise _of_system(what, error) from error
    if len(set(answers)) > 1:
        raise OracleError(f"{what} was run {TIMES} times on a table without writers; the answers are {answers}")
    return tuple(seconds), answers[0]
