"""Section `freshness` of the configuration: every key with its type, range, default and meaning."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from tidemark.settings import DAY, Protocols, Seconds, Several, Systems, Text, about, one_of_these, shipped

DEFAULTS = shipped(__file__)

Rate = Annotated[int, Meta(ge=1, le=100_000)]
WHEN, KINDS = "event|[1-9][0-9]*(ms|s|rows)", "merge|expire|flush|checkpoint"
PolicyName = Annotated[str, Meta(pattern=f"^({WHEN})$")]
UpkeepPolicy = Annotated[str, Meta(pattern=f"^({WHEN}) (none|(all|({KINDS})( ({KINDS}))*) [1-9][0-9]*( beside)?)$")]


class Ramp(Struct, frozen=True, kw_only=True):
    """A separate series under 'policy', whose rate is doubled step by step until the lag grows; left out: none."""

    rate: Annotated[Rate, about("Events per second of the first step.")]
    steps: Annotated[int, about("Maximum number of steps.", ge=1, le=16)]
    without: (
        Annotated[
            Several[Text],
            about("Names of systems without such a series; names of systems that are not measured have no effect."),
        ]
        | UnsetType
    ) = UNSET
    step_seconds: Annotated[
        Seconds, about("Length of each step; a slope can be judged if a step has at least 4 commits.")
    ]


class Upkeep(Struct, frozen=True, kw_only=True):
    """Tables that are maintained while Tidemark's own consumer writes to them: a series per system, rate and policy;
    left out: none.
    """

    systems: Annotated[
        Several[Text],
        about(
            "Names of 'systems'; others have no effect. ducklake-inlined-postgres, ducklake-inlined, "
            "ducklake-quack and ducklake-sqlite are measured if ducklake is, iceberg-duckdb if iceberg-pyiceberg is."
        ),
    ]
    policies: Annotated[
        Several[UpkeepPolicy],
        about(
            "When the consumer commits, as in the protocol's 'policies', and what is done after how many commits: "
            "'100ms none', '1s merge 100', '1s merge expire 100 beside'. merge: merge small files. expire: expire "
            "snapshots and remove files that are not needed. flush: write inlined rows to files. checkpoint: write a "
            "checkpoint of the log. all: whatever the client offers. The consumer does it between two commits, or, "
            "with beside, a second process."
        ),
    ]
    rates: Annotated[Several[Rate], about("Events per second that are due, a series each.")]
    window_seconds: Annotated[Seconds, about("Seconds for which events arrive; at least two commits by time.")]


class Protocol(Struct, frozen=True, kw_only=True):
    """Named set of policies, rates and durations."""

    policies: Annotated[
        Several[PolicyName],
        about(
            "When Tidemark's own consumer commits, a series each, at 'rate': every event, a time after the first "
            "waiting event (100ms, 10s), or a number of waiting events (1000rows)."
        ),
    ]
    intervals: Annotated[
        Several[Annotated[str, Meta(pattern="^[1-9][0-9]*(ms|s)$")]],
        about("Commit interval of a pipeline, a series each, at 'rate'."),
    ]
    rate: Annotated[Rate, about("Events per second that are due in these series.")]
    rates: Annotated[Several[Rate], about("Events per second in series of all systems under 'policy'.")]
    policy: Annotated[
        PolicyName,
        about("The policy of these series, a time: set for Tidemark's own consumers and for pipelines alike."),
    ]
    kills: Annotated[
        int,
        about(
            "How often, in a separate series under 'policy', a consumer or a pipeline is killed (SIGKILL) and "
            "restarted; 0 leaves it out.",
            ge=0,
            le=100,
        ),
    ]
    kill_rate: Annotated[Rate, about("Events per second in that series.")]
    kill_seconds: Annotated[
        float,
        about(
            "Seconds by which each kill extends the arrival of events in that series; events arrive at least until "
            "all kills are done.",
            ge=0,
            le=DAY,
        ),
    ]
    window_seconds: Annotated[Seconds, about("Seconds for which events arrive; at least two commits by time.")]
    ramp: Ramp | UnsetType = UNSET
    upkeep: Upkeep | UnsetType = UNSET
    own_drain_seconds: (
        Annotated[
            Seconds,
            about(
                "'drain_seconds' of Tidemark's own consumers, which wait for no broker and no worker, and of ramps; "
                "left out: the same."
            ),
        ]
        | UnsetType
    ) = UNSET
    drain_seconds: Annotated[
        Seconds,
        about(
            "Maximum wait after the last event until all are visible: longer than the longest interval, than Kafka "
            "Connect's worker waits for events (60 s), and than the broker waits for a killed worker (45 s)."
        ),
    ]


class FreshnessConfig(Struct, frozen=True, kw_only=True):
    """Age of events when a reader of the table sees them, at a set rate: Tidemark's own consumers with a writing
    policy, and pipelines that read the topic themselves.
    """

    protocols: Protocols[Protocol] = DEFAULTS["protocols"]
    systems: Annotated[
        Systems,
        about(
            "The systems to measure, by name: tables, which Tidemark's own consumer writes to, and pipelines. A "
            "variant is a new name with 'like' and the options that differ."
        ),
    ] = DEFAULTS["systems"]
    catalog: Annotated[
        str,
        one_of_these("reference", "polaris"),
        about("The catalog server of Iceberg systems whose own options set none."),
    ] = "reference"
    encoding: Annotated[
        str,
        one_of_these("record", "json"),
        about(
            "Encoding of events for Tidemark's own consumers: Arrow IPC record batches, or JSON, which all pipelines "
            "get."
        ),
    ] = "json"
    warm: Annotated[Rate, about("Events that are sent and become visible before a window; they are not counted.")] = 200
    look_ms: Annotated[
        int,
        about("Milliseconds between two polls of the reader, which counts the rows of the table.", ge=1, le=60_000),
    ] = 100


CONFIG = FreshnessConfig
