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

    rate: int
    begin_s: float  # after the first event was due
    seconds: float
    events: int
    latest_s: float  # largest delay of an event behind its due time
    lag_s: float  # at its end: the age of the oldest unseen event
    cpu_s: float
    files: int  # data and metadata files that the table gained


@dataclass(frozen=True, slots=True)
class RampRecord:
    """Climb of the rate; `end` is an `End`."""

    end: str
    steps: tuple[RampStep, ...]


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill, and the seconds until the mover was started again."""

    moment_s: float
    again_s: float


@dataclass(frozen=True, slots=True)
class Reads:
    """Readings `before` and `after` maintenance, the seconds of its operations (`maintained`), or why there is none."""

    before: Latencies | None
    files: int  # data and metadata files before maintenance; `files_after`: after it
    why_not: str = ""
    maintained: Any = ()  # pairs of an operation's name and its seconds
    after: Latencies | None = None
    files_after: int = 0
    why_not_after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessRecord:
    """Results of one window. Earlier versions recorded no `unseen`, no `ramp` and no `reads`."""

    encoding: str
    commits: int
    cpu_s: Pairs[float]  # by process group, without broker, producer and Tidemark itself
    unseen: tuple[str, ...] = ()  # the user's own servers, whose processor time is not visible here
    kills: tuple[Kill, ...]
    ramp: RampRecord | None = None
    gave_up: bool  # the drain timed out
    looks: int
    failed_looks: int
    producer_cpu_s: float
    latest_s: float  # largest delay of an event behind its due time
    reads: Reads | None = None
    exactly_once: str


def is_unfinished(oracle: Oracle, gave_up: bool) -> bool:
    """Return True if events are only missing because the drain timed out: late is not lost."""
    return gave_up and oracle.missing > 0 and not oracle.duplicated and not oracle.unexpected
