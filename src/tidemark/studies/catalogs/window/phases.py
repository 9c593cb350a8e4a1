"""What a window asks for, phase by phase: all requests of a phase may be under way at once, those of two never."""

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
from tidemark.systems.catalogs.kind import Entity

NAMESPACE, TABLE, VIEW = CREATIONS
HOT_UPDATE = UPDATES[1]
LISTING = READS[3]  # of tables
CHURN, RAMP = "Churn", "Ramp"  # namespaces that are none of the tree: of tables that come and go, and see _ramp
MIXED_KEY = "NewAttribute_0"  # the one property that the report's mixes set
APPENDS = {"append": (1, APPENDING), "append-transaction": (2, TRANSACTING)}  # and the table of the tree that it is to
OF_A_MIX = {"50": 0.5, "99": 0.99}  # the share of reads
POOL = 50  # of an open loop: requests that can be under way at once; one that waits for a place is late, and counted so


@dataclass(frozen=True, slots=True)
class Phase:
    """`step` is what results call it; `due_s` are arrivals in an open loop, in seconds from the phase's begin.

    `own`: each request belongs to one user, who sends them in their order: the first to the first user, the second to
    the second, round and round. Otherwise whoever is free takes the next. `ramp`: one user begins, one more comes each
    second, and a request that the server failed at (500) is tried again, at most five times.
    """

    part: str  # of the configuration's `parts`
    step: str
    users: int
    requests: tuple[Request, ...]
    due_s: tuple[float, ...] | None = None
    own: bool = False
    ramp: bool = False


@dataclass(slots=True)
class Walk:
    """The entities of a tree, each kind gone through in order from the first, round and round, as the report did."""

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
        """`kind` of every entity; what lists the entities of a namespace is asked of the namespace of each."""
        for path, name in self.entities[kind.entity]:
            yield Request(kind, path, name, key)


def phases(
    settings: CatalogSettings, tree: Tree, seed: int, can: frozenset[str] | None = None, pool: int = POOL
) -> list[Phase]:
    """All phases of a window, in their order; without the kinds of request that are not among those that it `can`."""
    made = (_able(phase, can) for phase in _all(settings, tree, seed, can, pool))
    return [phase for phase in made if phase.requests]


def _able(phase: Phase, can: frozenset[str] | None) -> Phase:
    if can is None or phase.due_s is not None:
        return phase
    kept = tuple(each for each in phase.requests if each.kind.name in can)
    # Of requests that follow from one another, all or none.
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
    """Level by level, so that no child overtakes its parent and wide levels have the full number of users."""
    for level in tree.levels():
        nodes = tuple(Request(NAMESPACE, tree.path(node)) for node in level)
        yield Phase("create", NAMESPACE.name, users, nodes)
    for kind in (TABLE, VIEW):
        yield Phase("create", kind.name, users, tuple(walk.all(kind)))


def _ramp(tree: Tree) -> Phase:
    """The tree's namespaces once more, in one below its root, as the report created them: breadth first, no barrier."""
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
    """Of a Poisson process; at least one."""
    found: list[float] = []
    at = rng.expovariate(rate)
    while at < seconds or not found:
        found.append(at)
        at += rng.expovariate(rate)
    return tuple(found)


def _races(tree: Tree, users: int, names: int) -> Iterator[Phase]:
    """All users create one name at once: a table, again and again under another name. One may win."""
    for number in range(names):
        yield Phase("race", "race", users, (Request(TABLE, (tree.root,), f"Race_{number}"),) * users)


def _churn(tree: Tree, users: int, tables: int) -> Iterator[Phase]:
    """Each user creates tables of its own, renames each and drops every other one, and lists all of them between."""
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
