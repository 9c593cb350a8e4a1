"""The catalogs that an Iceberg table's commits can go through, and what the tables of results say of each."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.services.iceberg_rest import IcebergRest
from tidemark.services.polaris import Polaris
from tidemark.services.rest_catalog import RestCatalog
from tidemark.systems.base import Durability

FLUSHED = (
    "PostgreSQL flushes the catalog's commit to its log before it is acknowledged; data, manifests and table "
    "metadata are left to the page cache."
)


@dataclass(frozen=True, slots=True)
class Catalog:
    """One choice of `catalog`: its server, its name in tables, what must be said of it."""

    server: type[RestCatalog]
    label: str
    durability: Durability
    notes: tuple[str, ...] = ()


REFERENCE = Catalog(
    IcebergRest,
    "Iceberg REST, reference server",
    Durability(
        FLUSHED,
        "strace: no fsync by the client or the catalog server, one fdatasync of the log by PostgreSQL, per write",
    ),
    ("the catalog is Iceberg's reference server, the thesis's was Apache Polaris",),
)
POLARIS = Catalog(
    Polaris,
    "Iceberg REST, Apache Polaris",
    Durability(
        FLUSHED,
        "strace of the clients with the reference server, and PostgreSQL's documents; Polaris was not traced",
    ),
)
CATALOGS = {"reference": REFERENCE, "polaris": POLARIS}
