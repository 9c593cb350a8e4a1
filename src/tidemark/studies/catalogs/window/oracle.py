"""Oracle: everything acknowledged exists exactly once, as another client reads it, and nothing else exists."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from tidemark.runs.proofs import Oracle
from tidemark.studies.catalogs.record import ACKED, UNKNOWN, Differences
from tidemark.studies.catalogs.requests import APPEND, COLUMNS, CREATE, DROP, PROPERTIES, READ, RENAME, UPDATE, Request
from tidemark.systems.catalogs.base import CatalogReader, Entity

type Place = tuple[Entity, tuple[str, ...], str]
MOST_NAMED = 10  # entities that a verdict lists


@dataclass(slots=True)
class Ledger:
    """Required and allowed contents of a catalog, from the requests of a window and their outcomes.

    Requests about one table that is renamed or dropped are passed in the order in which they were sent.
    """

    created: Counter[Place] = field(default_factory=Counter)  # acknowledged creations of each entity
    maybe: set[Place] = field(default_factory=set)  # entities whose creation has an unknown outcome
    # By UPDATE or APPEND, and entity: properties or snapshots that were acknowledged, and those of unknown outcome.
    written: dict[tuple[str, Place], set[str]] = field(default_factory=dict)
    maybe_written: dict[tuple[str, Place], set[str]] = field(default_factory=dict)
    gone: set[Place] = field(default_factory=set)  # dropped, or renamed to another name
    may_be_gone: set[Place] = field(default_factory=set)  # entities whose drop has an unknown outcome
    either: dict[Place, Place] = field(default_factory=dict)  # new and old name of renames with an unknown outcome
    unknown: int = 0

    @classmethod
    def of(cls, requests: Iterable[Request], found: Iterable[str]) -> Ledger:
        ledger = cls()
        for request, outcome in zip(requests, found, strict=True):
            act, place = request.kind.act, (request.kind.entity, request.path, request.name)
            ledger.unknown += outcome == UNKNOWN and act != READ
            if act == CREATE and outcome == ACKED:
                ledger.created[place] += 1
            elif act == CREATE and outcome == UNKNOWN:
                ledger.maybe.add(place)
            elif act in (UPDATE, APPEND) and outcome in (ACKED, UNKNOWN):
                known = ledger.written if outcome == ACKED else ledger.maybe_written
                known.setdefault((act, place), set()).add(request.key)
            elif act == RENAME and outcome in (ACKED, UNKNOWN):
                ledger._rename(place, (request.kind.entity, request.path, request.key), outcome == ACKED)
            elif act == DROP and outcome in (ACKED, UNKNOWN):
                ledger._drop(place, outcome == ACKED)
        return ledger

    def _rename(self, old: Place, new: Place, certain: bool) -> None:
        was_there = self.created.pop(old, 0)
        if certain:
            self.created[new] += 1
            self.maybe.discard(old)
            self.gone.add(old)
        elif was_there:
            self.either[new] = old
        else:
            self.maybe.add(new)

    def _drop(self, place: Place, certain: bool) -> None:
        self.created.pop(place, 0)
        if (old := self.either.pop(place, None)) is not None:
            self.maybe.add(old)
        if certain:
            self.maybe.discard(place)
            self.gone.add(place)
        else:
            self.may_be_gone.add(place)

    def keys(self, act: str, place: Place) -> tuple[set[str], set[str]]:
        """Return the keys of acknowledged updates or appends of an entity, and those of unknown outcome."""
        return self.written.get((act, place), set()), self.maybe_written.get((act, place), set())

    def allows(self, place: Place) -> bool:
        """Return True if `place` may exist."""
        known = (self.created, self.maybe, self.may_be_gone, self.either, self.either.values())
        return any(place in each for each in known)


@dataclass(slots=True)
class Finding(Differences):
    """Counted differences, and the numbers of entities, properties and snapshots that were expected and found."""

    expected: int = 0
    found: int = 0

    def differs(self, what: str, place: Place) -> None:
        setattr(self, what, getattr(self, what) + 1)
        if len(self.named) < MOST_NAMED:
            entity, path, name = place
            self.named += (f"{what.replace('_', ' ')}: {entity} {'.'.join((*path, name) if name else path)}",)

    def resolve(self, done: bool) -> None:
        self.resolved_done += done
        self.resolved_not += not done

    def plain(self) -> dict[str, Any]:
        """Return the counted differences as JSON data."""
        return {each.name: getattr(self, each.name) for each in fields(Differences)}


def look(reader: CatalogReader, ledger: Ledger, root: tuple[str, ...], keeps_properties: bool = True) -> Finding:
    """Read everything below `root`, and compare it with the ledger.

    If a catalog keeps only the last property that was set, that must be from an acknowledged or unknown update.
    """
    finding = Finding()
    listed = Counter[Place]()
    for path in reader.walk(root):
        listed[Entity.NAMESPACE, path, ""] += 1
        for entity in (Entity.TABLE, Entity.VIEW):
            listed.update((entity, path, name) for name in reader.names(entity, path))
    expected = sum(len(keys) if keeps_properties else 1 for keys in ledger.written.values())
    finding.expected = len(ledger.created) + expected
    for place, times in listed.items():
        if times > 1 or ledger.created[place] > 1:
            finding.differs("doubled", place)
        if place in ledger.gone:
            finding.differs("undead", place)
        elif not ledger.allows(place):
            finding.differs("phantom", place)
    for place in ledger.created:
        if place not in listed:
            finding.differs("lost", place)
    for place in ledger.maybe - ledger.created.keys() - ledger.may_be_gone:
        finding.resolve(place in listed)
    for place in ledger.may_be_gone:
        finding.resolve(place not in listed)
    for new, old in ledger.either.items():
        finding.resolve(new in listed)
        if (new in listed) == (old in listed):
            finding.differs("doubled" if new in listed else "lost", new)
    for place in listed:
        _look_at(reader, ledger, place, finding, keeps_properties)
    return finding


def _look_at(reader: CatalogReader, ledger: Ledger, place: Place, finding: Finding, keeps_properties: bool) -> None:
    entity, path, name = place
    kept = reader.fetch(entity, path, name)
    if kept is None:
        finding.differs("torn", place)
        return
    finding.found += 1
    properties = kept.properties
    whole = not keeps_properties or all(properties.get(key) == value for key, value in PROPERTIES.items())
    # A namespace has no columns, and not all readers show those of a view.
    if not whole or not (kept.columns == COLUMNS or (entity is not Entity.TABLE and not kept.columns)):
        finding.differs("wrong", place)
    if not keeps_properties:
        _look_at_last(ledger, place, set(properties), finding)
        return
    for act, there in ((UPDATE, set(properties)), (APPEND, set(kept.snapshots))):
        known, perhaps = ledger.keys(act, place)
        finding.found += len(known & there)
        for _ in known - there:
            finding.differs("lost_updates", place)
        for key in perhaps - known:
            finding.resolve(key in there)
        for _ in there - known - perhaps if act == APPEND else ():
            finding.differs("phantom", place)
    if len(kept.snapshots) != len(set(kept.snapshots)):
        finding.differs("doubled", place)


def _look_at_last(ledger: Ledger, place: Place, there: set[str], finding: Finding) -> None:
    """Check that the last property that was set is one whose update was acknowledged or has an unknown outcome."""
    known, perhaps = ledger.keys(UPDATE, place)
    if there and there <= known | perhaps:
        finding.found += bool(known)
    elif known or there:
        finding.differs("lost_updates" if known else "phantom", place)


def verdict(finding: Finding, reader: str, began: float) -> Oracle:
    """Convert `finding` to an Oracle; `began` is when the check started, on the monotonic clock."""
    return Oracle(
        verdict=finding.holds,
        applicable=True,
        expected=finding.expected,
        found=finding.found,
        missing=finding.losses + finding.wrong,
        duplicated=finding.doubled,
        unexpected=finding.phantom + finding.undead,
        reader=reader,
        seconds=time.monotonic() - began,
    )
