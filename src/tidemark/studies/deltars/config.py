"""Section `deltars` of the configuration: every key with its type, range, default and meaning."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tidemark.settings import OneOrMore, Protocols, Seconds, Systems, about, shipped

DEFAULTS = shipped(__file__)

Repetitions = Annotated[int, Meta(ge=1, le=10_000)]
Cores = Annotated[
    OneOrMore[Annotated[int, Meta(ge=1, le=1024)]],
    about("Processors of the client, a series each; servers have the others, or share all if there are none."),
]


class Exceptions(Struct, frozen=True, kw_only=True):
    """Sizes of a single system, instead of the protocol's."""

    cores: Cores


class Protocol(Struct, frozen=True, kw_only=True):
    """Named set of sizes: tables, processors and repeats."""

    tables: Annotated[
        dict[str, Repetitions],
        Meta(min_length=1),
        about(
            "How often each table is written and read, by its name: supplier_sf or lineitem_sf and the scale of "
            "TPC-H. supplier_sf1 has 10,000 rows, lineitem_sf1 6,001,215."
        ),
    ]
    slow: Annotated[
        dict[str, Repetitions],
        about(
            "The same for systems that write through Kafka or Spark, whose writes take many times as long. They do "
            "not write tables that are not named here."
        ),
    ] = {}
    cores: Cores
    instead: Annotated[
        dict[str, Exceptions],
        about("Exceptions for single systems, by name: such as one number of processors for an earlier release."),
    ] = {}
    repeats: Annotated[
        int, about("How often each series is measured, each time with a new client process.", ge=1, le=100)
    ]


class DeltarsConfig(Struct, frozen=True, kw_only=True):
    """Time to write and to read complete tables of TPC-H, repeatedly, on a local disk and on HDFS, by number of
    processors.
    """

    protocols: Protocols[Protocol] = DEFAULTS["protocols"]
    systems: Systems = DEFAULTS["systems"]
    timeout_seconds: Annotated[
        Seconds,
        about("Maximum seconds for one write or one read of a complete table; if it takes longer, the series fails."),
    ] = 1800
    checked_rows: Annotated[
        int,
        about(
            "Tables of up to this number of rows are compared with their source value by value in every repetition, "
            "larger ones in the first and the last.",
            ge=0,
            le=1_000_000_000,
        ),
    ] = 100_000


CONFIG = DeltarsConfig
