"""Catalogs without a server: a library in each client's process accesses a database that all clients share.

A user is a process with a session. Sessions accept the requests of a REST server and answer with the same status codes,
so that outcomes are classified in one way.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

from tidemark.services.postgres import Postgres
from tidemark.systems.base import Context, take
from tidemark.systems.catalogs.base import CatalogSystem, Endpoint, Names
from tidemark.systems.catalogs.databases import Database

DONE, NOT_THERE, CONFLICT, LOCKED, FAILED = 200, 404, 409, 423, 500
PROCESSES = "each user is a process with its own client: no catalog server stands between it and the database"


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of new entities: the columns of tables (32-bit integers), and the properties of all entities."""

    columns: tuple[str, ...] = ("id",)
    properties: Mapping[str, str] = field(default_factory=dict)


class Session(ABC):
    """Client of one user."""

    said: str = ""  # message of the last error
    listed: Sequence[str] = ()  # names that the last request returned, if it was a listing

    @abstractmethod
    def perform(self, kind: str, path: Names, name: str, key: str) -> int:
        """Execute one request, given by the name of its kind; return the status that a server would answer with.

        An append is attempted once: CONFLICT if another one came first.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections and files."""


class LibraryCatalog(CatalogSystem):
    """Catalog that clients access directly, each with a session in its own process."""

    server: ClassVar[str] = "none"
    keeps_in: ClassVar[type[Database]]
    modules: ClassVar[tuple[str, ...]]  # modules that a user's client needs

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.database = self.keeps_in(context)

    @property
    def endpoint(self) -> Endpoint:
        """Empty address: no requests are sent."""
        return Endpoint("")

    def given(self) -> Mapping[str, str]:
        """Create the catalog if necessary; return what `load` and `open_session` need elsewhere, without secrets."""
        found = {
            "address": self.database.address(),
            "directory": str(self.context.directory),
            "packages": os.pathsep.join(str(self.context.tools[tool]) for tool in self.tools),
        }
        self.load(found)
        self.open_session(found, Contents()).close()  # creates the catalog's own tables
        return found

    @classmethod
    def load(cls, given: Mapping[str, str]) -> None:
        """Import the clients' modules: once, before the users' processes fork."""
        take(filter(None, given["packages"].split(os.pathsep)))
        for name in cls.modules:
            import_module(name)

    @classmethod
    @abstractmethod
    def open_session(cls, given: Mapping[str, str], contents: Contents) -> Session:
        """Return a user's client; `load` must have been called."""

    @property
    def postgres(self) -> tuple[Postgres, str] | None:
        return self.database.postgres

    def counters(self) -> Mapping[str, int]:
        return self.database.counters()

    def settings(self) -> Mapping[str, str]:
        return self.database.settings()

    def close(self) -> None:
        self.database.close()
