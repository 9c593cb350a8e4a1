"""Section `lhbench` of the configuration: every key with its type, range, default and meaning."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from tidemark.settings import Count, OneOrMore, Protocols, Several, SparkMaster, Systems, about, one_of_these, shipped

DEFAULTS = shipped(__file__)

PARTS = ("load", "refresh", "merge", "files")

Scale = Annotated[float, Meta(gt=0, le=100)]
Queries = Annotated[
    Any,
    about(
        "Numbers of the standard's queries, from 1 to 99, or all.",
        extra_json_schema={
            "oneOf": [
                {"const": "all"},
                {
                    "type": "array",
                    "minItems": 1,
                    "uniqueItems": True,
                    "items": {"type": "integer", "minimum": 1, "maximum": 99},
                },
            ]
        },
    ),
]
Updates = Annotated[
    OneOrMore[Annotated[int, Meta(ge=1, le=1_000_000_000)]],
    about("Rows that a merge changes; it adds as many. One table for each number."),
]
Without = Annotated[Several[str], about("Systems that this part leaves out.")]
Repeats = Annotated[
    int,
    about("How often each series of this part is measured, instead of the protocol's number.", ge=1, le=100),
]


class Load(Struct, frozen=True, kw_only=True):
    """Tables of TPC-DS are loaded, and then queried."""

    scales: Annotated[
        OneOrMore[Scale],
        about("Scale factors, a series each; 1 is some 400 MB of Parquet, and needs four times that as working space."),
    ]
    tables: Annotated[str, one_of_these("all", "asked"), about("All 24 tables, or those that the queries name.")]
    queries: Queries
    iterations: Annotated[Count, about("How often each query runs in a session; the median counts.")]
    without: Without | UnsetType = UNSET
    repeats: Repeats | UnsetType = UNSET


class RefreshExceptions(Struct, frozen=True, kw_only=True):
    """Number of repeats of a single system."""

    repeats: Repeats


class Refresh(Struct, frozen=True, kw_only=True):
    """Queries, refreshes by MERGE, the same queries, compaction, and the queries once more."""

    scale: Annotated[Scale, about("The scale factor.")]
    queries: Queries
    merged: Annotated[OneOrMore[str], about("Fact tables that are merged into.")]
    refreshes: Annotated[int, about("Number of sets that are merged, one after the other.", ge=1, le=50)]
    share: Annotated[float, about("Rows of a set, as a share of the loaded rows.", gt=0, le=0.5)]
    updates: Annotated[float, about("Share of a set that updates rows; the rest are new rows.", ge=0, le=1)]
    iterations: Annotated[Count, about("How often each query runs in each of its phases; the median counts.")]
    without: Without | UnsetType = UNSET
    repeats: Repeats | UnsetType = UNSET
    instead: (
        Annotated[
            dict[str, RefreshExceptions],
            about(
                "Other numbers of repeats for single systems, by name. The variance between repeats is estimated from "
                "all systems with several."
            ),
        ]
        | UnsetType
    ) = UNSET


class MergeExceptions(Struct, frozen=True, kw_only=True):
    """Sizes of a single system."""

    updates: Updates | UnsetType = UNSET
    repeats: Repeats | UnsetType = UNSET


class Merge(Struct, frozen=True, kw_only=True):
    """One merge into a synthetic table."""

    rows: Annotated[int, about("Rows of the table.", ge=1000, le=1_000_000_000)]
    files: Annotated[int, about("Files of the table, each with consecutive keys.", ge=1, le=10_000)]
    updates: Updates
    iterations: Annotated[Count, about("How often each query runs before and after; the median counts.")]
    without: Without | UnsetType = UNSET
    repeats: Repeats | UnsetType = UNSET
    instead: (
        Annotated[
            dict[str, Annotated[MergeExceptions, Meta(extra_json_schema={"minProperties": 1})]],
            about("Exceptions for single systems, by name: for a format whose merges take minutes."),
        ]
        | UnsetType
    ) = UNSET


class Files(Struct, frozen=True, kw_only=True):
    """Queries of a table with many files, which are registered with the formats and not written by them."""

    counts: Annotated[
        OneOrMore[Annotated[int, Meta(ge=101, le=1_000_000)]],
        about(
            "Files of a table, a series each; the queries look for the hundredth file. 1,000 files take some 10 MB of "
            "disk."
        ),
    ]
    rows: Annotated[int, about("Rows of a file.", ge=1, le=100_000)]
    iterations: Annotated[
        int,
        about(
            "How often each query runs; the first time is left out, and the median of the others counts.",
            ge=2, le=1000,
        ),
    ]  # fmt: skip
    without: Without | UnsetType = UNSET
    repeats: Repeats | UnsetType = UNSET


class Protocol(Struct, frozen=True, kw_only=True):
    """Named set of sizes of all parts."""

    load: Load
    refresh: Refresh
    merge: Merge
    files: Files
    without: (
        Annotated[
            Several[str],
            about("Systems that this protocol leaves out: one per format is enough to see that all parts run."),
        ]
        | UnsetType
    ) = UNSET
    repeats: Annotated[
        int,
        about(
            "How often each series is measured, each time in a new session; intervals are estimated from these "
            "repeats.",
            ge=1, le=100,
        ),
    ]  # fmt: skip
    runs: Annotated[
        int, about("Windows in one session; after the first, the engine has compiled its code.", ge=1, le=100)
    ]
    window_seconds: Annotated[
        float, about("Maximum length of a window, in seconds; a longer one is aborted.", gt=0, le=864_000)
    ]


class Engine(Struct, frozen=True, kw_only=True):
    """The engine that all systems run on."""

    master: Annotated[
        SparkMaster | None,
        about(
            "Spark's master for this study only: local[N] or spark://host:port, like services.spark_master. null: the "
            "value of services.spark_master."
        ),
    ] = None


class LhbenchConfig(Struct, frozen=True, kw_only=True):
    """The cost of three table formats on one engine: loads, queries, refreshes and merges; readers without the engine
    check the content of each table.
    """

    protocols: Protocols[Protocol] = DEFAULTS["protocols"]
    systems: Systems = DEFAULTS["systems"]
    engine: Engine = Engine()
    parts: Annotated[
        OneOrMore[Annotated[str, one_of_these(*PARTS)]],
        about("The parts of the study to measure."),
    ] = PARTS


CONFIG = LhbenchConfig
