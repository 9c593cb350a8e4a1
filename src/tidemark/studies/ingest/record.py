"""Results of a window that are specific to this study, as run.json keeps them below `found`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RowCounts:
    """Counts of rows, unless named as batches. A row of unknown outcome may be present once or not at all."""

    expected: int = 0  # acknowledged rows
    found: int = 0  # rows in the table
    lost: int = 0  # acknowledged rows that are missing
    doubled: int = 0  # ids that are present more than once
    risen: int = 0  # ids that were refused, but are present
    phantom: int = 0  # ids that no writer wrote
    partial: int = 0  # batches of which only some rows are present
    done: int = 0  # batches of unknown outcome that are present
    not_done: int = 0  # batches of unknown outcome that are missing
    unread: str | None = None  # why the table could not be read


@dataclass(slots=True, kw_only=True)
class OracleRecord(RowCounts):
    """The oracle's findings. Counts are of rows, unless named as batches."""

    below = "oracle"

    words: str  # what is wrong, or exact


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """Commits of a window. A part that commits nothing has no `commits`."""

    commits: int | None = None  # acknowledged commits, uncounted ones included; null in parts that commit nothing
    refused: int | None = None  # commits, as counted by the catalog; None if it does not count them
    referenced_files: int = 0  # data files of the table
    first_errors: tuple[str, ...] = ()  # first errors of the writers


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Acknowledged requests of a gateway's clients, uncounted ones included, and the commits that hold them."""

    requests: int | None = None  # acknowledged requests
    commits: int | None = None  # commits that hold them


@dataclass(frozen=True, slots=True)
class GatewayRecord(RequestRecord):
    """Requests of a gateway's clients, the commits that hold them, and requests that the gateway had no room for."""

    busy: int = 0  # requests that were refused because the gateway had no room


@dataclass(frozen=True, slots=True)
class Words:
    """The oracle's findings in words."""

    words: str  # what is wrong, or exact


@dataclass(frozen=True, slots=True)
class PruningRecord:
    """Results of a window of queries."""

    oracle: Words  # comparison of the answers with the expected ones
    referenced_files: int  # data files of the table
    plan_apart: bool = False  # True if a query's time has no second query in it, which tells the files


@dataclass(frozen=True, slots=True)
class EvolutionRecord:
    """Results of a window of added columns."""

    oracle: Words  # values of the added columns, compared with the expected ones
    referenced_files: int  # data files of the table at the end
    rewritten_files: int  # data files that were gone after a change, of all changes
    earlier_writer: str  # how a writer that knows no added column fared after the changes: accepted, or its error


@dataclass(frozen=True, slots=True)
class SizeAtAge:
    """A table at one age, before it was measured. Files and bytes include those that only earlier versions need."""

    age: int  # commits that it had
    made_s: float  # time in which the commits since the age before were made, outside of the window
    data_files: int  # data files
    metadata_files: int  # logs, manifests and snapshots
    metadata_bytes: int  # size of the metadata files
    catalog_bytes: int | None  # growth of the catalog's database; null: not known


