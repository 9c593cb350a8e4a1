"""Interface of catalog servers; their capabilities are declared and never detected by trying."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from tidemark.services.postgres import Postgres
from tidemark.systems.base import DEFAULT, System

BEHIND, VOLATILE = "written behind", "volatile"  # durability levels, other than the default: flushed at each commit
type Names = Sequence[str]  # of a namespace: all names from the root


class Entity(StrEnum):
    """Kind of object in a catalog."""

    CATALOG = "catalog"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of requests: `base` is http://host:port, `prefix` the part of a path before /namespaces.

    `headers` are required in each request and include a token: keep them out of logs.
    """

    base: str
    prefix: str = "/v1"
    separator: str = "%1F"  # between the names of a namespace, in a path
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def namespaces(self, path: Names = ()) -> str:
        """Return the path, from the root, of all namespaces or of one."""
        return f"{self.prefix}/namespaces" + (f"/{self.separator.join(path)}" if path else "")


@dataclass(frozen=True, slots=True)
class Kept:
    """Entity as a reader found it: names of the `columns` of tables and views, and ids of a table's `snapshots`.

    The snapshots are those from the head of the main branch back to the first, oldest last.
    """

    properties: Mapping[str, str]
    columns: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()


class CatalogReader(ABC):
    """Reader of a catalog, independent of the client that wrote to it."""

    @abstractmethod
    def namespaces(self, path: Names) -> list[str]:
        """Return the names of a namespace's children; a name that is listed twice is returned twice."""

    @abstractmethod
    def names(self, entity: Entity, path: Names) -> list[str]:
        """Return the names of a namespace's tables or views; a name that is listed twice is returned twice."""

    @abstractmethod
    def fetch(self, entity: Entity, path: Names, name: str = "") -> Kept | None:
        """Return one entity; None if the catalog reports that it does not exist."""

    def walk(self, path: Names) -> Iterator[tuple[str, ...]]:
        """Yield every namespace from `path` down, in listing order; one that is listed twice is yielded twice.

        Yield nothing if `path` does not exist. Readers of catalogs in which a child needs no parent override this.
        """
        if self.fetch(Entity.NAMESPACE, path) is not None:
            yield from self._listed(tuple(path))

    def _listed(self, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name in self.namespaces(path):
            yield from self._listed((*path, name))


class CatalogSystem(System):
    """Catalog over one backend: a server that implements Iceberg's REST protocol, or a client library (`library`).

    `entities` can be created in it. `volatile`: nothing in it outlives the server. The protocol defines the contents
    and the location of a new namespace; a server that deviates from it declares so here.
    """

    kind: ClassVar[str] = "a catalog server"
    server: ClassVar[str]  # as figures spell it: "Iceberg reference server"
    backend: ClassVar[str]  # "PostgreSQL"
    entities: ClassVar[frozenset[Entity]] = frozenset({Entity.NAMESPACE, Entity.TABLE, Entity.VIEW})
    volatile: ClassVar[bool] = False
    writes_files: ClassVar[bool] = True  # metadata files, in any location
    behind: ClassVar[bool] = False  # a commit is acknowledged before it is on the disk
    keeps_properties: ClassVar[bool] = True  # those at creation, and each one set later; otherwise the last one set
    requests: ClassVar[frozenset[str] | None] = None  # names of the request kinds that it supports; None: all
    # Entities whose creation it refuses if the name is taken; for others it reports success and creates nothing.
    refuses_taken: frozenset[Entity] = frozenset({Entity.NAMESPACE, Entity.TABLE, Entity.VIEW})
    checks_parents: ClassVar[bool] = True  # refuses a table in a namespace that does not exist
    alone: ClassVar[str | None] = None  # why two users cannot use it at once; None if they can
    stores: ClassVar[bool] = True  # otherwise it keeps nothing, and there is nothing to verify
    # Reason for each entity that is missing from `entities`.
    reasons: ClassVar[Mapping[Entity, str]] = {
        Entity.CATALOG: "the server has one catalog, which is configured and not created by a request"
    }

    @property
    def durability_level(self) -> str:
        """Durability of an answered request; catalogs are compared only with others of the same level."""
        return VOLATILE if self.volatile else BEHIND if self.behind else DEFAULT

    @property
    @abstractmethod
    def endpoint(self) -> Endpoint:
        """Address of requests, with the prefix that the server reports."""

    @abstractmethod
    def open_reader(self) -> CatalogReader:
        """Return a reader with its own connections."""

    @property
    @abstractmethod
    def reader(self) -> str:
        """Name and version of what `open_reader` reads with."""

    def counters(self) -> Mapping[str, int]:
        """Return the backend's counters so far: transactions, bytes of its log, ...; empty if it has none."""
        return {}

    @property
    def postgres(self) -> tuple[Postgres, str] | None:
        """PostgreSQL that it uses, and its database there; None if there is none, or it is not Tidemark's."""
        return None

    def stored(self) -> tuple[int, int, int | None]:
        """Return the number and bytes of metadata files, and the bytes of the database (None if unknown)."""
        return 0, 0, None

    def reconnect(self) -> None:
        """Forget the addresses of its servers, which were restarted."""
