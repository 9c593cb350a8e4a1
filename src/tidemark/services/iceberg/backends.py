"""Variants of the reference catalog server, and of any catalog server's database.

The reference server over other backends and with its files on S3, for comparing what stores the catalog pointers and
the metadata files; all have the same connection pool and heap size. Further, catalog servers whose PostgreSQL is a
given round trip away or has another default isolation level.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

from tidemark.services.base import Service, ServiceContext
from tidemark.services.iceberg.rest import IcebergRest, RestCatalog, jdbc_backend
from tidemark.services.mariadb import MariaDB
from tidemark.services.postgres import READ_COMMITTED, Postgres
from tidemark.services.proxies import DelayProxy, delayed
from tidemark.services.seaweedfs import REGION, InBucket, SeaweedFS

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
    """Reference catalog over MariaDB; its database is deleted with MariaDB's data, which has no other user."""

    name: ClassVar[str] = "iceberg-rest-mariadb"
    title: ClassVar[str] = "Iceberg REST catalog over MariaDB"
    needs: ClassVar[tuple[type[Service], ...]] = (MariaDB,)
    address_key: ClassVar[str | None] = None
    locks: ClassVar[tuple[str, ...]] = ("iceberg-rest", "mariadb-driver")
    mariadb: MariaDB

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        made = super().from_config(around)
        made.mariadb = around.server(MariaDB)
        return made

    def _backend(self) -> dict[str, str]:
        if not self._has_database:
            self.mariadb.create_database(self._database)
            self._has_database = True
        address, user, password = self.mariadb.jdbc(self._database)
        return {**_pooled(address), "CATALOG_JDBC_USER": user, "CATALOG_JDBC_PASSWORD": password}

    def database_bytes(self) -> int | None:
        return self.mariadb.database_bytes(self._database)


class Embedded(IcebergRest):
    """Reference catalog over a database embedded in the server, stored in `data_directory`."""

    needs: ClassVar[tuple[type[Service], ...]] = ()
    address_key: ClassVar[str | None] = None

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

    def _backend(self) -> dict[str, str]:
        return _pooled(f"jdbc:h2:file:{self.data_directory / 'catalog'};DATABASE_TO_LOWER=TRUE")


class IcebergRestMemory(Embedded):
    """Reference catalog with tables and metadata files in memory only: the cost of the server itself."""

    name: ClassVar[str] = "iceberg-rest-memory"
    title: ClassVar[str] = "Iceberg REST catalog in memory"

    def _backend(self) -> dict[str, str]:
        return {"CATALOG_CATALOG__IMPL": "org.apache.iceberg.inmemory.InMemoryCatalog"}


class IcebergRestS3(InBucket, IcebergRestPostgres):
    """Reference catalog over PostgreSQL, with metadata files on S3."""

    name: ClassVar[str] = "iceberg-rest-postgres-s3"
    title: ClassVar[str] = "Iceberg REST catalog over PostgreSQL and S3"
    needs: ClassVar[tuple[type[Service], ...]] = (Postgres, SeaweedFS)
    file_io: ClassVar[str] = "org.apache.iceberg.aws.s3.S3FileIO"
    proxy: ClassVar[type[DelayProxy] | None] = None  # between the catalog and its files

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        made = super().from_config(around)
        made.store = around.server(SeaweedFS)
        if cls.proxy is not None:
            made.way = around.server(cls.proxy)
        return made

    @property
    def warehouse(self) -> str:
        return f"s3://{self.bucket.name}/warehouse"

    def _backend(self) -> dict[str, str]:
        bucket = self.bucket.by_way_of(self.way)
        return {
            **super()._backend(),
            "CATALOG_S3_ENDPOINT": bucket.endpoint,
            "CATALOG_S3_PATH__STYLE__ACCESS": "true",
            "CATALOG_S3_ACCESS__KEY__ID": bucket.access_key,
            "CATALOG_S3_SECRET__ACCESS__KEY": bucket.secret_key,
            "CATALOG_CLIENT_REGION": REGION,
        }


@cache
def at_distance(milliseconds: float) -> type[IcebergRestS3]:
    """Return the class of a catalog whose file store is a round trip of `milliseconds` away; cached."""

    class Distant(IcebergRestS3):
        name: ClassVar[str] = f"{IcebergRestS3.name}-{milliseconds:g}ms"
        title: ClassVar[str] = f"{IcebergRestS3.title}, {milliseconds:g} ms away"
        proxy: ClassVar[type[DelayProxy] | None] = delayed(SeaweedFS, milliseconds)
        needs: ClassVar[tuple[type[Service], ...]] = (*IcebergRestS3.needs, delayed(SeaweedFS, milliseconds))

    return Distant


@cache
def set_apart(kind: type[RestCatalog], rtt_ms: int, isolation: str) -> type[RestCatalog]:
    """Return `kind` with its database behind a proxy of `rtt_ms` > 0; `kind` itself if nothing differs. Cached.

    `isolation` is the level of transactions that specify none.
    """
    if not rtt_ms and isolation == READ_COMMITTED:
        return kind
    line = delayed(Postgres, rtt_ms) if rtt_ms else None

    differs = [f"{rtt_ms}ms"] * bool(rtt_ms) + [isolation] * (isolation != READ_COMMITTED)

    class Apart(kind):  # type: ignore[misc, valid-type]
        name: ClassVar[str] = "-".join([kind.name, *differs]).replace(" ", "-")
        needs: ClassVar[tuple[type[Service], ...]] = (*kind.needs, *((line,) if line else ()))

        @classmethod
        def from_config(cls, around: ServiceContext) -> Self:
            made: Self = super().from_config(around)
            made.isolation = isolation
            if line is not None:
                made.line = around.server(line)
            return made

    return Apart