@dataclass(frozen=True, slots=True)
class AgesRecord:
    """Results of a window of a table that is made older."""

    oracle: Words  # ids and number of commits at the end, and ids at each read, compared with those that were made
    at_once: int  # commits made at once by the format's own files; 1: its client made all of them
    at_ages: tuple[SizeAtAge, ...]  # the table at each age that was reached
    ended: str  # why older ages were not reached; empty if all were


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Requests in a closed loop before the window."""

    below = "closed"

    requests_per_s: float  # acknowledged requests per second
    seconds: float  # length of the closed loop
    cycle_ns: int  # median time between two starts of one client
    response_ns: tuple[int, ...]  # response time of each request


@dataclass(frozen=True, slots=True)
class Schedule:
    """Requests that were due by a schedule in the window."""

    below = "schedule"

    requests_per_s: float  # requests per second of the schedule
    scheduled: int  # number of requests that were due
    not_begun: int  # number of these that had not begun at the end
    overloaded: bool  # true if the clients did not keep up with the schedule


@dataclass(frozen=True, slots=True)
class Loss:
    """One kill and the findings after it. Counts are batches unless named as rows; moments count from the opening."""

    victim: str  # name of what was killed
    title: str  # its name in results
    moment_s: float  # moment of the kill
    started_s: float  # from the kill until the server answers, or the new writer's client is open
    down_s: float  # from the kill until each affected writer had a commit acknowledged again
    in_flight: int  # attempts in flight at the kill
    acked: int  # acknowledged since the previous kill
    unknown: int  # of unknown outcome to their writer, since the previous kill
    done: int  # unknown batches that were present when read back at the end
    not_done: int  # unknown batches that were not present
    lost: int  # rows that were acknowledged before the kill and are missing after it
    doubled: int  # rows that are present more than once
    partial: int  # batches of which only some rows are present
    holds: bool  # true if nothing is lost, doubled or partial
    said: str = ""  # why the table could not be read


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Findings before the first kill: lost or doubled rows and partial batches, caused without any kill."""

    lost: int  # acknowledged rows that are missing
    doubled: int  # rows that are present more than once
    partial: int  # batches of which only some rows are present
    holds: bool  # true if nothing is lost, doubled or partial
    said: str = ""  # why the table could not be read


@dataclass(frozen=True, slots=True)
class Losses:
    """Findings before the first kill, and after each kill in time order."""

    below = "faults"

    undisturbed: Undisturbed  # state before the first kill
    kills: tuple[Loss, ...]  # each kill, in order of time


@dataclass(frozen=True, slots=True)
class AtRisk:
    """Durability of `commits` commits: a file is dirty if one of its pages is not on disk at the acknowledgement.

    `seconds` run from the last acknowledgement until no file of these commits was dirty; None if that was not seen.
    """

    commits: int  # number of observed commits
    data_files: int  # number of their data files
    dirty_data_files: int  # data files with a page that was not on the disk
    other_files: int  # other files of the table: log, manifests, metadata
    dirty_other_files: int  # other files with a page that was not on the disk
    log_dirty: int | None  # commits at which the catalog's database had not flushed its WAL; None without a database
    seconds: float | None  # time from the last acknowledgement until no file was dirty; null: not observed
    watched_seconds: float  # longest wait for that
    level: str  # durability class, as observed


@dataclass(frozen=True, slots=True)
class Excused:
    """The reason why durability cannot be observed."""

    excused: str  # why durability is not observed


@dataclass(frozen=True, slots=True)
class DurabilityRecord:
    """Addition of windows that observe which files are on the disk."""

    durability: AtRisk | Excused  # files that were not on the disk when a commit was acknowledged


