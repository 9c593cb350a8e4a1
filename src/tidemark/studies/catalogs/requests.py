"""Requests of a window: the tree of entities that they are about, their form on the wire, and their phases.

The tree is the data set of the report: a binary tree of namespaces, with tables and views in its leaves. Node i has the
parent (i - 1) / 2; a namespace's path lists all names from the root. Names, properties and columns are those of the
report's benchmark. Only the root's name has a run's mark, so that several runs fit into one catalog.

Requests follow Iceberg's REST protocol. All requests of one phase may run concurrently, those of two phases never.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tidemark.studies.catalogs.record import ALONE, CatalogSettings
from tidemark.systems.catalogs.base import Endpoint, Entity

WIDTH = 2  # children of a namespace
TABLES = VIEWS = 2  # in each leaf
PROPERTIES = {f"InitialAttribute_{number}": str(number) for number in range(10)}
COLUMNS = tuple(f"column{number}" for number in range(1, 11))


@dataclass(frozen=True, slots=True)
class Tree:
    """Tree of `depth` levels, including the root."""

    depth: int
    mark: str  # of the run, part of the root's name

    @property
    def namespaces(self) -> int:
        """Number of namespaces, in closed form."""
        return int(WIDTH**self.depth - 1) // (WIDTH - 1)

    @property
    def leaves(self) -> int:
        return int(WIDTH ** (self.depth - 1))

    @property
    def tables(self) -> int:
        return self.leaves * TABLES

    @property
    def views(self) -> int:
        return self.leaves * VIEWS

    def path(self, node: int) -> tuple[str, ...]:
        """Return the names of a namespace from the root."""
        return (*self.path((node - 1) // WIDTH), f"NS_{node}") if node > 0 else (self.root,)

    @property
    def root(self) -> str:
        return f"NS_0_{self.mark}"

    def levels(self) -> Iterator[range]:
        """Yield the nodes of each level, the root's first, so that no child is created before its parent."""
        first = 0
        for level in range(self.depth):
            count = WIDTH**level
            yield range(first, first + count)
            first += count

    def in_leaves(self, letter: str, count: int) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield path and name of `count` entities per leaf: T_0, T_1, ... as the report numbers them."""
        first = self.namespaces - self.leaves
        for leaf in range(self.leaves):
            path = self.path(first + leaf)
            for number in range(count):
                yield path, f"{letter}_{leaf * count + number}"


FILL = "@@FILL@@"  # placeholder in a body for the part that differs between requests
CREATE, READ, UPDATE, APPEND, RENAME, DROP = "create", "read", "update", "append", "rename", "drop"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [{"id": number, "name": name, "type": "int", "required": True} for number, name in enumerate(COLUMNS, 1)],
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of request: its action (`act`) and target, its HTTP method, and its body without the part that differs."""

    name: str
    act: str
    entity: Entity
    method: str
    place: str  # after the namespace's address, or "" for the namespace itself; {name} is the entity's
    body: str = ""


def _set(update: str) -> str:
    return '{"requirements": [], "updates": [{"action": "set-properties", "updates": %s}]}' % update  # noqa: UP031


_TABLE = {"name": FILL, "schema": SCHEMA, "stage-create": False, "properties": PROPERTIES}
_VERSION: dict[str, Any] = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {"engine-name": "spark"},
    "representations": [{"type": "sql", "sql": f"SELECT * FROM {FILL}", "dialect": "spark"}],
    "default-namespace": [],
}
_VIEW = {"name": FILL, "schema": SCHEMA, "view-version": _VERSION, "properties": PROPERTIES}
_ONE = '{"%s": "1"}' % FILL  # noqa: UP031
N, T, V = Entity.NAMESPACE, Entity.TABLE, Entity.VIEW
CREATIONS = (
    Kind("create namespace", CREATE, N, "POST", "", f'{{"namespace": {FILL}, "properties": {json.dumps(PROPERTIES)}}}'),
    Kind("create table", CREATE, T, "POST", "/tables", json.dumps(_TABLE)),
    Kind("create view", CREATE, V, "POST", "/views", json.dumps(_VIEW)),
)
READS = (
    Kind("list namespaces", READ, N, "GET", "?parent"),
    Kind("namespace exists", READ, N, "HEAD", ""),
    Kind("get namespace", READ, N, "GET", ""),
    Kind("list tables", READ, T, "GET", "/tables"),
    Kind("table exists", READ, T, "HEAD", "/tables/{name}"),
    Kind("get table", READ, T, "GET", "/tables/{name}"),
    Kind("list views", READ, V, "GET", "/views"),
    Kind("view exists", READ, V, "HEAD", "/views/{name}"),
    Kind("get view", READ, V, "GET", "/views/{name}"),
)
UPDATES = (
    Kind("update namespace", UPDATE, N, "POST", "/properties", '{"removals": [], "updates": %s}' % _ONE),  # noqa: UP031
    Kind("update table", UPDATE, T, "POST", "/tables/{name}", _set(_ONE)),
    Kind("update view", UPDATE, V, "POST", "/views/{name}", _set(_ONE)),
)
# A commit as a stream writer makes it, of a snapshot whose files are never read: the table is read, and the snapshot is
# added on the condition that the branch has not moved; if it has, all of it is repeated. The load generator fills in
# the state that it has read.
COMMIT = {
    "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
    "updates": [
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 0,
                "sequence-number": 0,
                "timestamp-ms": 0,
                "manifest-list": "file:///nobody-reads-this.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
            },
        },
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 0},
    ],
}
MOST_ATTEMPTS = 50  # of one append
MOST_RETRIES = 5  # in a ramp of users, of a request that the server failed (500)
APPENDING = Kind("append", APPEND, T, APPEND.upper(), "/tables/{name}", json.dumps(COMMIT))
# The same commit through the endpoint for changes to several tables at once, which some clients use for all commits.
TRANSACTION = "TRANSACTION"
TRANSACTING = Kind("append by transaction", APPEND, T, TRANSACTION, "/tables/{name}", json.dumps(COMMIT))
RENAMING = Kind("rename table", RENAME, T, "POST", "/tables/rename", FILL)
DROPPING = Kind("drop table", DROP, T, "DELETE", "/tables/{name}")
KINDS = {kind.name: kind for kind in (*CREATIONS, *READS, *UPDATES, APPENDING, TRANSACTING, RENAMING, DROPPING)}
NAMESPACE, TABLE, VIEW = CREATIONS


