"""Results of a window as its run records them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tidemark.measure.table_calls import Latencies
from tidemark.runs.proofs import Oracle
from tidemark.runs.serde import Pairs


class End(StrEnum):
    """Reason why a climb had no further step."""

    LAG = "the table fell behind"
    PRODUCER = "the producer could not send faster"
    STEPS = "there were no more steps"


@dataclass(frozen=True, slots=True)
class RampStep:
    """One rate and its cost, from its begin to its end; not all of its events became visible in that time."""

    rate: int  # events per second
    begin_s: float  # begin of the step, after the first event was due
    seconds: float  # length of the step
    events: int  # number of events that were due
    latest_s: float  # largest delay of an event behind its due time
    lag_s: float  # age of the oldest unseen event at the end
    cpu_s: float  # processor time of the movers
    files: int  # data and metadata files that the table gained


@dataclass(frozen=True, slots=True)
class RampRecord:
    """Climb of the rate."""

    end: str  # why the climb had no further step
    steps: tuple[RampStep, ...]  # steps of the climb, in order of time


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill, and the seconds until the mover was started again."""

    moment_s: float  # moment of the kill, after the first event was due
    again_s: float  # time until the mover was started again


@dataclass(frozen=True, slots=True)
class Reads:
    """Readings `before` and `after` maintenance, the seconds of its operations (`maintained`), or why there is none."""

    before: Latencies | None  # latencies before maintenance; null if the table was not read
    files: int  # data and metadata files before maintenance; `files_after`: after it
    why_not: str = ""  # why there are none before maintenance
    maintained: Any = ()  # duration of each operation of maintenance (s)
    after: Latencies | None = None  # latencies after maintenance
    files_after: int = 0  # data and metadata files after maintenance
    why_not_after: str = ""  # why there are none after maintenance


@dataclass(frozen=True, slots=True)
class UpkeepCall:
    """Call of an operation of the upkeep: of the consumer between two commits, or of a process beside it."""

    moment_s: float  # moment of the call, after the first event was due
    seconds: float  # duration of the call
    operation: str  # name of the operation
    commit: int  # number of the commit before it, from 1; commits before the window count
    outcome: str  # done, or the status of the operation that failed
    said: str  # error of the operation; empty if it was done
    cpu_s: float  # processor time of the calling process during the call
    written_bytes: int  # bytes that the calling process sent to a disk during the call
    peak_bytes: int  # most memory of the calling process during the call


@dataclass(frozen=True, slots=True)
class UpkeepRecord:
    """Upkeep of a table in one window, and what it and the commits cost."""

    calls: tuple[UpkeepCall, ...]  # calls of the upkeep, in order of time
    commits: int  # number of commits that began in the window
    refused: int  # number of tries of a commit that were refused because another one came first
    longest_busy_s: float  # longest time in which the consumer reads no events: a commit and its own upkeep after it
    peak_bytes: int  # most memory of the consumer, shared memory included
    written_bytes: Pairs[int]  # bytes sent to a disk, by process group, without broker, producer and Tidemark itself
    acknowledged: int = 0  # rows of acknowledged commits, those before the window included; 0 in earlier versions


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessRecord:
    """Results of one window.

    Earlier versions recorded no `unseen`, no `ramp`, no `reads`, no `upkeep` and no `look_cpu_s`.
    """

    encoding: str  # encoding of events in the topic
    commits: int  # number of commits in the table's history
    cpu_s: Pairs[float]  # by process group, without broker, producer and Tidemark itself; the reader's looks are in it
    unseen: tuple[str, ...] = ()  # the user's own servers, whose processor time is not visible here
    kills: tuple[Kill, ...]  # kills of the mover
    ramp: RampRecord | None = None  # climb of the rate; null if the rate is fixed
    gave_up: bool  # the drain timed out
    looks: int  # number of the reader's looks
    failed_looks: int  # number of looks that failed
    look_cpu_s: float = 0.0  # processor time of the servers for one look; 0 in earlier versions
    producer_cpu_s: float  # processor time of the producer
    latest_s: float  # largest delay of an event behind its due time
    reads: Reads | None = None  # queries before and after maintenance; null if there were none
    upkeep: UpkeepRecord | None = None  # upkeep of the table; null if its series has no policy of upkeep
    exactly_once: str  # how the mover keeps events from being lost or doubled


def is_unfinished(oracle: Oracle, gave_up: bool, acknowledged: int = 0) -> bool:
    """Return True if events are only missing because the drain timed out: late is not lost.

    Of `acknowledged` rows, those that are missing are lost.
    """
    only_late = not oracle.duplicated and not oracle.unexpected and oracle.found >= acknowledged
    return gave_up and oracle.missing > 0 and only_late
