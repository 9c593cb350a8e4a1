"""The catalogs that an Iceberg table's commits can go through, and what the tables of results say of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemark.services.iceberg_rest import IcebergRest
from tidemark.services.polaris import Polaris
from tidemark.services.rest_catalog import RestCatalog
from tidemark.systems.base import USERS_OWN, Durability

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
NOT_THE_THESIS = "the catalog is a server of the user's own, the thesis's was Apache Polaris, started for it"


def as_it_is(choice: Catalog, server: RestCatalog) -> Catalog:
    """`choice` with what must be said otherwise where `server`, or what it keeps its tables in, is not ours."""
    if server.is_external:
        label = f"{choice.label}, {USERS_OWN}" if choice is POLARIS else f"Iceberg REST, {USERS_OWN}"
        unknown = Durability(
            "Not known: the catalog is a server of the user's own. The clients leave data, manifests and table "
            "metadata to the page cache.",
            "strace of the clients with the reference server; the user's server was not traced",
        )
        return replace(choice, label=label, durability=unknown, notes=(NOT_THE_THESIS,))
    if server.database_is_external:
        unknown = Durability(
            "Not known: the catalog's commit goes to a PostgreSQL of the user's own, whose settings are in the run; "
            "data, manifests and table metadata are left to the page cache.",
            "strace of the clients and the catalog server; the user's PostgreSQL was not traced",
        )
        return replace(choice, durability=unknown)
    return choice
