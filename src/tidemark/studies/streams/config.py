"""Section `streams` of the configuration: every key with its type, range, default and meaning."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from tidemark.settings import Count, OneOrMore, Protocols, Seconds, Systems, about, one_of_these, shipped

DEFAULTS = shipped(__file__)

Sweeps = OneOrMore[str]
Modes = OneOrMore[Annotated[str, one_of_these("single", "batch")]]


class Protocol(Struct, frozen=True, kw_only=True):
    """Named set of window lengths, runs and repeats."""

    window_seconds: Annotated[Seconds, about("Length of one measured window, in seconds; with 'commits', the maximum.")]
    commits: Annotated[
        int,
        about(
            "Commits that end a window, so that tables of all systems get equally old; 0: only its length ends it.",
            ge=0, le=10_000_000,
        ),
    ] = 0  # fmt: skip
    least_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=1_000_000)],
        about("With 'commits', the minimum length of a window, in seconds."),
    ] = 0
    runs: Annotated[Count, about("Runs of a series: the first is cold, the others are hot.")]
    repeats: Annotated[
        Count,
        about(
            "How often each series is measured, each time with new servers. With two or more, intervals cover how "
            "series of one system differ."
        ),
    ] = 1
    rounds: Annotated[
        int,
        about(
            "Rounds before these series, at most: in each, every system writes its hot windows in random order, all on "
            "the same servers.",
            ge=0, le=1000,
        ),
    ] = 0  # fmt: skip
    block: Annotated[
        int,
        about(
            "Rounds that share servers and client processes, which are new in the next block; the first round is a "
            "block by itself, so that first results come soon. With several stacks, each stack has its own.",
            ge=1, le=1000,
        ),
    ] = 1  # fmt: skip
    precision: Annotated[
        Annotated[float, Meta(ge=0, le=1000)],
        about(
            "Half-width of an interval, in per cent, that ends the rounds once each ratio of systems has it; 0: all "
            "rounds are measured."
        ),
    ] = 0
    budget_minutes: Annotated[
        Annotated[float, Meta(ge=0, le=1_000_000)],
        about("Minutes of measuring this study after which no further round begins; 0: without a limit."),
    ] = 0
    twin: Annotated[
        bool,
        about(
            "Whether the first system that stores rows is measured under a second name as well, NAME-twin: the two "
            "differ by the noise floor."
        ),
    ] = False
    sweeps: Annotated[Sweeps, about("What 'streams.sweeps' is with this protocol, if it says nothing else.")] = (
        "main",
    )
    null_seconds: (
        Annotated[
            Seconds,
            about(
                "Length of a window of the system that stores nothing; 3 s when left out, and at most window_seconds."
            ),
        ]
        | UnsetType
    ) = UNSET


class Sweep(Struct, frozen=True, kw_only=True):
    """Sweep of one setting; what is left out is the configuration's own value."""

    axis: Annotated[
        str,
        one_of_these(
            "threads",
            "cpus",
            "batch_size",
            "encoding",
            "producer",
            "overlap",
            "read_ahead",
            "chunks",
            "evict",
            "commits",
        ),
        about(
            "The key that the sweep varies; commits: a window ends after this number of commits, or after "
            "window_seconds."
        ),
    ]
    values: Annotated[
        OneOrMore[Annotated[Any, Meta(extra_json_schema={"type": ["integer", "string", "boolean"]})]],
        about("The values that it takes."),
    ]
    systems: (
        Annotated[tuple[str, ...], Meta(min_length=1), about("Names from 'systems'; all of them when left out.")]
        | UnsetType
    ) = UNSET
    modes: Annotated[Modes, about("The modes to run it in; all of 'modes' when left out.")] | UnsetType = UNSET
    window_seconds: (
        Annotated[
            Seconds,
            about(
                "Length of a window; the protocol's when left out, and never longer than the protocol's under smoke."
            ),
        ]
        | UnsetType
    ) = UNSET
    runs: Annotated[Count, about("Runs of a series; the protocol's when left out.")] | UnsetType = UNSET
    repeats: (
        Annotated[Count, about("How often each series is measured; the protocol's number when left out.")] | UnsetType
    ) = UNSET


class StreamsConfig(Struct, frozen=True, kw_only=True):
    """Speed of writing a stream into a table, event by event and in batches, cold and hot."""

    protocols: Protocols[Protocol] = DEFAULTS["protocols"]
    systems: Systems = DEFAULTS["systems"]
    modes: Annotated[Modes, about("single: one event per write. batch: batch_size events per write.")] = (
        "single",
        "batch",
    )
    batch_size: Annotated[int, about("Events of one batch.", ge=2, le=1_000_000)] = 1000
    threads: Annotated[int, about("Threads of each client that has such a setting.", ge=1, le=1024)] = 1
    cpus: Annotated[
        Annotated[int, Meta(ge=1, le=4096)] | None,
        about("Processors that the client's process is bound to, whatever 'threads' is; servers keep all. null: all."),
    ] = None
    catalog: Annotated[
        str,
        one_of_these("reference", "polaris"),
        about(
            "The catalog server of the Iceberg systems: Iceberg's reference server, or Apache Polaris "
            "(services.polaris_path or polaris_address). A system may set another one."
        ),
    ] = "reference"
    compression: Annotated[
        str, one_of_these("snappy", "zstd", "none"), about("Codec of the Parquet files that systems write.")
    ] = "snappy"
    encoding: Annotated[
        str,
        one_of_these("record", "stream"),
        about(
            "record: the schema once per topic, then one record batch per message. stream: a complete IPC stream per "
            "message."
        ),
    ] = "record"
    producer: Annotated[
        str,
        one_of_these("ahead", "beside"),
        about("ahead: the topic is filled before the window. beside: the producer runs during it."),
    ] = "ahead"
    overlap: Annotated[bool, about("In batch mode, decode the next batch while this one is written.")] = False
    chunks: Annotated[
        str,
        one_of_these("one", "rows"),
        about(
            "How a batch is handed to the client. one: a contiguous table. rows: one chunk for each event, as events "
            "were collected, which is what the tool of the thesis does."
        ),
    ] = "one"
    evict: Annotated[
        str,
        one_of_these("first", "each", "never"),
        about(
            "Runs of a series before which files are evicted from memory, as 'cold' says. first: run 0. each: all of "
            "them. never: none; files are read before run 0, so that only its processes are new."
        ),
    ] = "first"
    read_ahead: Annotated[
        int,
        about(
            "In single mode, the maximum number of events per read, if the client has them; the thesis read 1.",
            ge=1, le=10_000,
        ),
    ] = 64  # fmt: skip
    maintenance: Annotated[
        bool, about("After a series' last run, time the merge of small files where the system has one.")
    ] = True
    sweeps: Annotated[
        Sweeps | None,
        about("What to run: main, and any of the sweeps below by name. null: what the protocol says."),
    ] = None
    sweep: Annotated[
        dict[str, Sweep],
        about("Sweeps vary one setting. What a sweep leaves out it takes from the main configuration."),
    ] = DEFAULTS["sweep"]


CONFIG = StreamsConfig
