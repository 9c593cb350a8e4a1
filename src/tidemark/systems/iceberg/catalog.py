"""Catalogs that an Iceberg table's commits can go through, their description, and DuckDB's access to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tidemark.services.iceberg.backends import POOL, IcebergRestS3, at_distance
from tidemark.services.iceberg.rest import IcebergRest, IcebergRestNio, RestCatalog
from tidemark.services.nessie import NessieTables
from tidemark.services.polaris import Polaris
from tidemark.services.postgres import Postgres
from tidemark.systems.base import NONE_PER_WRITE, USERS_OWN, Durability, PerWrite
from tidemark.systems.duckdb_client import DUCKDB, literal
from tidemark.systems.object_store import NOTE, S3, Folder, promise
from tidemark.systems.postgres_catalog import POSTGRES_COMMIT

FLUSHED = Durability(
    "PostgreSQL flushes the catalog's commit to its log before it is acknowledged; data, manifests and table "
    "metadata are left to the page cache.",
    server_syncs_per_write={Postgres: POSTGRES_COMMIT},
)
NOT_OURS = Durability(
    "The catalog is not one that Tidemark started: what it flushes is not known. Data and manifests are left to the "
    "page cache.",
    counted=None,
    remark="strace of the clients with the reference server; this catalog was not traced",
)
THESIS_HAD_POLARIS = "the catalog is Iceberg's reference server, the thesis's was Apache Polaris"
# Hadoop's local file system sets a file's permissions this way if its native library is missing.
STARTS_CHMOD = "the catalog server starts 2 processes (chmod) a commit, by Hadoop's local file system"


@dataclass(frozen=True, slots=True)
class Catalog:
    """One choice of `catalog`: its server, its label in tables, its durability and its notes."""

    server: type[RestCatalog]
    label: str
    durability: Durability
    notes: tuple[str, ...] = ()
    programs_per_commit: PerWrite = NONE_PER_WRITE  # that the server starts


REFERENCE = Catalog(
    IcebergRest, "Iceberg REST, reference server", FLUSHED, (THESIS_HAD_POLARIS, STARTS_CHMOD), PerWrite(2, 2)
)
POLARIS = Catalog(
    Polaris,
    "Iceberg REST, Apache Polaris",
    replace(FLUSHED, counted="strace of a server built from the sources of Polaris 1.3.0"),
    (STARTS_CHMOD,),
    PerWrite(2, 2),
)
LAST_SNAPSHOT = (
    "Nessie shows a table's last snapshot alone: a token in a snapshot's summary is found only until the next commit"
)
NESSIE = replace(
    REFERENCE,
    server=NessieTables,
    label="Iceberg REST, Nessie over PostgreSQL",
    durability=promise("PostgreSQL flushes the catalog's commits to its log before they are acknowledged."),
    notes=("the catalog is Nessie, the thesis's was Apache Polaris", NOTE, LAST_SNAPSHOT),
    programs_per_commit=NONE_PER_WRITE,
)
IN_S3 = "nessie"  # catalog whose tables are in an S3 server alone
CATALOGS = {"reference": REFERENCE, "polaris": POLARIS, IN_S3: NESSIE}

HADOOP, NIO = "hadoop", "nio"
REFERENCE_NIO = replace(
    REFERENCE,
    server=IcebergRestNio,
    label=f"{REFERENCE.label} (java.nio)",
    notes=(THESIS_HAD_POLARIS, "the catalog server writes its files by Tidemark's FileIO, without Hadoop"),
    programs_per_commit=NONE_PER_WRITE,
)


REFERENCE_S3 = replace(
    REFERENCE,
    server=IcebergRestS3,
    durability=promise("PostgreSQL flushes the catalog's commit to its log before it is acknowledged."),
    notes=(THESIS_HAD_POLARIS, NOTE, f"the catalog server has {POOL} connections to its database, not its own 2"),
    programs_per_commit=NONE_PER_WRITE,
)


def chosen_catalog(options: Any) -> Catalog:
    """Return the catalog that the options of a table choose."""
    if options.catalog == IN_S3:
        return NESSIE
    if options.storage == S3:
        return REFERENCE_S3 if options.rtt_ms is None else replace(REFERENCE_S3, server=at_distance(options.rtt_ms))
    return REFERENCE_NIO if (options.catalog, options.file_io) == ("reference", NIO) else CATALOGS[options.catalog]


NOT_THE_THESIS = "the catalog is a server of the user's own, the thesis's was Apache Polaris, started for it"


def as_it_is(choice: Catalog, server: RestCatalog) -> Catalog:
    """Return `choice`, relabelled if `server` is not Tidemark's: then nothing is known of it but that it answers."""
    if not server.is_external:
        return choice
    label = f"{choice.label}, {USERS_OWN}" if choice is POLARIS else f"Iceberg REST, {USERS_OWN}"
    return replace(choice, label=label, durability=NOT_OURS, notes=(NOT_THE_THESIS,))


SQL_CATALOG = "iceberg"  # its name in SQL
EXTENSIONS = ("avro", "httpfs", "iceberg")


def refuses(uri: str) -> bool:
    """Return True if the installed DuckDB would request another address: 1.4.4 converts `uri` to lower case."""
    return uri != uri.lower() and not DUCKDB.release().iceberg_keeps_case_of_endpoint


def attachments(catalog: RestCatalog, folder: Folder | None = None, one_table: bool = False) -> tuple[str, ...]:
    """Return SQL that makes `catalog` available as CATALOG, for a DuckDB with EXTENSIONS loaded.

    `folder` holds the table's files in a bucket; None if they are on the local disk. `one_table`: commits go to the
    endpoint of one table.
    """
    access, warehouse = catalog.oauth, catalog.warehouse
    secrets: tuple[str, ...] = ()
    if access is None:
        warehouse = warehouse if catalog.is_external else ""
        shown = "AUTHORIZATION_TYPE 'none'"
        if folder is not None:
            # The client has its own keys.
            secrets, shown = (folder.secret(),), f"{shown}, ACCESS_DELEGATION_MODE 'none'"
    else:
        secrets = (
            f"CREATE SECRET tidemark (TYPE iceberg, CLIENT_ID {literal(access.client_id)}, "
            f"CLIENT_SECRET {literal(access.client_secret)}, OAUTH2_SERVER_URI {literal(access.token_uri)}, "
            f"OAUTH2_SCOPE {literal(access.scope)})",
        )
        # Files on a local disk need no credentials, and a server without any refuses a request for them.
        shown = "SECRET tidemark, ACCESS_DELEGATION_MODE 'none'"
    if one_table:
        shown += ", DISABLE_MULTI_TABLE_COMMIT true"
    return (
        *secrets,
        f"ATTACH {literal(warehouse)} AS {SQL_CATALOG} (TYPE iceberg, ENDPOINT {literal(catalog.uri)}, {shown})",
    )
