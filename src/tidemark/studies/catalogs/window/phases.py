"""Requests of a window by phase: all requests of one phase may run concurrently, those of two phases never."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidemark.studies.catalogs.requests import (
    APPENDING,
    CREATIONS,
    DROPPING,
    READS,
    RENAMING,
    TRANSACTING,
    UPDATES,
    Kind,
    Request,
)
from tidemark.studies.catalogs.settings import ALONE, CatalogSettings
from tidemark.studies.catalogs.tree import TABLES, VIEWS, Tree
from tidemark.systems.catalogs.base import Entity

NAMESPACE, TABLE, VIEW = CREATIONS
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


def _all(settings: CatalogSettings, tree: Tree, seed: int, can: frozenset[str] | None, pool: int) -> list[Phase]:
    walk, users = Walk.of(tree), settings.users
    rng = random.Random(f"{seed} {settings.label}")
    made: list[Phase] = []
    for part in settings.parts.split(","):
        name, _, share = part.partition("-")
        if part == "create":
            made += _creating(walk, tree, users)
        elif part == "create-ramp" and users > ALONE:
            made.append(_ramp(tree))
        elif part == "read":
            asked = tuple(request for kind in READS for request in walk.all(kind))
            made.append(Phase(part, part, users, asked))
        elif part == "update":
            made += [Phase(part, kind.name, users, tuple(walk.all(kind, "Updated"))) for kind in UPDATES]
        elif name == "mixed":
            mix = _mix(walk, OF_A_MIX[share], settings.mixed_requests, rng, can)
            made.append(Phase(part, part, users, mix))
        elif name == "open":
            due = _arrivals(settings.rate, settings.open_seconds, rng)
            mix = _mix(walk, OF_A_MIX[share], len(due), rng, can)
            made.append(Phase(part, part, max(users, pool), mix, due))
        elif part == "hot":
            path, table = walk.entities[Entity.TABLE][0]
            hot = tuple(Request(HOT_UPDATE, path, table, f"Hot_{place}") for place in range(settings.hot_updates))
            made.append(Phase(part, part, users, hot))
        elif part in APPENDS:
            number, appending = APPENDS[part]
            path, table = walk.entities[Entity.TABLE][number]
            snapshots = tuple(Request(appending, path, table, str(place + 1)) for place in range(settings.appends))
            made.append(Phase(part, part, users, snapshots))
        elif part == "race":
            made += _races(tree, users, settings.races)
        elif part == "churn":
            made += _churn(tree, users, settings.churns)
    return made


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


def _races(tree: Tree, users: int, names: int) -> Iterator[Phase]:
    """Yield phases in which all users create one name, a table's, with a new name per phase. One may succeed."""
    for number in range(names):
        yield Phase("race", "race", users, (Request(TABLE, (tree.root,), f"Race_{number}"),) * users)


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
