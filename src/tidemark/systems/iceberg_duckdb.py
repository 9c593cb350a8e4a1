"""Iceberg, written by DuckDB's iceberg extension through a REST catalog, to a table that PyIceberg created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from tidemark.errors import SystemFailure
from tidemark.systems import base
from tidemark.systems.base import Capability, Context, Options
from tidemark.systems.duckdb_client import DuckDBSystem, literal, release
from tidemark.systems.iceberg_table import TABLE, IcebergOptions, IcebergTable

if TYPE_CHECKING:
    import duckdb

CLIENT_SETTING = "httpfs_client_implementation"
SLOW_HTTP = "DuckDB 1.4.4's default HTTP client adds some 40 ms to a commit; http_client: curl does not"


@dataclass(frozen=True, slots=True)
class IcebergDuckDBOptions(IcebergOptions):
    http_client: str = field(
        default="default",
        metadata={
            "help": "DuckDB's HTTP client. The default one of 1.4.4 adds some 40 ms to each commit against a catalog "
            "on this machine; curl does not.",
            "choices": ("default", "curl"),
        },
    )


class IcebergDuckDB(IcebergTable, DuckDBSystem):
    name: ClassVar[str] = "iceberg-duckdb"
    title: ClassVar[str] = "Iceberg (DuckDB)"
    notes: tuple[str, ...] = (
        *IcebergTable.notes,
        SLOW_HTTP,
    )
    extensions: ClassVar[tuple[str, ...]] = ("avro", "httpfs", "iceberg")
    capabilities: frozenset[Capability] = base.TABLE | {Capability.THREADS, Capability.READ_BY_OTHERS}
    # The writer of 1.4.4 does not look at the table's property.
    compressions: ClassVar[frozenset[str]] = frozenset({"snappy"})
    Options: ClassVar[type[Options]] = IcebergDuckDBOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if not release().http_client_is_slow:
            self.withdraw(SLOW_HTTP)
        self.table = f"iceberg.{self._namespace}.{TABLE}"

    def create(self, schema: pa.Schema) -> None:
        # DuckDB does not make the folders of a table that it creates with rows, and 1.4.4's CREATE TABLE knows no
        # properties, of which the codec is one. For PyIceberg the server makes the folders.
        self._create(schema)
        self._open()

    def _attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        uri = self._rest.uri
        if uri != uri.lower() and not release().iceberg_keeps_case_of_endpoint:
            raise SystemFailure(
                f"{self.name}: the catalog's address {uri} has capital letters, which this DuckDB would change to "
                "small ones. Give the catalog an address without, or use a later DuckDB."
            )
        connection.execute(f"SET {CLIENT_SETTING} = {literal(self.options.http_client)}")
        access, warehouse = self._rest.oauth, self._rest.warehouse
        if access is None:
            warehouse = warehouse if self._rest.is_external else ""
            shown = "AUTHORIZATION_TYPE 'none'"
        else:
            connection.execute(
                f"CREATE SECRET tidemark (TYPE iceberg, CLIENT_ID {literal(access.client_id)}, "
                f"CLIENT_SECRET {literal(access.client_secret)}, OAUTH2_SERVER_URI {literal(access.token_uri)}, "
                f"OAUTH2_SCOPE {literal(access.scope)})"
            )
            # Files on a local disk need no credentials, and a server that has none refuses to be asked.
            shown = "SECRET tidemark, ACCESS_DELEGATION_MODE 'none'"
        connection.execute(f"ATTACH {literal(warehouse)} AS iceberg (TYPE iceberg, ENDPOINT {literal(uri)}, {shown})")

    def settings(self) -> Mapping[str, str]:
        found = self._writer.execute(f"SELECT value FROM duckdb_settings() WHERE name = '{CLIENT_SETTING}'").fetchall()
        return {**DuckDBSystem.settings(self), **IcebergTable.settings(self), CLIENT_SETTING: str(found[0][0])}
