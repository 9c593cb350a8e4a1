"""Results of a window that are specific to this study, as run.json keeps them below `found`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OracleRecord:
    """Counts of rows, unless named as batches; see `window.oracle.Finding`. The part `pruning` has only `words`."""

    words: str
    expected: int = 0
    found: int = 0
    lost: int = 0
    doubled: int = 0
    risen: int = 0
    phantom: int = 0
    partial: int = 0
    done: int = 0
    not_done: int = 0
    unread: str | None = None


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """Commits of a window. A part that commits nothing has no `commits`; only a gateway has `requests`."""

    commits: int | None = None  # acknowledged, uncounted ones included
    requests: int | None = None  # the same of a gateway's clients
    refused: int | None = None  # commits, as counted by the catalog; None if it does not count them
    referenced_files: int = 0  # data files of the table
    first_errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """The oracle's findings in the table after the window."""

    oracle: OracleRecord


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Requests in a closed loop before the window."""

    requests_per_s: float
    seconds: float
    cycle_ns: int  # median time between two starts of one client
    response_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Requests that were due by a schedule in the window."""

    requests_per_s: float
    scheduled: int
    not_begun: int
    overloaded: bool


@dataclass(frozen=True, slots=True)
class ClosedLoopRecord:
    closed: ClosedLoop


@dataclass(frozen=True, slots=True)
class ScheduleRecord:
    schedule: Schedule
