"""DuckDB's access to the tables of an Iceberg REST catalog, for writing and for reading."""

from __future__ import annotations

from tidemark.services.iceberg.catalog import RestCatalog
from tidemark.systems.duckdb_client import literal, release
from tidemark.systems.in_bucket import Folder

CATALOG = "iceberg"  # its name in SQL
EXTENSIONS = ("avro", "httpfs", "iceberg")


def refuses(uri: str) -> bool:
    """Return True if the installed DuckDB would request another address: 1.4.4 converts `uri` to lower case."""
    return uri != uri.lower() and not release().iceberg_keeps_case_of_endpoint


def attachments(catalog: RestCatalog, folder: Folder | None = None) -> tuple[str, ...]:
    """Return SQL that makes `catalog` available as CATALOG, for a DuckDB with EXTENSIONS loaded.

    `folder` holds the table's files in a bucket; None if they are on the local disk.
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
    return (
        *secrets,
        f"ATTACH {literal(warehouse)} AS {CATALOG} (TYPE iceberg, ENDPOINT {literal(catalog.uri)}, {shown})",
    )
