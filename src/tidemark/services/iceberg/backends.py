"""The reference catalog server over other backends, for comparing what stores the catalog pointers.

All of them have the same connection pool, heap size and way of writing metadata files.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar, Self

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service, Surroundings
from tidemark.services.iceberg.rest import IcebergRest, IcebergRestSettings, jdbc_backend
from tidemark.services.mariadb import MariaDB
from tidemark.services.programs.process import give
from tidemark.services.programs.provision import provision

POOL = 16  # connections of the server to its database; the server's own default is 2


def _pooled(address: str) -> dict[str, str]:
    return {**jdbc_backend(address), "CATALOG_CLIENTS": str(POOL)}


class IcebergRestPostgres(IcebergRest):
    """Reference catalog over PostgreSQL."""

    name: ClassVar[str] = "iceberg-rest-postgres"
    title: ClassVar[str] = "Iceberg REST catalog over PostgreSQL"
    address_key: ClassVar[str | None] = None
    clients: ClassVar[int] = POOL

    def _backend(self) -> dict[str, str]:
        return {**super()._backend(), "CATALOG_CLIENTS": str(self.clients)}


class IcebergRestTwoClients(IcebergRestPostgres):
    """Reference catalog over PostgreSQL, with the server's default pool size."""

    name: ClassVar[str] = "iceberg-rest-postgres-2"
    title: ClassVar[str] = "Iceberg REST catalog over PostgreSQL, two connections"
    clients: ClassVar[int] = 2


class IcebergRestMariadb(IcebergRest):
    """Reference catalog over MariaDB."""

    name: ClassVar[str] = "iceberg-rest-mariadb"
    title: ClassVar[str] = "Iceberg REST catalog over MariaDB"
    needs: ClassVar[tuple[type[Service], ...]] = (MariaDB,)
    address_key: ClassVar[str | None] = None
    locks: ClassVar[tuple[str, ...]] = ("iceberg-rest", "mariadb-driver")
    mariadb: MariaDB

    def _check(self, settings: IcebergRestSettings) -> None:
        if settings.postgres is not None or settings.address is not None:
            raise ServiceError(f"{self.title} keeps its pointers in MariaDB; it takes no PostgreSQL and no address.")

    @classmethod
    def from_config(cls, around: Surroundings) -> Self:
        made = super().from_config(around)
        made.mariadb = around.server(MariaDB)
        return made

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        super().provide(workspace)
        provision("mariadb-driver", workspace)

    def _provision(self) -> None:
        super()._provision()
        self._beside = tuple(provision("mariadb-driver", self.workspace))

    def _backend(self) -> dict[str, str]:
        if not self._has_database:
            self.mariadb.create_database(self._database)
            self._has_database = True
        address, user, password = self.mariadb.jdbc(self._database)
        return {**_pooled(address), "CATALOG_JDBC_USER": user, "CATALOG_JDBC_PASSWORD": password}

    def database_bytes(self) -> int | None:
        return self.mariadb.database_bytes(self._database)

    def remove_data(self) -> None:
        """Its database is not dropped separately: it is deleted with MariaDB's data, which has no other user."""
        super().remove_data()
        self._has_database = False


class Embedded(IcebergRest):
    """Reference catalog over a database embedded in the server, stored in `data_directory`."""

    needs: ClassVar[tuple[type[Service], ...]] = ()
    address_key: ClassVar[str | None] = None

    def _check(self, settings: IcebergRestSettings) -> None:
        if settings.postgres is not None or settings.address is not None:
            raise ServiceError(f"{self.title} keeps its pointers itself; it takes no PostgreSQL and no address.")

    def _prepare(self) -> None:
        super()._prepare()
        give(private_directory(self.data_directory))

    def remove_data(self) -> None:
        super().remove_data()
        shutil.rmtree(self._warehouse_folder, ignore_errors=True)

    def database_bytes(self) -> int | None:
        return sum(path.stat().st_size for path in self.data_directory.rglob("*") if path.is_file())


class IcebergRestSqlite(Embedded):
    """Reference catalog over SQLite with the driver's defaults: a rollback journal."""

    name: ClassVar[str] = "iceberg-rest-sqlite"
    title: ClassVar[str] = "Iceberg REST catalog over SQLite"
    parameters: ClassVar[str] = ""

    @property
    def database_path(self) -> Path:
        return self.data_directory / "catalog.sqlite"

    def _backend(self) -> dict[str, str]:
        return _pooled(f"jdbc:sqlite:{self.database_path}{self.parameters}")


class IcebergRestSqliteWal(IcebergRestSqlite):
    """Reference catalog over SQLite with a write-ahead log."""

    name: ClassVar[str] = "iceberg-rest-sqlite-wal"
    title: ClassVar[str] = "Iceberg REST catalog over SQLite (WAL)"
    parameters: ClassVar[str] = "?journal_mode=WAL"


class IcebergRestH2(Embedded):
    """Reference catalog over H2 in a file, with H2's defaults except for the case of names.

    With upper-case names, H2's default, the server does not find its table again and cannot be started a second time.
    """

    name: ClassVar[str] = "iceberg-rest-h2"
    title: ClassVar[str] = "Iceberg REST catalog over H2"
    locks: ClassVar[tuple[str, ...]] = ("h2", "iceberg-rest")

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        super().provide(workspace)
        provision("h2", workspace)

    def _provision(self) -> None:
        super()._provision()
        self._beside = tuple(provision("h2", self.workspace))

    def _backend(self) -> dict[str, str]:
        return _pooled(f"jdbc:h2:file:{self.data_directory / 'catalog'};DATABASE_TO_LOWER=TRUE")


class IcebergRestMemory(Embedded):
    """Reference catalog with tables and metadata files in memory only: the cost of the server itself."""

    name: ClassVar[str] = "iceberg-rest-memory"
    title: ClassVar[str] = "Iceberg REST catalog in memory"

    def _backend(self) -> dict[str, str]:
        return {"CATALOG_CATALOG__IMPL": "org.apache.iceberg.inmemory.InMemoryCatalog"}
