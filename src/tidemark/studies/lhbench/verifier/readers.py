"""Readers of tables without Spark, one per format: each makes a relation that DuckDB can read.

DuckDB is also the second engine that runs queries on the tables; `WAYS` are those in which it reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tidemark.errors import MachineError

if TYPE_CHECKING:
    import duckdb

PARQUET, DELTA, ICEBERG, HUDI = "parquet", "delta", "iceberg", "hudi"
ICEBERG_SCAN, DUCKLAKE = "iceberg_scan", "ducklake"
# Additional readers of a format: their findings are reported, but do not affect the verdict.
BESIDE = {ICEBERG: (ICEBERG_SCAN,)}
EXTENSIONS = {DELTA: ("delta",), ICEBERG_SCAN: ("avro", "httpfs", "iceberg"), DUCKLAKE: ("ducklake",)}  # for DuckDB
LAKE = "lake"  # name under which a DuckLake is attached
HINT = "version-hint.text"
OWN_OF_HUDI = "_hoodie_"  # prefix of columns that Hudi adds
# The first engine writes no DuckLake tables: DuckDB loads its own from the same files, in the case without a format.
WAYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {PARQUET: (PARQUET, DUCKLAKE), DELTA: (DELTA,), ICEBERG: (ICEBERG_SCAN,)}
)
NO_WAY = {HUDI: "DuckDB has no reader of Hudi's tables"}
CALLED = {PARQUET: "read_parquet", DELTA: "delta_scan", ICEBERG_SCAN: "iceberg_scan", DUCKLAKE: "DuckLake"}
NOT_ASKED = "these runs had no second engine"


def relation(connection: duckdb.DuckDBPyConnection, name: str, reader: str, location: Path) -> str:
    """Register the table at `location` as `name`, read by `reader`; return the expression for the FROM clause.

    `connection` must have the reader's extensions loaded and, for DuckLake, the lake with the table attached.
    """
    if reader == PARQUET:
        return f"read_parquet('{location}/**/*.parquet', hive_partitioning = true)"
    if reader == DELTA:
        return f"delta_scan('{location.as_uri()}')"
    if reader == ICEBERG_SCAN:
        return f"iceberg_scan('{newest_metadata(location)}')"
    if reader == DUCKLAKE:
        return f"{LAKE}.{location.name}"
    connection.register(name, _iceberg(location) if reader == ICEBERG else _hudi(location))
    return name


def versions(reader: str) -> dict[str, str]:
    """Return the libraries that read tables of a format, with the versions that they report."""
    names = {ICEBERG: {"PyIceberg": "pyiceberg"}, HUDI: {"hudi-rs": "hudi"}}.get(reader, {})
    metadata: Any = import_module("importlib.metadata")
    return {title: str(metadata.version(package)) for title, package in {"DuckDB": "duckdb", **names}.items()}


def newest_metadata(location: Path) -> Path:
    """Return the newest metadata file of an Iceberg table in a file catalog; MachineError without a valid hint."""
    folder = location / "metadata"
    try:
        return folder / f"v{int((folder / HINT).read_text())}.metadata.json"
    except (OSError, ValueError) as error:
        raise MachineError(f"{folder / HINT}: {error}; wanted: the number of the newest metadata file") from error


def _iceberg(location: Path) -> Any:
    table: Any = import_module("pyiceberg.table").StaticTable
    return table.from_metadata(str(newest_metadata(location))).scan().to_arrow()


def _hudi(location: Path) -> Any:
    arrow: Any = import_module("pyarrow")
    whole = arrow.Table.from_batches(import_module("hudi").HudiTable(str(location)).read())
    return whole.drop_columns([name for name in whole.column_names if name.startswith(OWN_OF_HUDI)])
