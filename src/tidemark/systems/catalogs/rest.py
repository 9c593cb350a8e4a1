"""Catalog servers with Iceberg's REST protocol: the reference server over each backend that it runs on, and Polaris."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import urlencode, urlsplit

from tidemark.services.base import Service, files_below
from tidemark.services.http import fetch
from tidemark.services.iceberg import backends
from tidemark.services.iceberg.rest import RestCatalog, token
from tidemark.services.mariadb import MariaDB
from tidemark.services.polaris import Polaris
from tidemark.services.postgres import ISOLATIONS, READ_COMMITTED, Postgres
from tidemark.services.proxies import delayed
from tidemark.services.seaweedfs import InBucket
from tidemark.systems.base import Context, Durability, Options, PerWrite, option
from tidemark.systems.catalogs.base import CatalogReader, CatalogSystem, Endpoint
from tidemark.systems.catalogs.databases import COUNTED, Database, PostgresDatabase, postgres_counters, sqlite_settings
from tidemark.systems.catalogs.library import LibraryCatalog
from tidemark.systems.catalogs.reading import PyIcebergReader
from tidemark.systems.iceberg.client import reader_name

TIMEOUT_S = 10
CHMOD = PerWrite(2, 2)  # programs that Hadoop's file output starts per metadata file
MARIADB_COMMIT = PerWrite(1, 1.4)  # more than one if it writes its own pages in the meantime
IN_CACHE = "metadata files stay in the page cache"
UNCHECKED = "creates a table in a namespace that is not there, and answers with success"
FORKS = (
    "Hadoop's way of writing a file starts /usr/bin/chmod twice for each metadata file: part of every creation and "
    "update of a table or a view on local files, whatever the backend"
)


class RestSystem(CatalogSystem):
    """Server that implements the REST protocol; a subclass names the service that runs it over a backend."""

    format = "Iceberg"
    client = "HTTP"
    service: ClassVar[type[RestCatalog]]
    packages: ClassVar[Mapping[str, str]] = {"PyIceberg": "pyiceberg"}
    libraries = ("pyiceberg", "pyiceberg_core", "pydantic", "pydantic_core")
    # Programs that the server starts per metadata file; None: it starts none.
    starts: ClassVar[PerWrite | None] = None

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "service" in cls.__dict__:
            cls.needs = (cls.service,)
            cls.programs_per_write = {} if cls.starts is None else {cls.service: cls.starts}

    @classmethod
    def service_for(cls, options: Any) -> type[RestCatalog]:
        """Return the service that runs it with `options`."""
        del options
        return cls.service

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        return (cls.service_for(options),)

    @property
    def running(self) -> RestCatalog:
        return self.context.server(self.service_for(self.options))

    @cached_property
    def endpoint(self) -> Endpoint:
        server = self.running
        headers = {} if server.oauth is None else {"Authorization": f"Bearer {token(server.oauth)}"}
        uri = urlsplit(server.uri)
        base, path = f"{uri.scheme}://{uri.netloc}", uri.path
        config = f"{base}{path}/v1/config?{urlencode({'warehouse': server.warehouse})}"
        said: dict[str, Any] = json.loads(fetch(urllib.request.Request(config, headers=headers), TIMEOUT_S))
        prefix = {**said.get("defaults", {}), **said.get("overrides", {})}.get("prefix")
        return Endpoint(base, f"{path}/v1/{prefix}" if prefix else f"{path}/v1", headers=headers)

    def reconnect(self) -> None:
        self.__dict__.pop("endpoint", None)

    def open_reader(self) -> CatalogReader:
        server = self.running
        return PyIcebergReader(self.endpoint, server.uri, server.warehouse, server.oauth)

    @property
    def reader(self) -> str:
        return f"{reader_name()}; views over plain HTTP, which PyIceberg cannot load"

    @property
    def postgres(self) -> tuple[Postgres, str] | None:
        return self.running.database

    def counters(self) -> Mapping[str, int]:
        """Return PostgreSQL's write transactions and WAL bytes, both exact at any moment; empty for other databases."""
        return {} if self.postgres is None else postgres_counters(*self.postgres)

    @property
    def warehouse(self) -> Path:
        """Folder of the metadata files."""
        return Path(self.running.warehouse)

    def stored(self) -> tuple[int, int, int | None]:
        sizes = []
        for path in files_below(self.warehouse):
            with suppress(OSError):
                sizes.append(path.stat().st_size)
        return len(sizes), sum(sizes), self.running.database_bytes()

    def settings(self) -> Mapping[str, str]:
        """Return the settings that determine how durable a commit is, as the running database reports them."""
        if self.postgres is None:
            return {}
        postgres, name = self.postgres
        return postgres.durability_settings(name)


