"""Catalog servers: what can be done to one, declared and never found out by trying."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from tidemark.services.postgres import Postgres
from tidemark.systems.base import DEFAULT, System

BEHIND, VOLATILE = "written behind", "volatile"  # levels of durability, beside the default: flushed at each commit
type Names = Sequence[str]  # of a namespace: all names from the root


class Entity(StrEnum):
    """What a catalog keeps."""

    CATALOG = "catalog"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go: `base` is http://host:port, `prefix` what stands before /namespaces in a path.

    `headers` are what each request has to show, a token among them: keep them out of logs.
    """

    base: str
    prefix: str = "/v1"
    separator: str = "%1F"  # of the names of a namespace, in a path
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def namespaces(self, path: Names = ()) -> str:
        """The address, from the root, of all namespaces or of one."""
        return f"{self.prefix}/namespaces" + (f"/{self.separator.join(path)}" if path else "")


@dataclass(frozen=True, slots=True)
class Kept:
    """An entity as a reader found it: `columns` of tables and views, by name, and the ids of a table's `snapshots`.

    They are those that lead to where its main branch is, oldest last.
    """

    properties: Mapping[str, str]
    columns: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()


class CatalogReader(ABC):
    """Reads a catalog as another client than the one that wrote to it."""

    @abstractmethod
    def namespaces(self, path: Names) -> list[str]:
        """The names of the children of a namespace, as often as they are listed."""

    @abstractmethod
    def names(self, entity: Entity, path: Names) -> list[str]:
        """The names of the tables, or the views, of a namespace, as often as they are listed."""

    @abstractmethod
    def fetch(self, entity: Entity, path: Names, name: str = "") -> Kept | None:
        """One entity; None where the catalog says that it is not there."""

    def walk(self, path: Names) -> Iterator[tuple[str, ...]]:
        """Every namespace from `path` down, in the order of listing; one that is listed twice comes twice.

        None where `path` is not there. Who reads a catalog in which a child needs no parent finds it by itself.
        """
        if self.fetch(Entity.NAMESPACE, path) is not None:
            yield from self._listed(tuple(path))

    def _listed(self, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name in self.namespaces(path):
            yield from self._listed((*path, name))


class CatalogSystem(System):
    """A catalog over one backend: a server that is spoken to by Iceberg's REST protocol, or a library's (`library`).

    `entities`: what can be made in it. `volatile`: nothing of it outlives the server. What a namespace is made with and
    where it may lie is the protocol's; a server that departs from it says so here.
    """

    kind: ClassVar[str] = "a catalog server"
    server: ClassVar[str]  # as figures spell it: "Iceberg reference server"
    backend: ClassVar[str]  # "PostgreSQL"
    entities: ClassVar[frozenset[Entity]] = frozenset({Entity.NAMESPACE, Entity.TABLE, Entity.VIEW})
    volatile: ClassVar[bool] = False
    writes_files: ClassVar[bool] = True  # metadata files, wherever they lie
    behind: ClassVar[bool] = False  # a commit is answered before it is on the disk
    keeps_properties: ClassVar[bool] = True  # of what is created, and each that is set; otherwise the last that was set
    requests: ClassVar[frozenset[str] | None] = None  # by the names of their kinds, that it can do; None: all
    # Of which it refuses one whose name is taken; of others it answers with success and makes nothing.
    refuses_taken: frozenset[Entity] = frozenset({Entity.NAMESPACE, Entity.TABLE, Entity.VIEW})
    checks_parents: ClassVar[bool] = True  # refuses a table in a namespace that is not there
    alone: ClassVar[str | None] = None  # why two users cannot work on it at once, where that is so
    stores: ClassVar[bool] = True  # otherwise it keeps nothing, and there is nothing to hold it to
    # What each entity that is missing from `entities` is not there for, in words.
    reasons: ClassVar[Mapping[Entity, str]] = {
        Entity.CATALOG: "the server has one catalog, which is configured and not created by a request"
    }

    @property
    def durability_level(self) -> str:
        """What is promised when a request is answered: catalogs are compared with those of the same level alone."""
        return VOLATILE if self.volatile else BEHIND if self.behind else DEFAULT

    @property
    @abstractmethod
    def endpoint(self) -> Endpoint:
        """Where requests go, the server having been asked for its prefix."""

    @abstractmethod
    def open_reader(self) -> CatalogReader:
        """A reader with connections of its own."""

    @property
    @abstractmethod
    def reader(self) -> str:
        """What `open_reader` reads through, and its version."""

    def counters(self) -> Mapping[str, int]:
        """What the backend has counted so far: transactions, bytes of its log, ...; nothing where it counts nothing."""
        return {}

    @property
    def postgres(self) -> tuple[Postgres, str] | None:
        """The PostgreSQL that it works on, and its database there; None where there is none, or it is not ours."""
        return None

    def stored(self) -> tuple[int, int, int | None]:
        """Metadata files, their bytes, and the bytes of the database; None where nobody can look."""
        return 0, 0, None

    def reconnect(self) -> None:
        """Its servers were started anew: forget where they were."""

    def close(self) -> None:
        pass
