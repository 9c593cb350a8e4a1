"""Section `ingest` of the configuration: every key with its type, range, default and meaning."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tidemark.settings import Count, OneOrMore, Protocols, Several, Systems, about, one_of_these, shipped

DEFAULTS = shipped(__file__)

Longest = Annotated[float, Meta(gt=0, le=864_000)]
Above = Annotated[float, Meta(gt=0, le=1_000_000)]
Writers = Annotated[int, Meta(ge=1, le=64)]
Rows = Annotated[int, Meta(ge=1, le=1_000_000)]
Limit = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Names = Annotated[Several[str], about("Names of 'systems'; others have no effect.")]


class GroupSizes(Struct, frozen=True, kw_only=True):
    """Clients behind a front that gathers requests into commits: a series per system, shape and policy."""

    systems: Names = ()
    shapes: Annotated[
        Several[Annotated[str, Meta(pattern="^[1-9][0-9]{0,4}x([1-9][0-9]{0,2}|1000)$")]],
        about("Rows per request x clients, each a connection: 50x32."),
    ] = ()
    policies: Annotated[
        Several[Annotated[str, one_of_these("direct", "staged", "bundled")]],
        about(
            "direct: a commit per request. staged: a commit per buffer. bundled: one commit for the files of several "
            "buffers."
        ),
    ] = ()


class TailSizes(Struct, frozen=True, kw_only=True):
    """Requests that are due by a schedule, at a share of the closed-loop rate: a series per system, target, rate and
    kind of arrivals.
    """

    systems: Names = ()
    targets: Annotated[
        Several[Annotated[str, one_of_these("one", "staged")]],
        about("one: a writer of the table. staged: clients of a front whose buffer is a commit."),
    ] = ("one",)
    percents: Annotated[
        Several[Count],
        about("Offered rates, in percent of the requests per second of the closed loop before the window."),
    ] = (50,)
    arrivals: Annotated[
        Several[Annotated[str, one_of_these("poisson", "constant")]],
        about("poisson: random gaps, drawn from the seed. constant: equal gaps."),
    ] = ("poisson",)
    closed_seconds: Annotated[float, about("Length of the closed loop before each window.", ge=0.1, le=86_400)] = 5
    window_seconds: Annotated[
        Longest | None, about("Seconds for which requests are due; null: the protocol's window_seconds.")
    ] = None


class PacedSizes(Struct, frozen=True, kw_only=True):
    """Writers of one table that each commit once in every interval: a series per system, number and interval."""

    systems: Names = ()
    writers: Annotated[Several[Writers], about("Writers of the table.")] = ()
    every_seconds: Annotated[
        Several[Count], about("Length of the interval: a writer commits once in each, at a random moment.")
    ] = ()
    commits: Annotated[Count, about("Commits of each writer that are due in a window.")] = 10


class MaintenanceSizes(Struct, frozen=True, kw_only=True):
    """Writers of one table with a client that keeps it small, and without it: two series per system."""

    systems: Annotated[
        Names,
        about("Names of 'systems'; others have no effect. ducklake-inlined-postgres is measured if ducklake is."),
    ] = ()
    window_seconds: Annotated[Longest, about("Seconds that writers begin commits for.")] = 10


class AgesSizes(Struct, frozen=True, kw_only=True):
    """One table of each system, which is made older by commits of one row and measured at each age: how long it takes
    to commit, to plan a query and to read all rows, and what the table's metadata takes up.
    """

    systems: Names = ()
    ages: Annotated[
        OneOrMore[Annotated[int, Meta(ge=1, le=100_000)]],
        about("Numbers of commits, in ascending order and 10 or more apart, as 10 commits are timed at each."),
    ] = (1, 100, 1000)
    window_seconds: Annotated[
        Longest,
        about(
            "Time limit of each system, with making the table older. An age that is not reached within it is reported "
            "as such. 10,000 commits can take gigabytes of disk."
        ),
    ] = 300


class CutSizes(Struct, frozen=True, kw_only=True):
    """Two writers of one table, until a power cut of the disk that holds table and servers: each system with its
    default durability, and with durability full. Needs root and a loop device.
    """

    systems: Names = ()
    cuts: Annotated[Count, about("Number of power cuts, each with a new table on new servers.")] = 1
    window_seconds: Annotated[
        float, about("Length of the window in seconds; the power is cut in its second half.", gt=0, le=3600)
    ] = 10


class AmbiguitySizes(Struct, frozen=True, kw_only=True):
    """Commits of one writer whose answer is lost on the way, or that are lost themselves: a series per system."""

    systems: Annotated[
        Names,
        about("Names of 'systems'; others have no effect. ducklake-inlined-postgres is measured if ducklake is."),
    ] = ()
    hits: Annotated[Count, about("Commits that are hit, in each way and with each policy of the writer.")] = 2
    faults: Annotated[
        OneOrMore[Annotated[str, one_of_these("after", "before", "twice", "status", "late")]],
        about(
            "after: the server commits, and its answer is lost. before: the request is lost. twice: the request is "
            "delivered two times, and the second answer is given. status: the server commits, and 503 is given in "
            "place of its answer. late: the server commits, and its answer comes after the client's own time limit. "
            "The last three are of HTTP alone, and late of clients that have such a limit."
        ),
    ] = ("after", "before", "twice", "status", "late")
    retries: Annotated[
        OneOrMore[Annotated[str, one_of_these("never", "blind", "check")]],
        about(
            "Policies of the writer for a write that ended in an error. never: leave it. blind: send it again. check: "
            "look for its token as ingest.retry describes, and send it again if the token is missing."
        ),
    ] = ("never", "blind", "check")
    restarts: Annotated[
        Annotated[int, Meta(ge=0, le=1000)],
        about(
            "Restarts of the server that commits, a catalog's or PostgreSQL, with each policy: it is killed (SIGKILL) "
            "once it has committed, before its answer is passed on, and started again at once."
        ),
    ] = 0
    cuts: Annotated[
        Annotated[int, Meta(ge=0, le=10_000)],
        about("Cuts of all connections to the server at random moments of a write: how often one loses an answer."),
    ] = 0
    catalogs: Annotated[
        Several[Annotated[str, one_of_these("nessie")]],
        about(
            "Other catalogs that Iceberg's clients commit through as well, a series each. nessie: over PostgreSQL, "
            "with files in an S3 server; its program is 245 MB."
        ),
    ] = ()


class Protocol(Struct, frozen=True, kw_only=True):
    """Named set of sizes of all parts."""

    writers: Annotated[Several[Writers], about("Writers of one table, a series each.")]
    own: Annotated[
        Several[Annotated[int, Meta(ge=2, le=64)]],
        about(
            "Writers with a table each, in the same catalog server: separates contention for a table from a busy "
            "machine."
        ),
    ] = ()
    rtts: Annotated[
        Several[Annotated[int, Meta(ge=0, le=1000)]],
        about(
            "Milliseconds of a round trip to an S3 server that holds the table's files: a series each, of one writer, "
            "of systems with default options that support S3."
        ),
    ] = ()
    pruned: Annotated[
        Several[Annotated[int, Meta(ge=10, le=10_000)]],
        about(
            "Files of a table that is queried with filters: a series each, of systems with default options that "
            "report which files they read."
        ),
    ] = ()
    added: Annotated[
        Several[Annotated[int, Meta(ge=1, le=100)]],
        about(
            "Columns that are added to a table with rows, one after the other: a series each, of systems with default "
            "options."
        ),
    ] = ()
    runs: Annotated[
        Count,
        about(
            "Runs of a series on one server, each with new tables and writers: the first is cold, the others are hot."
        ),
    ]
    repeats: Annotated[Count, about("How often each series is measured, each time with new servers.")] = 1
    paced: PacedSizes = PacedSizes()
    group: GroupSizes = GroupSizes()
    tail: TailSizes = TailSizes()
    maintenance: MaintenanceSizes = MaintenanceSizes()
    ambiguity: AmbiguitySizes = AmbiguitySizes()
    ages: AgesSizes = AgesSizes()
    window_seconds: Annotated[Longest, about("Seconds that writers begin commits for.")]
    kills: Annotated[
        Annotated[int, Meta(ge=0, le=1000)],
        about(
            "Kills (SIGKILL) of a writer, and of each server that is started here, in a separate series with two "
            "writers of one table; and of the front's process (staged, 50x32), in another series of each of group's "
            "systems. 0 leaves both out."
        ),
    ] = 0
    cut: CutSizes = CutSizes()
    watch_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=600)],
        about(
            "In the series with kills: maximum wait until the kernel has written the files of a commit to the disk by "
            "itself."
        ),
    ] = 0


class Tail(Struct, frozen=True, kw_only=True):
    """Requests by a schedule: the part 'tail' of a protocol. A front has the settings of 'group'."""

    clients: Annotated[Count, about("Connections of a front (staged); a free one takes the oldest due request.")] = 32
    longest_wait_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=50)],
        about(
            "A request that is due for longer ends the window: the rate is overloaded, and the window's times are "
            "lower bounds."
        ),
    ] = 10


class Maintenance(Struct, frozen=True, kw_only=True):
    """Settings of the part 'maintenance' of a protocol."""

    writers: Annotated[Writers, about("Writers of the table.")] = 3
    rows: Annotated[Rows, about("Rows of a batch, which is one commit.")] = 5
    every_seconds: Annotated[
        Above,
        about("Seconds from the beginning of one round of maintenance to the next; a longer round delays the next."),
    ] = 2
    look_seconds: Annotated[Above, about("Seconds between two samples of the table's files and bytes.")] = 2


class Group(Struct, frozen=True, kw_only=True):
    """The front of the part 'group' of a protocol. The defaults are kyma's."""

    writers: Annotated[
        Writers,
        about(
            "Clients of the table that commit concurrently if each request is a commit (direct); with fewer clients, "
            "one for each."
        ),
    ] = 8
    flushers: Annotated[
        Writers,
        about(
            "Clients that make files concurrently if several files are one commit (bundled); one more client commits. "
            "staged has one."
        ),
    ] = 4
    tries: Annotated[Count, about("How often the front tries a commit that others overtake.")] = 20
    max_rows: Annotated[Limit, about("Rows in the buffer that make it due.")] = 8000
    max_bytes: Annotated[Limit, about("Bytes in the buffer that make it due.")] = 16_777_216
    max_age_ms: Annotated[Above, about("Age of the oldest request that makes the buffer due.")] = 50
    window_ms: Annotated[
        float,
        about(
            "Milliseconds after the first file in which further files join its commit (bundled).", ge=0, le=86_400_000
        ),
    ] = 5
    max_files: Annotated[Limit, about("Maximum number of files of one commit (bundled).")] = 128