class ReferenceServer(RestSystem):
    """Iceberg's reference server, which the REST protocol is tested with."""

    server = "Iceberg reference server"
    checks_parents = False  # JdbcCatalog does not check
    notes: tuple[str, ...] = (f"{backends.POOL} connections from server to database", UNCHECKED, FORKS)
    starts: ClassVar[PerWrite | None] = CHMOD


class RestMariadb(ReferenceServer):
    name = "rest-jdbc-mariadb"
    title = "Reference server, MariaDB"
    catalog = "Iceberg's reference server over MariaDB"
    backend = "MariaDB"
    service = backends.IcebergRestMariadb
    durability = Durability(
        f"MariaDB flushes InnoDB's log at each commit (innodb_flush_log_at_trx_commit); {IN_CACHE}",
        server_syncs_per_write={MariaDB: MARIADB_COMMIT}, counted=COUNTED,
        remark="innodb_flush_log_at_trx_commit, log_bin and sync_binlog read from the running server",
    )  # fmt: skip

    def counters(self) -> Mapping[str, int]:
        return cast(backends.IcebergRestMariadb, self.running).mariadb.counters()

    def settings(self) -> Mapping[str, str]:
        return cast(backends.IcebergRestMariadb, self.running).mariadb.durability_settings()


class RestSqlite(ReferenceServer):
    name = "rest-jdbc-sqlite"
    title = "Reference server, SQLite"
    catalog = "Iceberg's reference server over SQLite"
    backend = "SQLite"
    service: ClassVar[type[RestCatalog]] = backends.IcebergRestSqlite
    durability = Durability(
        f"SQLite flushes its rollback journal and its file at each commit; {IN_CACHE}",
        server_syncs_per_write={backends.IcebergRestSqlite: PerWrite(4, 4)}, counted=COUNTED,
        remark="journal_mode read from the file; synchronous is the driver's own, which cannot be read from outside",
    )  # fmt: skip

    def settings(self) -> Mapping[str, str]:
        return sqlite_settings(cast(backends.IcebergRestSqlite, self.running).database_path)


class RestSqliteWal(RestSqlite):
    name = "rest-jdbc-sqlite-wal"
    title = "Reference server, SQLite (WAL)"
    backend = "SQLite (WAL)"
    service = backends.IcebergRestSqliteWal
    durability = Durability(
        f"SQLite flushes its write-ahead log at each commit, as the driver has it; {IN_CACHE}",
        server_syncs_per_write={backends.IcebergRestSqliteWal: PerWrite(1, 1.2)}, counted=COUNTED,
        remark="journal_mode read from the file; synchronous is the driver's own, which cannot be read from outside",
    )  # fmt: skip


class RestH2(ReferenceServer):
    name = "rest-jdbc-h2"
    title = "Reference server, H2"
    catalog = "Iceberg's reference server over H2"
    backend = "H2"
    behind = True
    service = backends.IcebergRestH2
    durability = Durability(
        f"H2 writes behind and flushes nothing: a commit may be lost after it was answered; {IN_CACHE}",
        counted=COUNTED,
        remark="embedded in the server: its settings cannot be asked from outside",
    )  # fmt: skip


class RestMemory(ReferenceServer):
    name = "rest-memory"
    title = "Reference server, in memory"
    catalog = "Iceberg's reference server, in its memory"
    backend = "memory"
    volatile = True
    writes_files = False
    checks_parents = True
    starts = None
    service = backends.IcebergRestMemory
    notes = ("keeps nothing on disk, not even metadata files: the cost of the server itself",)
    durability = Durability("nothing outlives the server", counted=COUNTED, remark="no file is written")


RTT_HELP = "milliseconds of a round trip to PostgreSQL, put in by a proxy; 0: no proxy, and loopback's own distance"
ISOLATION_HELP = "of transactions in PostgreSQL that name none: default_transaction_isolation of the database"
AWAY = "{} ms of a round trip to PostgreSQL are put in by a proxy"
SERIALIZED = "transactions in PostgreSQL are serializable, which their sender does not know: none is tried again for it"


