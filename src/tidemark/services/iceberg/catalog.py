"""What the catalogs that speak Iceberg's REST interface have in common: an address, and a database of their own."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import psycopg

from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service
from tidemark.services.delay.proxy import DelayProxy
from tidemark.services.iceberg.client import OAuth, drop_namespace
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import give

__all__ = ["OAuth", "RestCatalog"]


class RestCatalog(Service):
    """A catalog server over a database in `postgres`, made with its first start and dropped with its data."""

    needs: ClassVar[tuple[type[Service], ...]] = (Postgres,)
    # Whether a table may be put anywhere; otherwise the catalog chooses a place below its warehouse.
    places_are_free: ClassVar[bool] = True

    def __init__(self, workspace: Workspace, directory: Path, postgres: Postgres | None) -> None:
        super().__init__(workspace, directory)
        self._postgres = postgres
        # Unique, because the PostgreSQL may be one that serves others as well.
        self._database = f"tidemark_iceberg_{secrets.token_hex(6)}"
        self._has_database = False
        self.line: DelayProxy | None = None  # between it and its database
        self.isolation: str | None = None  # of transactions there; None: as PostgreSQL has it

    @property
    @abstractmethod
    def uri(self) -> str:
        """What clients take as the catalog's `uri`."""

    @property
    @abstractmethod
    def warehouse(self) -> str:
        """What clients take as its `warehouse`."""

    @property
    def oauth(self) -> OAuth | None:
        """What clients must show; None where the catalog asks for nothing."""
        return None

    def place(self, folder: Path) -> Path:
        """Make `folder`, empty, for the table of a client: the server writes metadata there, as its own account."""
        return give(private_directory(folder))

    def note_namespace(self, name: str) -> None:
        """To be called before a client makes the namespace `name`: it is dropped with its tables in the end."""
        self._note(name)

    def drop(self, name: str) -> None:
        drop_namespace(self.uri, self.warehouse, self.oauth, name)
        self._strike(name)

    def database_bytes(self) -> int | None:
        """The size of the database that ours keeps all its tables in; None for somebody else's catalog."""
        if self.is_external or self._postgres is None:
            return None
        return self._postgres.database_bytes(self._database)

    @property
    def database(self) -> tuple[Postgres, str] | None:
        """The PostgreSQL of ours, and the database that it keeps its tables in; None for somebody else's catalog."""
        return None if self.is_external or self._postgres is None else (self._postgres, self._database)

    def remove_data(self) -> None:
        super().remove_data()
        if self._has_database and self._postgres is not None:
            # Where the PostgreSQL has gone already, its data goes with it.
            with suppress(psycopg.OperationalError):
                self._postgres.drop_database(self._database)
            self._has_database = False

    def _own_database(self) -> tuple[str, str, str]:
        """The JDBC address of its database, made if need be, the user and the password."""
        assert self._postgres is not None
        if not self._has_database:
            self._postgres.create_database(self._database)
            self._has_database = True
            if self.isolation is not None:
                self._postgres.isolate(self._database, self.isolation)
        return self._postgres.jdbc(self._database, None if self.line is None else self.line.host_and_port())
