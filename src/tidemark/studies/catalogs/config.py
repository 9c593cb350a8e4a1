"""Section `catalogs` of the configuration: every key with its type, range, default and meaning."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from tidemark.settings import Count, OneOrMore, Protocols, Systems, about, one_of_these, shipped

DEFAULTS = shipped(__file__)

Depth = Annotated[int, Meta(ge=1, le=20)]
Requests = Annotated[int, Meta(ge=1, le=1_000_000)]
More = Annotated[float, Meta(gt=0, le=1_000_000)]
PARTS = (
    "create", "create-ramp", "read", "update", "mixed-50", "mixed-99", "open-50", "open-99", "hot", "append",
    "append-transaction", "race", "churn", "crash",
)  # fmt: skip


class Protocol(Struct, frozen=True, kw_only=True):
    """Named set of sizes: tree, users, requests and runs."""

    depth: Annotated[
        Depth,
        about(
            "Levels of the binary tree of namespaces, including its root: 2^depth - 1 namespaces, and 2^depth tables "
            "and as many views in its leaves."
        ),
    ]
    concurrent_depth: (
        Annotated[Depth, about("The same with more than one user; 'depth' when left out.")] | UnsetType
    ) = UNSET
    users: Annotated[OneOrMore[Count], about("Concurrent users, a series each.")]
    runs: Annotated[Count, about("Runs of a series on one server: the first is cold, the others are hot.")]
    repeats: Annotated[Count, about("How often each series is measured, each time with new servers.")] = 1
    mixed_requests: Annotated[Requests, about("Requests of each mix in a closed loop.")] = 600
    open_seconds: Annotated[More, about("Seconds for which requests arrive in each mix in an open loop.")] = 10
    sequential_rate: Annotated[
        More,
        about("Requests that arrive per second in an open loop, in series of one user; the report had 1."),
    ] = 10
    concurrent_rate: Annotated[More, about("The same in series of several users; the report had 100.")] = 40
    hot_updates: Annotated[Requests, about("Updates of one table by all users.")] = 200
    appends: Annotated[Requests, about("Snapshots that all users append to one table.")] = 100
    races: Annotated[Requests, about("Names that all users want to create at the same moment.")] = 20
    churns: Annotated[
        Requests, about("Tables that all users together create and rename; they drop every other one.")
    ] = 60
    kills: Annotated[
        Count,
        about(
            "How often each server and each database is killed while users write; only in the series of 8 users, or "
            "of the nearest lower number."
        ),
    ] = 3
    window_seconds: Annotated[
        float,
        about(
            "Maximum length of a window, in seconds; a window ends once all requests are answered, and a series whose "
            "window takes longer fails.",
            gt=0,
            le=864_000,
        ),
    ]


class CatalogsConfig(Struct, frozen=True, kw_only=True):
    """Operations of catalog servers, one at a time and many at once: creating, reading, updating, mixes, one hot
    table.
    """

    protocols: Protocols[Protocol] = DEFAULTS["protocols"]
    systems: Annotated[
        Systems,
        about(
            "The catalog servers to measure, by name. A variant is a new name with 'like' and the options that differ."
        ),
    ] = DEFAULTS["systems"]
    parts: Annotated[
        OneOrMore[Annotated[str, one_of_these(*PARTS)]],
        about(
            "Parts of a window, in this order: create the tree; with several users, create its namespaces once more "
            "as the report did (one user, one more each second, no barrier); read each entity; update each; half or "
            "99 % reads in a closed loop, and in an open one; all users update one table; all append snapshots to one "
            "table, which is the commit race of a stream; the same through the endpoint for changes of several tables "
            "(append-transaction, not by default: if a server loses acknowledged changes there, its runs are invalid, "
            "and no claim is judged by them); all create one name; each creates, renames and drops its own tables and "
            "lists all tables; and after the last window of a series the server, and then its database, is killed "
            "while all create and update (crash: at the end)."
        ),
    ] = tuple(part for part in PARTS if part != "append-transaction")
    timeout_seconds: Annotated[
        float, about("Seconds after which the outcome of a request counts as unknown.", gt=0, le=3600)
    ] = 30


CONFIG = CatalogsConfig
