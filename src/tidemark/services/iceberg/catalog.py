"""Base of catalogs with Iceberg's REST interface: an address, and a separate database for each catalog."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import psycopg

from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service
from tidemark.services.delay_proxy import DelayProxy
from tidemark.services.iceberg.client import OAuth, drop_namespace
from tidemark.services.postgres import Postgres
from tidemark.services.programs.process import give

__all__ = ["OAuth", "RestCatalog"]


class RestCatalog(Service):
    """A catalog server over a database in `postgres`, created by its first start and dropped with its data."""

    needs: ClassVar[tuple[type[Service], ...]] = (Postgres,)
    # True if tables may be placed anywhere; otherwise the catalog chooses a location below its warehouse.
    places_are_free: ClassVar[bool] = True

    def __init__(self, workspace: Workspace, directory: Path, postgres: Postgres | None) -> None:
        super().__init__(workspace, directory)
        self._postgres = postgres
        # Unique, because an external PostgreSQL may serve other users.
        self._database = f"tidemark_iceberg_{secrets.token_hex(6)}"
        self._has_database = False
        self.line: DelayProxy | None = None  # between the catalog and its database
        self.isolation: str | None = None  # default isolation level of its database; None: PostgreSQL's default

    @property
    @abstractmethod
    def uri(self) -> str:
        """Value of the client option `uri`."""

    @property
    @abstractmethod
    def warehouse(self) -> str:
        """Value of the client option `warehouse`."""

    @property
    def oauth(self) -> OAuth | None:
        """Credentials that clients need; None if the catalog requires none."""
        return None

    def place(self, folder: Path) -> Path:
        """Create the empty `folder` for a client's table; the server writes metadata there under its own account."""
        return give(private_directory(folder))

    def note_namespace(self, name: str) -> None:
        """Record the namespace `name`; call before a client creates it. It is dropped with its tables at the end."""
        self._note(name)

    def drop(self, name: str) -> None:
        drop_namespace(self.uri, self.warehouse, self.oauth, name)
        self._strike(name)

    def database_bytes(self) -> int | None:
        """Return the size of the catalog's database in bytes; None for an external catalog."""
        if self.is_external or self._postgres is None:
            return None
        return self._postgres.database_bytes(self._database)

    @property
    def database(self) -> tuple[Postgres, str] | None:
        """The PostgreSQL server and the name of the catalog's database in it; None for an external catalog."""
        return None if self.is_external or self._postgres is None else (self._postgres, self._database)

    def remove_data(self) -> None:
        super().remove_data()
        if self._has_database and self._postgres is not None:
            # If PostgreSQL is already gone, the database is deleted with its data.
            with suppress(psycopg.OperationalError):
                self._postgres.drop_database(self._database)
            self._has_database = False

    def _own_database(self) -> tuple[str, str, str]:
        """Return the JDBC address of its database, created if necessary, the user and the password."""
        assert self._postgres is not None
        if not self._has_database:
            self._postgres.create_database(self._database)
            self._has_database = True
            if self.isolation is not None:
                self._postgres.isolate(self._database, self.isolation)
        return self._postgres.jdbc(self._database, None if self.line is None else self.line.host_and_port())
