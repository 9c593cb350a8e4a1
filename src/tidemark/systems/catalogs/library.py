"""Catalogs without a server: a library in each client's own process works on a database that all of them share.

A user is a process with a session. What a session is asked for is what a REST server would be, and its answers are the
statuses that one would give, so that outcomes are told apart in one way.
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
from tidemark.systems.catalogs.databases import Database
from tidemark.systems.catalogs.kind import CatalogSystem, Endpoint, Names

DONE, NOT_THERE, CONFLICT, LOCKED, FAILED = 200, 404, 409, 423, 500
PROCESSES = "each user is a process with a client of its own: no catalog server stands between it and the database"


@dataclass(frozen=True, slots=True)
class Contents:
    """What entities are created with: the columns of tables, of 32-bit integers, and the properties of all."""

    columns: tuple[str, ...] = ("id",)
    properties: Mapping[str, str] = field(default_factory=dict)


class Session(ABC):
    """One user's own client."""

    said: str = ""  # the last error in words
    listed: Sequence[str] = ()  # names that the last request showed, where it was a listing

    @abstractmethod
    def perform(self, kind: str, path: Names, name: str, key: str) -> int:
        """Do one request, by the name of its kind; the status that a server would answer with.

        An append is one attempt: CONFLICT where another one was quicker.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of connections and files."""


class LibraryCatalog(CatalogSystem):
    """A catalog that clients work on by themselves, each with a session in a process of its own."""

    server: ClassVar[str] = "none"
    keeps_in: ClassVar[type[Database]]
    modules: ClassVar[tuple[str, ...]]  # that a user's client is made of

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.database = self.keeps_in(context)

    @property
    def endpoint(self) -> Endpoint:
        """Nowhere: nothing is sent."""
        return Endpoint("")

    def given(self) -> Mapping[str, str]:
        """Make the catalog, unless it is there; what `load` and `open_session` need elsewhere, without secrets."""
        found = {
            "address": self.database.address(),
            "directory": str(self.context.directory),
            "packages": os.pathsep.join(str(self.context.tools[tool]) for tool in self.tools),
        }
        self.load(found)
        self.open_session(found, Contents()).close()  # makes the catalog's own tables
        return found

    @classmethod
    def load(cls, given: Mapping[str, str]) -> None:
        """Import what clients are made of: once, before users part."""
        take(filter(None, given["packages"].split(os.pathsep)))
        for name in cls.modules:
            import_module(name)

    @classmethod
    @abstractmethod
    def open_session(cls, given: Mapping[str, str], contents: Contents) -> Session:
        """A user's client, after `load`."""

    @property
    def postgres(self) -> tuple[Postgres, str] | None:
        return self.database.postgres

    def counters(self) -> Mapping[str, int]:
        return self.database.counters()

    def settings(self) -> Mapping[str, str]:
        return self.database.settings()

    def close(self) -> None:
        self.database.close()
