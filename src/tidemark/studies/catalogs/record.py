"""Settings of a series, results of a window as its run records them, and the possible outcomes of a request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from tidemark.runs.serde import Pairs
from tidemark.runs.spec import HasSettings, WorkloadSettings

ACKED, CONFLICT, FAILED, UNKNOWN, CASCADED = "acked", "conflict", "failed", "unknown", "cascaded"
WRONG = ("lost", "lost_updates", "undead", "phantom", "doubled", "wrong", "torn")  # counters of an oracle
CREATE, CRASH = "create", "crash"
ALONE = 1  # users of a sequential series
COUNTED_DEPTH, COUNTED_REQUESTS = 3, 16  # tree depth, and requests about one table, while statements are counted
USERS = "users-"


@dataclass(frozen=True, slots=True)
class CatalogSettings(WorkloadSettings):
    """Settings that decide what a series requests from its catalog, in addition to the system and its options."""

    users: int
    depth: int
    parts: str  # names separated by commas, in order
    mixed_requests: int
    open_seconds: float
    rate: float  # arrivals per second in open loops
    hot_updates: int
    appends: int
    races: int
    churns: int
    kills: int  # of each server and database; 0 in most series
    timeout_seconds: float
    label_pattern: ClassVar[re.Pattern[str]] = re.compile(f"{USERS}(?P<users>[0-9]+)")


def users_of(series: HasSettings) -> int:
    """Return the number of users of a planned or measured series."""
    return CatalogSettings.of(series).users


def longest_path(depth: int) -> int:
    """Return the length of the longest path in a tree of `depth` levels, with dots between names and a run's mark."""
    last = [2**level - 1 for level in range(1, depth)]  # the rightmost node of each level has the longest number
    return len("NS_0_warm_up.Ramp") + sum(len(f".NS_{2 * node}") for node in last)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a window: `elapsed_ns` is the time of its phases, `counted` what backends counted during them."""

    name: str  # name of the step
    part: str  # part of the workload
    users: int  # number of concurrent users
    requests: int  # number of requests
    elapsed_ns: int  # time of its phases
    cpu_s: Pairs[float]  # processor time by process group
    counted: Pairs[int]  # counters of the backend during the phases


@dataclass(slots=True)
class Differences:
    """Counted differences between the acknowledged and the existing contents; `named` describes the first of them."""

    lost: int = 0  # acknowledged, but missing
    lost_updates: int = 0  # acknowledged updates that are missing: properties and snapshots
    undead: int = 0  # dropped or renamed, but present under that name
    phantom: int = 0  # present, but neither acknowledged nor unknown
    doubled: int = 0  # listed twice, acknowledged twice, or present under two names
    wrong: int = 0  # properties or columns differ from those at creation
    torn: int = 0  # listed, but cannot be fetched
    resolved_done: int = 0  # unknown outcomes that were done
    resolved_not: int = 0  # unknown outcomes that were not done
    named: tuple[str, ...] = ()  # first differences, in words

    @property
    def holds(self) -> bool:
        return not any(getattr(self, name) for name in WRONG)

    @property
    def losses(self) -> int:
        """Number of entities and updates that are lost or cannot be fetched."""
        return self.lost + self.lost_updates + self.torn


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill and the findings after it. Requests are those since the previous kill; `lost` is of all until then."""

    killed: str  # the name of the server
    title: str  # name of the server in results
    moment_s: float  # after the users began
    in_flight: int  # requests at that moment
    acknowledged: int  # requests that were answered as done
    unknown: int  # requests whose outcome is not known from their answer
    errors: int  # unknown requests that the server answered with an error before the kill
    done: int  # unknown requests that were done, as read back
    not_done: int  # unknown requests that were not done
    lost: int  # acknowledged entities and updates; the updates of a lost entity are not counted in addition
    holds: bool  # the server is back, and nothing is lost, doubled, wrong or phantom
    named: tuple[str, ...]  # the first differences
    answered_s: float | None  # from its restart until a table was read; None if that never succeeded
    again: int = 0  # writes that all users requested concurrently after that
    again_acked: int = 0  # those of them that were acknowledged
    said: str = ""  # why it never answered


@dataclass(frozen=True, slots=True)
class CrashRecord:
    """Kills after the last window of a series; without any, `excused` is the reason, if one is known."""

    kills: tuple[Kill, ...] = ()  # each kill, in order of time
    window: Differences | None = None  # in the run's own entities after all kills; None if they could not be read
    excused: str | None = None  # why there are none


@dataclass(frozen=True, slots=True)
class CountedStep:
    """SQL statements of one step, counted after the last window."""

    name: str  # name of the step
    requests: int  # number of requests
    statements: int  # number of SQL statements
    succeeded: int  # requests that were answered as done


@dataclass(frozen=True, slots=True)
class StatementsRecord:
    """Counted steps; without any, `excused` is the reason, if one is known."""

    steps: tuple[CountedStep, ...] = ()  # counted steps
    excused: str | None = None  # why there are none


@dataclass(frozen=True, slots=True)
class CatalogRecord:
    """Results of one window, and of the checks after it."""

    steps: tuple[Step, ...]  # steps of the window, in order of time
    oracle: Differences  # differences from what was acknowledged; none where this is not checked
    in_flight: int  # largest number of concurrent requests
    first_answers: tuple[str, ...] = ()  # first answers that were errors, in words
    tree: Pairs[int] = ()  # number of namespaces, tables and views that were requested
    crash: CrashRecord = CrashRecord()  # kills after the last window
    statements: StatementsRecord = StatementsRecord()  # SQL statements, counted after the last window