class IngestConfig(Struct, frozen=True, kw_only=True):
    """Many writers on one table: commits per second, conflicts, retries, losses."""

    protocols: Protocols[Protocol] = DEFAULTS["protocols"]
    systems: Systems = DEFAULTS["systems"]
    catalog: Annotated[
        str,
        one_of_these("reference", "polaris"),
        about("The catalog server of the Iceberg systems. polaris needs services.polaris_path or polaris_address."),
    ] = "reference"
    rows: Annotated[Rows, about("Rows of a batch, which is one commit. kyma's shapes had 500, 100 and 50.")] = 500
    tries: Annotated[
        Count,
        about(
            "How often the writer itself tries a batch if its client reports that another commit came first. The "
            "client's own retries are an option of the system: commit_retries."
        ),
    ] = 50
    retry: Annotated[
        str,
        one_of_these("never", "check", "blind"),
        about(
            "Retry of a batch with unknown outcome, in the series with kills. never: do not send it again. check: "
            "look for the token of its commit (an app transaction of Delta, a snapshot's property of Iceberg, a "
            "commit message of DuckLake; where DuckDB writes Iceberg or Delta, for its first id), and send it again "
            "if the token is missing. blind: send it again."
        ),
    ] = "never"
    uncounted: Annotated[int, about("Batches that each writer commits before a hot window.", ge=0, le=10_000)] = 3
    tail: Tail = Tail()
    maintenance: Maintenance = Maintenance()
    group: Group = Group()


CONFIG = IngestConfig