FLUSHED = (  # mark of a run
    "its whole disk was flushed shortly before the cut, by any process of the machine: its losses are a lower bound"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one power cut; counts are rows unless they are named as batches."""

    acked: int  # rows acknowledged before the cut, by writers in the window
    lost: int  # acknowledged rows that are missing after the cut
    oldest_lost_s: float | None  # seconds from the first lost acknowledgement to the cut; None without a loss
    synced: int  # rows of the table's first commits, which were on disk before the window
    synced_lost: int  # those of them that are missing
    doubled: int  # rows that are present more than once
    partial: int  # batches of which only some rows are present
    unknown: int  # batches that were in flight at the cut
    done: int  # batches in flight that are present
    left_in_files: int  # lost rows in a data file that can be read separately
    said: str  # why the table cannot be read; empty if it can
    holds: bool  # true if no acknowledged row is lost, and none doubled or partial


@dataclass(frozen=True, slots=True)
class PowerCut(Cost):
    """One power cut, with its moment in the window, and the number of copies until two were the same."""

    moment_s: float  # moment of the cut
    copies: int  # copies of the disk until two were the same
    data_files: int  # data files on the disk
    unreadable_files: int  # data files that cannot be read
    at_acknowledgement: AtRisk | Excused  # commits before the window


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCutRecord:
    """Results of a window that ends with a power cut, after `commits` acknowledged commits."""

    commits: int | None = None  # commits acknowledged before the cut
    refused: int | None = None  # commits refused, as counted by the catalog; null if it does not count them
    cut: PowerCut  # the power cut
    first_errors: tuple[str, ...] = ()  # first errors of the writers


@dataclass(frozen=True, slots=True)
class MaintenanceCall:
    """One call of maintenance; moments are seconds of the window."""

    moment_s: float  # begin of the call
    seconds: float  # duration of the call
    operation: str  # name of the operation
    round: int  # number of the round of maintenance
    outcome: str  # done, or the status of the failed commit
    said: str  # error of the client
    peak_bytes: int  # peak memory of its process


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of all rows by a client: their moments and seconds, the rows or None if it failed, and first errors."""

    moment_s: tuple[float, ...]  # moment of each count
    seconds: tuple[float, ...]  # duration of each count
    rows: tuple[int | None, ...]  # result of each count; null if it failed
    said: tuple[str, ...]  # first errors


@dataclass(frozen=True, slots=True)
class SizeAt:
    """Size of a table's folder and catalog at one moment, including files that no snapshot needs any more."""

    moment_s: float  # moment in the window
    data_files: int  # data files in the folder
    data_bytes: int  # size of the data files
    metadata_files: int  # metadata files in the folder
    metadata_bytes: int  # size of the metadata files
    catalog_bytes: int | None  # size of the catalog's database; null if it is not known


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Calls, reads and sizes in a window; `left_undone` states what the client does not perform, if it performs any."""

    below = "maintenance"

    left_undone: str | None  # what the client does not perform; null if it performs nothing
    calls: tuple[MaintenanceCall, ...]  # calls of maintenance, in order of time
    reads: Counts  # counts of all rows during the window
    sizes: tuple[SizeAt, ...]  # size of the table during the window
    looks_failed: int  # sizes that could not be determined


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Rows whose commit was hit in one way, by one policy of the writer. An error is what the writer ended with."""

    fault: str  # after, before, twice, status, late or restart; cut: at a random moment
    retry: str  # never, blind or check
    hits: int  # commits that were hit, each of one row; those that the server refused are left out
    tables: int  # tables that they were made to: a table that was harmed is replaced
    acked_once: int = 0  # rows that were acknowledged and are there once
    acked_twice: int = 0  # rows that were acknowledged and are there more than once
    acked_absent: int = 0  # rows that were acknowledged and are not there
    error_once: int = 0  # rows that ended in an error and are there once
    error_twice: int = 0  # rows that ended in an error and are there more than once
    error_absent: int = 0  # rows that ended in an error and are not there
    unreadable: int = 0  # hits after which the table cannot be read; its rows are those of files that can
    stuck: int = 0  # hits after which the client cannot write the next row
    earlier: int = 0  # rows acknowledged before the hits, summed over these
    earlier_lost: int = 0  # those of them that are not there after it
    harmed: int = 0  # hits with any of these: twice, acknowledged and not there, unreadable, stuck, earlier rows lost
    said: str = ""  # first error of the writer
    unread: str = ""  # first reason for which a table cannot be read
    lost: int = 0  # cuts at a random moment after which the server had committed and its answer was lost
    lost_harmed: int = 0  # those of them that did harm


LOCAL_DISK = "a file on this machine"  # in place of a server


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Commits that were hit on their way to a server or back, and what is there afterwards."""

    below = "ambiguity"

    server: str  # title of the server that commits; "a file on this machine" if there is none
    cells: tuple[Outcomes, ...]  # in the order in which they were measured
    time_limit: str = ""  # the client's setting for its longest wait for an answer; empty if it has none, or no server


# What the windows of each part record: most of them a check and commits, and some more.
RECORDS = (
    OracleRecord,
    CommitRecord,
    GatewayRecord,
    ClosedLoop,
    Schedule,
    Losses,
    DurabilityRecord,
    PowerCutRecord,
    Maintenance,
    PruningRecord,
    EvolutionRecord,
    AgesRecord,
    Ambiguity,
)


def in_seconds(nanoseconds: int) -> float:
    """Return a duration as records keep it, to the microsecond."""
    return round(nanoseconds / 1e9, 6)
