"""Catalogs over PostgreSQL, with options for its round-trip time and its transaction isolation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tidemark.services.base import Service
from tidemark.services.delay.proxy import delayed
from tidemark.services.iceberg.apart import set_apart
from tidemark.services.iceberg.backends import POOL, IcebergRestPostgres, IcebergRestTwoClients
from tidemark.services.iceberg.catalog import RestCatalog
from tidemark.services.postgres import ISOLATIONS, READ_COMMITTED, Postgres
from tidemark.systems.base import Context, Options
from tidemark.systems.catalogs.databases import Database, PostgresDatabase
from tidemark.systems.catalogs.library import LibraryCatalog
from tidemark.systems.catalogs.rest import FORKS, IN_CACHE, UNCHECKED, ReferenceServer, RestSystem

RTT_HELP = "milliseconds of a round trip to PostgreSQL, put in by a proxy; 0: no proxy, and loopback's own distance"
ISOLATION_HELP = "of transactions in PostgreSQL that name none: default_transaction_isolation of the database"
AWAY = "{} ms of a round trip to PostgreSQL are put in by a proxy"
SERIALIZED = "transactions in PostgreSQL are serializable, which their sender does not know: none is tried again for it"


@dataclass(frozen=True, slots=True)
class DistanceOptions(Options):
    """Options of a catalog over PostgreSQL."""

    database_rtt_ms: int = field(default=0, metadata={"help": RTT_HELP, "minimum": 0})


@dataclass(frozen=True, slots=True)
class IsolationOptions(DistanceOptions):
    """Options of a catalog whose transactions set no isolation level themselves."""

    isolation: str = field(default=READ_COMMITTED, metadata={"help": ISOLATION_HELP, "choices": list(ISOLATIONS)})


def remarks(options: Any) -> list[str]:
    """Return the notes that tables print for `options` of a catalog that differ from the defaults."""
    found = [AWAY.format(options.database_rtt_ms)] if options.database_rtt_ms else []
    return found + [SERIALIZED] * (getattr(options, "isolation", READ_COMMITTED) != READ_COMMITTED)


class OverPostgres(RestSystem):
    """Catalog server whose service uses its own database in PostgreSQL."""

    Options: ClassVar[type[Options]] = IsolationOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        for remark in remarks(options):
            self.say(remark)

    @classmethod
    def service_for(cls, options: Any) -> type[RestCatalog]:
        return set_apart(cls.service, options.database_rtt_ms, getattr(options, "isolation", READ_COMMITTED))

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
        for remark in remarks(options):
            self.say(remark)

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        return (*cls.needs, *((delayed(Postgres, options.database_rtt_ms),) if options.database_rtt_ms else ()))


class RestPostgres(OverPostgres, ReferenceServer):
    name = "rest-jdbc-postgres"
    title = "Reference server, PostgreSQL"
    catalog = "Iceberg's reference server over PostgreSQL"
    backend = "PostgreSQL"
    service = IcebergRestPostgres
    notes = (f"{POOL} connections from server to database", UNCHECKED, FORKS)
    durability = PostgresDatabase.durability(IN_CACHE)


class RestPostgresTwo(RestPostgres):
    name = "rest-jdbc-postgres-2"
    title = "Reference server, PostgreSQL (2 connections)"
    service = IcebergRestTwoClients
    notes = ("2 connections from server to database, the server's own default", UNCHECKED, FORKS)
