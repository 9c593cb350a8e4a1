"""Apache Polaris as a catalog server, from the path of a distribution or the address of a running server."""

from __future__ import annotations

from pathlib import Path

from tidemark.services.polaris.server import Polaris
from tidemark.systems.base import Durability
from tidemark.systems.catalogs.databases import PostgresDatabase
from tidemark.systems.catalogs.rest import IN_CACHE, RestSystem

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
        service = self.running
        assert isinstance(service, Polaris)
        return Path(service.location.removeprefix("file://"))
