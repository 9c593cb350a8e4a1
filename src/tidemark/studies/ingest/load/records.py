"""Records of a writer's attempts and their outcomes, in memory that outlives it: a mapped file of 8-byte integers."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.systems.writers import CommitStatus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ACKED = "acked"  # the call returned
CONFLICT = str(CommitStatus.CONFLICT)  # refused because another commit came first; the writer tries again
GIVEN_UP = "given up"  # the same, at the last of the writer's tries
FAILED = str(CommitStatus.FAILED)
UNKNOWN = str(CommitStatus.UNKNOWN)  # may or may not be committed; what follows is set by `retry`, in the part `faults`
NEVER, CHECK, BLIND = "never", "check", "blind"  # values of `retry`
# Outcomes by their number in records; SENT marks an attempt whose writer ended inside the call.
SENT = 0
OUTCOMES = (UNKNOWN, ACKED, CONFLICT, GIVEN_UP, FAILED, UNKNOWN)
NUMBERS = {name: number for number, name in enumerate(OUTCOMES) if number != SENT}
REFUSED = (CONFLICT, GIVEN_UP)

FIELDS = ("start_ns", "elapsed_ns", "sequence", "attempt", "outcome", "commits")
WIDTH = len(FIELDS)
COLUMNS = {  # of operations.parquet: an attempt is an operation
    "start_ns": "begin of the attempt",
    "elapsed_ns": "duration of the call; 0 if its writer was killed meanwhile",
    "sequence": "number of the writer's batch, from 0",
    "attempt": "number of the attempt at this batch",
    "outcome": "acked, conflict, given up, failed or unknown",
    "commits": "commits that the client tried; -1: it does not report them",
    "response_ns": "time from the begin of the first attempt at the batch to the end of this one",
    "writer": "number of the writer, from 1",
    "rows": "rows of the batch if it was acknowledged, else 0",
    "commit": "number of the commit that holds the request; -1: not known",
    "wait_ns": "time from when the request was due to its first attempt, in windows by a schedule",
}
NOT_TOLD = -1  # in place of the number of commits tried, if the client does not report it


class Records:
    """The writer's side. The file begins with the number of records, in a slot of its size; then one per attempt."""

    def __init__(self, path: Path, most: int) -> None:
        size = 8 * WIDTH * (most + 1)
        with path.open("wb") as file:
            file.truncate(size)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), size)
        self._numbers = memoryview(self._map).cast("q")
        self._most = most

    @property
    def is_full(self) -> bool:
        return self._numbers[0] >= self._most

    def begin(self, start_ns: int, sequence: int, attempt: int) -> int:
        """Record that a commit is about to be tried; return the record's position, for `end`."""
        numbers, count = self._numbers, self._numbers[0] + 1
        place = WIDTH * count
        numbers[place], numbers[place + 2], numbers[place + 3] = start_ns, sequence, attempt
        numbers[place + 4], numbers[place + 5] = SENT, NOT_TOLD
        numbers[0] = count
        return place

    def end(self, place: int, end_ns: int, outcome: int, commits: int | None) -> None:
        numbers = self._numbers
        numbers[place + 1] = end_ns - numbers[place]
        numbers[place + 5] = NOT_TOLD if commits is None else commits
        numbers[place + 4] = outcome


def by_field(records: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Return the columns of `records`, int64[attempts, fields], by name."""
    return dict(zip(FIELDS, records.T, strict=True))
