"""How a DuckDB reaches the tables of an Iceberg REST catalog, to write to them or to read them."""

from __future__ import annotations

from tidemark.services.iceberg.catalog import RestCatalog
from tidemark.systems.duckdb_client import literal, release
from tidemark.systems.in_bucket import Folder

CATALOG = "iceberg"  # what SQL calls it
EXTENSIONS = ("avro", "httpfs", "iceberg")


def refuses(uri: str) -> bool:
    """Whether the installed DuckDB would ask another address: 1.4.4 makes capital letters small ones."""
    return uri != uri.lower() and not release().iceberg_keeps_case_of_endpoint


def attachments(catalog: RestCatalog, folder: Folder | None = None) -> tuple[str, ...]:
    """SQL that makes `catalog` reachable as CATALOG, for a DuckDB with EXTENSIONS loaded.

    `folder`: of a bucket, where the table's files are not on the local disk.
    """
    access, warehouse = catalog.oauth, catalog.warehouse
    secrets: tuple[str, ...] = ()
    if access is None:
        warehouse = warehouse if catalog.is_external else ""
        shown = "AUTHORIZATION_TYPE 'none'"
        if folder is not None:
            # The client has keys of its own.
            secrets, shown = (folder.secret(),), f"{shown}, ACCESS_DELEGATION_MODE 'none'"
    else:
        secrets = (
            f"CREATE SECRET tidemark (TYPE iceberg, CLIENT_ID {literal(access.client_id)}, "
            f"CLIENT_SECRET {literal(access.client_secret)}, OAUTH2_SERVER_URI {literal(access.token_uri)}, "
            f"OAUTH2_SCOPE {literal(access.scope)})",
        )
        # Files on a local disk need no credentials, and a server that has none refuses to be asked.
        shown = "SECRET tidemark, ACCESS_DELEGATION_MODE 'none'"
    return (
        *secrets,
        f"ATTACH {literal(warehouse)} AS {CATALOG} (TYPE iceberg, ENDPOINT {literal(catalog.uri)}, {shown})",
    )