@dataclass(frozen=True, slots=True)
class DistanceOptions(Options):
    """Options of a catalog over PostgreSQL."""

    database_rtt_ms: int = option(0, RTT_HELP, minimum=0)


@dataclass(frozen=True, slots=True)
class IsolationOptions(DistanceOptions):
    """Options of a catalog whose transactions set no isolation level themselves."""

    isolation: str = option(READ_COMMITTED, ISOLATION_HELP, choices=list(ISOLATIONS))


def remarks(options: Any) -> list[str]:
    """Return the notes that tables print for `options` of a catalog that differ from the defaults."""
    found = [AWAY.format(options.database_rtt_ms)] if options.database_rtt_ms else []
    return found + [SERIALIZED] * (getattr(options, "isolation", READ_COMMITTED) != READ_COMMITTED)


class OverPostgres(RestSystem):
    """Catalog server whose service uses its own database in PostgreSQL."""

    Options: ClassVar[type[Options]] = IsolationOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.notes = (*self.notes, *remarks(options))

    @classmethod
    def service_for(cls, options: Any) -> type[RestCatalog]:
        return backends.set_apart(cls.service, options.database_rtt_ms, getattr(options, "isolation", READ_COMMITTED))

    def settings(self) -> Mapping[str, str]:
        found = super().settings()
        if self.postgres is None or not hasattr(self.options, "isolation"):
            return found
        postgres, name = self.postgres
        return {**found, "default_transaction_isolation": postgres.isolation(name)}


class InPostgres(LibraryCatalog):
    """Catalog whose clients directly access a database in PostgreSQL."""

    Options: ClassVar[type[Options]] = DistanceOptions
    keeps_in: ClassVar[type[Database]] = PostgresDatabase
    needs: ClassVar[tuple[type[Service], ...]] = PostgresDatabase.needs

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.database.isolation = getattr(options, "isolation", None)
        self.notes = (*self.notes, *remarks(options))

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        return (*cls.needs, *((delayed(Postgres, options.database_rtt_ms),) if options.database_rtt_ms else ()))


class RestPostgres(OverPostgres, ReferenceServer):
    name = "rest-jdbc-postgres"
    title = "Reference server, PostgreSQL"
    catalog = "Iceberg's reference server over PostgreSQL"
    backend = "PostgreSQL"
    service = backends.IcebergRestPostgres
    durability = PostgresDatabase.durability(IN_CACHE)


class RestPostgresTwo(RestPostgres):
    name = "rest-jdbc-postgres-2"
    title = "Reference server, PostgreSQL (2 connections)"
    service = backends.IcebergRestTwoClients
    notes = ("2 connections from server to database, the server's own default", UNCHECKED, FORKS)


UNFLUSHED = "SeaweedFS answers before a metadata file is on the disk"
ON_S3 = "metadata files go to an S3 server (SeaweedFS) on loopback and not to local files: no chmod is started for them"


class OnS3(RestSystem):
    """Catalog server whose service has a bucket."""

    def stored(self) -> tuple[int, int, int | None]:
        return *cast(InBucket, self.running).bucket.stored(), self.running.database_bytes()


class RestPostgresS3(OnS3, OverPostgres, ReferenceServer):
    name = "rest-jdbc-postgres-s3"
    title = "Reference server, PostgreSQL (S3)"
    catalog = "Iceberg's reference server over PostgreSQL, its files in an S3 server"
    backend = "PostgreSQL"
    service = backends.IcebergRestS3
    starts: ClassVar[PerWrite | None] = None
    notes = (f"{backends.POOL} connections from server to database", UNCHECKED, ON_S3)
    durability = PostgresDatabase.durability(UNFLUSHED)


AUTHORISES = (
    "authorises each request and looks for locations that overlap, which the reference server does not: no ranking of "
    "one against the other"
)


class PolarisCatalog(RestSystem):
    name = "polaris"
    title = "Apache Polaris"
    catalog = "Apache Polaris over PostgreSQL"
    server = "Apache Polaris"
    backend = "PostgreSQL"
    service = Polaris
    notes = (AUTHORISES, "the creation of catalogs, which it can, is not part of the study yet")
    durability = Durability(
        f"{PostgresDatabase.flushes}; {IN_CACHE}", counted=None,
        remark=f"{PostgresDatabase.asked}, where it was started here",
    )  # fmt: skip

    @property
    def warehouse(self) -> Path:
        return Path(cast(Polaris, self.running).location.removeprefix("file://"))
