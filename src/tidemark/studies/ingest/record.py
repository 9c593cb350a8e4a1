"""Results of a window that are specific to this study, as run.json keeps them below `found`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleRecord:
    """Counts of rows, unless named as batches; see `window.oracle.Finding`. The part `pruning` has only `words`."""

    below = "oracle"

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
    words: str


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """Commits of a window. A part that commits nothing has no `commits`."""

    commits: int | None = None  # acknowledged, uncounted ones included
    refused: int | None = None  # commits, as counted by the catalog; None if it does not count them
    referenced_files: int = 0  # data files of the table
    first_errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Acknowledged requests of a gateway's clients, uncounted ones included, and the commits that hold them."""

    requests: int | None = None
    commits: int | None = None


@dataclass(frozen=True, slots=True)
class GatewayRecord(RequestRecord):
    """The same, with the number of requests that were not accepted because the gateway had no room."""

    busy: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """The oracle's findings in words."""

    words: str


@dataclass(frozen=True, slots=True)
class PruningRecord:
    """Results of a window of queries."""

    oracle: Words
    referenced_files: int


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Requests in a closed loop before the window."""

    below = "closed"

    requests_per_s: float
    seconds: float
    cycle_ns: int  # median time between two starts of one client
    response_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Requests that were due by a schedule in the window."""

    below = "schedule"

    requests_per_s: float
    scheduled: int
    not_begun: int
    overloaded: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """One kill and the findings after it. Counts are batches unless named as rows; moments count from the opening."""

    victim: str
    title: str
    moment_s: float
    started_s: float  # from the kill until the server answers, or the new writer's client is open
    down_s: float  # from the kill until each affected writer had a commit acknowledged again
    in_flight: int  # attempts in flight at the kill
    acked: int  # acknowledged since the previous kill
    unknown: int  # of unknown outcome to their writer, since the previous kill
    done: int  # unknown batches that were present when read back at the end
    not_done: int
    lost: int  # rows that were acknowledged before the kill and are missing after it
    doubled: int  # rows that are present more than once
    partial: int  # batches of which only some rows are present
    holds: bool
    said: str = ""  # why the table could not be read


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Findings before the first kill: lost or doubled rows and partial batches, caused without any kill."""

    lost: int
    doubled: int
    partial: int
    holds: bool
    said: str = ""


@dataclass(frozen=True, slots=True)
class Losses:
    """Findings before the first kill, and after each kill in time order."""

    below = "faults"

    undisturbed: Undisturbed
    kills: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class AtRisk:
    """Durability of `commits` commits: a file is dirty if one of its pages is not on disk at the acknowledgement.

    `seconds` run from the last acknowledgement until no file of these commits was dirty; None if that was not seen.
    """

    commits: int
    data_files: int
    dirty_data_files: int
    other_files: int  # other files of the table: log, manifests, metadata
    dirty_other_files: int
    log_dirty: int | None  # commits at which the catalog's database had not flushed its WAL; None without a database
    seconds: float | None
    watched_seconds: float  # upper limit of the wait for that
    level: str  # the durability class, as observed


@dataclass(frozen=True, slots=True)
class Excused:
    """The reason why durability cannot be observed."""

    excused: str


@dataclass(frozen=True, slots=True)
class DurabilityRecord:
    durability: AtRisk | Excused


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one power cut; counts are rows unless they are named as batches."""

    acked: int  # before the cut, by writers in the window
    lost: int  # acknowledged rows that are missing after the cut
    oldest_lost_s: float | None  # seconds from the first lost acknowledgement to the cut; None without a loss
    synced: int  # rows of the table's first commits, which were on disk before the window
    synced_lost: int
    doubled: int  # rows that are present more than once
    partial: int  # batches of which only some rows are present
    unknown: int  # batches that were in flight at the cut
    done: int  # batches in flight that are present
    left_in_files: int  # lost rows in a data file that can be read separately
    said: str  # why the table cannot be read; empty if it can
    holds: bool


@dataclass(frozen=True, slots=True)
class PowerCut(Cost):
    """One power cut, with its moment in the window, and the number of copies until two were the same."""

    moment_s: float
    copies: int
    data_files: int
    unreadable_files: int
    at_acknowledgement: AtRisk | Excused  # commits before the window


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCutRecord:
    """Results of a window that ends with a power cut, after `commits` acknowledged commits."""

    commits: int | None = None
    refused: int | None = None
    cut: PowerCut
    first_errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MaintenanceCall:
    """One call of maintenance, as `load.maintenance.rounds` yields it; moments are seconds of the window."""

    moment_s: float
    seconds: float
    operation: str
    round: int
    outcome: str
    said: str
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of all rows by a client: their moments and seconds, the rows or None if it failed, and first errors."""

    moment_s: tuple[float, ...]
    seconds: tuple[float, ...]
    rows: tuple[int | None, ...]
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SizeAt:
    """Size of a table's folder and catalog at one moment, including files that no snapshot needs any more."""

    moment_s: float
    data_files: int
    data_bytes: int
    metadata_files: int
    metadata_bytes: int
    catalog_bytes: int | None


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Calls, reads and sizes in a window; `left_undone` states what the client does not perform, if it performs any."""

    below = "maintenance"

    left_undone: str | None
    calls: tuple[MaintenanceCall, ...]
    reads: Counts
    sizes: tuple[SizeAt, ...]
    looks_failed: int  # sizes that could not be determined


def in_seconds(nanoseconds: int) -> float:
    """Return a duration as records keep it, to the microsecond."""
    return round(nanoseconds / 1e9, 6)