@dataclass(frozen=True, slots=True)
class Request:
    """Request; `key` is the property that an update sets to "1", an appended snapshot's id, or a table's new name."""

    kind: Kind
    path: tuple[str, ...]
    name: str = ""  # of a table or view
    key: str = ""

    def address(self, endpoint: Endpoint) -> str:
        """Return the address, from the server's root."""
        kind = self.kind
        if kind is CREATIONS[0]:
            return endpoint.namespaces()
        if kind.place == "?parent":
            return f"{endpoint.namespaces()}?parent={endpoint.separator.join(self.path)}"
        if kind is RENAMING:
            return endpoint.prefix + kind.place
        return endpoint.namespaces(self.path) + kind.place.format(name=self.name)

    @property
    def fill(self) -> str:
        """Text that replaces FILL in the body."""
        if self.kind is CREATIONS[0]:
            return json.dumps(self.path)
        if self.kind is RENAMING:
            both = zip(("source", "destination"), (self.name, self.key), strict=True)
            return json.dumps({which: {"namespace": self.path, "name": name} for which, name in both})
        if self.kind is TRANSACTING:
            return json.dumps({"snapshot": int(self.key), "identifier": {"namespace": self.path, "name": self.name}})
        return self.key if self.kind.act in (UPDATE, APPEND) else self.name


HOT_UPDATE = UPDATES[1]
LISTING = READS[3]  # of tables
CHURN, RAMP = "Churn", "Ramp"  # namespaces outside the tree: of tables that come and go, and of `_ramp`
MIXED_KEY = "NewAttribute_0"  # the only property that the report's mixes set
APPENDS = {"append": (1, APPENDING), "append-transaction": (2, TRANSACTING)}  # and the table's number in the tree
OF_A_MIX = {"50": 0.5, "99": 0.99}  # share of reads
POOL = 50  # concurrent requests of an open loop; a request that waits for one of these places counts as late


@dataclass(frozen=True, slots=True)
class Phase:
    """Phase of requests. `step` is its name in results; `due_s` are open-loop arrivals, in seconds from its start.

    `own`: each request belongs to one user, who sends them in order; requests are assigned round-robin. Otherwise the
    next free user takes the next one. `ramp`: one user begins and one more joins each second, and a request that the
    server failed (500) is retried at most five times.
    """

    part: str  # as in the configuration's `parts`
    step: str
    users: int
    requests: tuple[Request, ...]
    due_s: tuple[float, ...] | None = None
    own: bool = False
    ramp: bool = False


@dataclass(slots=True)
class Walk:
    """Entities of a tree, each kind used in order from the first, cyclically, as in the report."""

    entities: dict[Entity, list[tuple[tuple[str, ...], str]]]

    @classmethod
    def of(cls, tree: Tree) -> Walk:
        return cls(
            {
                Entity.NAMESPACE: [(tree.path(node), "") for node in range(tree.namespaces)],
                Entity.TABLE: list(tree.in_leaves("T", TABLES)),
                Entity.VIEW: list(tree.in_leaves("V", VIEWS)),
            }
        )

    def all(self, kind: Kind, key: str = "") -> Iterator[Request]:
        """Yield `kind` for every entity; a listing of entities goes to the namespace of each."""
        for path, name in self.entities[kind.entity]:
            yield Request(kind, path, name, key)


def phases(
    settings: CatalogSettings, tree: Tree, seed: int, can: frozenset[str] | None = None, pool: int = POOL
) -> list[Phase]:
    """Return all phases of a window in order, without the kinds of request that are not in `can`."""
    made = (_able(phase, can) for phase in _all(settings, tree, seed, can, pool))
    return [phase for phase in made if phase.requests]


def _able(phase: Phase, can: frozenset[str] | None) -> Phase:
    if can is None or phase.due_s is not None:
        return phase
    kept = tuple(each for each in phase.requests if each.kind.name in can)
    # Requests that depend on one another are kept all or not at all.
    return replace(phase, requests=() if phase.own and len(kept) < len(phase.requests) else kept)


def _all(settings: CatalogSettings, tree: Tree, seed: int, can: frozenset[str] | None, pool: int) -> Iterator[Phase]:
    walk, users = Walk.of(tree), settings.users
    rng = random.Random(f"{seed} {settings.label}")
    for part in settings.parts.split(","):
        name, _, share = part.partition("-")
        if part == "create":
            yield from _creating(walk, tree, users)
        elif part == "create-ramp" and users > ALONE:
            yield _ramp(tree)
        elif part == "read":
            yield Phase(part, part, users, tuple(request for kind in READS for request in walk.all(kind)))
        elif part == "update":
            yield from (Phase(part, kind.name, users, tuple(walk.all(kind, "Updated"))) for kind in UPDATES)
        elif name == "mixed":
            yield Phase(part, part, users, _mix(walk, OF_A_MIX[share], settings.mixed_requests, rng, can))
        elif name == "open":
            due = _arrivals(settings.rate, settings.open_seconds, rng)
            mix = _mix(walk, OF_A_MIX[share], len(due), rng, can)
            yield Phase(part, part, max(users, pool), mix, due)
        elif part == "hot":
            path, table = walk.entities[Entity.TABLE][0]
            hot = tuple(Request(HOT_UPDATE, path, table, f"Hot_{place}") for place in range(settings.hot_updates))
            yield Phase(part, part, users, hot)
        elif part in APPENDS:
            number, appending = APPENDS[part]
            path, table = walk.entities[Entity.TABLE][number]
            snapshots = tuple(Request(appending, path, table, str(place + 1)) for place in range(settings.appends))
            yield Phase(part, part, users, snapshots)
        elif part == "race":
            for number in range(settings.races):  # all users create one name, a table's; one of them may succeed
                yield Phase(part, part, users, (Request(TABLE, (tree.root,), f"Race_{number}"),) * users)
        elif part == "churn":
            yield from _churn(tree, users, settings.churns)


def _creating(walk: Walk, tree: Tree, users: int) -> Iterator[Phase]:
    """Yield a phase per level, so that no child precedes its parent and wide levels have all users; then the leaves."""
    for level in tree.levels():
        nodes = tuple(Request(NAMESPACE, tree.path(node)) for node in level)
        yield Phase("create", NAMESPACE.name, users, nodes)
    for kind in (TABLE, VIEW):
        yield Phase("create", kind.name, users, tuple(walk.all(kind)))


def _ramp(tree: Tree) -> Phase:
    """Return the tree's namespaces again, below RAMP, created as in the report: breadth first, without barriers."""
    asked = [Request(NAMESPACE, (tree.root, RAMP, *tree.path(node)[1:])) for node in range(tree.namespaces)]
    return Phase("create-ramp", "create-ramp", tree.depth + 1, tuple(asked), ramp=True)


def _mix(walk: Walk, reads: float, count: int, rng: random.Random, can: frozenset[str] | None) -> tuple[Request, ...]:
    reading, writing = ([kind for kind in kinds if can is None or kind.name in can] for kinds in (READS, UPDATES))
    places = dict.fromkeys((*reading, *writing), 0)
    made = []
    for _ in range(count):
        kind = rng.choice(reading if rng.random() < reads else writing)
        entities = walk.entities[kind.entity]
        path, name = entities[places[kind] % len(entities)]
        places[kind] += 1
        made.append(Request(kind, path, name, MIXED_KEY))
    return tuple(made)


def _arrivals(rate: float, seconds: float, rng: random.Random) -> tuple[float, ...]:
    """Return the arrivals of a Poisson process, in seconds; at least one."""
    found: list[float] = []
    at = rng.expovariate(rate)
    while at < seconds or not found:
        found.append(at)
        at += rng.expovariate(rate)
    return tuple(found)


def _churn(tree: Tree, users: int, tables: int) -> Iterator[Phase]:
    """Yield phases in which each user creates tables, renames each, drops every other one, and lists all in between."""
    path = (tree.root, CHURN)
    yield Phase("churn", "churn", users, (Request(NAMESPACE, path),))
    listing = Request(LISTING, path)
    asked: list[Request] = []
    for number in range(-(-tables // users)):
        mine = [(f"Own_{user}_{number}", f"Renamed_{user}_{number}", (user + number) % 2) for user in range(users)]
        asked += [Request(TABLE, path, name) for name, _, _ in mine] + [listing] * users
        asked += [Request(RENAMING, path, name, new) for name, new, _ in mine] + [listing] * users
        asked += [listing if is_kept else Request(DROPPING, path, new) for _, new, is_kept in mine]
    yield Phase("churn", "churn", users, tuple(asked), own=True)
