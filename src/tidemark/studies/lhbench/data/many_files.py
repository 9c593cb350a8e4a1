"""Table of the part `files`: many small Parquet files, and the metadata that Delta and Iceberg need, without an engine.

It has the columns of store_sales, one file per partition, and all values are derived from row numbers. LHBench's
program writes such a table in place of what its paper calls store_sales of TPC-DS: the date is the file's number, and
items are consecutive, so that no two files share a date or an item. A row's number is its item.

Both formats list the same files with the same statistics. Delta's log is one commit as its protocol specifies, without
a checkpoint; PyIceberg writes Iceberg's manifests.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

DATE, ITEM, QUANTITY = "ss_sold_date_sk", "ss_item_sk", "ss_quantity"
INTEGER, LONG, PRICE = "INTEGER", "BIGINT", "DECIMAL(7,2)"  # DuckDB's type names
SOUGHT = 100  # date and item that queries filter for


@dataclass(frozen=True, slots=True)
class Column:
    """Column whose values repeat after `period` rows (prices: cents); with period 0, the value is the row number."""

    kind: str
    period: int = 0


COLUMNS: Mapping[str, Column] = {
    DATE: Column(INTEGER),
    "ss_sold_time_sk": Column(INTEGER, 86_400),
    ITEM: Column(INTEGER),
    "ss_customer_sk": Column(INTEGER, 100_000),
    "ss_cdemo_sk": Column(INTEGER, 1_920_800),
    "ss_hdemo_sk": Column(INTEGER, 7_200),
    "ss_addr_sk": Column(INTEGER, 50_000),
    "ss_store_sk": Column(INTEGER, 12),
    "ss_promo_sk": Column(INTEGER, 300),
    "ss_ticket_number": Column(LONG),
    QUANTITY: Column(INTEGER, 97),
    "ss_wholesale_cost": Column(PRICE, 9_973),
    "ss_list_price": Column(PRICE, 19_997),
    "ss_sales_price": Column(PRICE, 19_013),
    "ss_ext_discount_amt": Column(PRICE, 99_991),
    "ss_ext_sales_price": Column(PRICE, 199_999),
    "ss_ext_wholesale_cost": Column(PRICE, 89_989),
    "ss_ext_list_price": Column(PRICE, 299_993),
    "ss_ext_tax": Column(PRICE, 17_989),
    "ss_coupon_amt": Column(PRICE, 50_021),
    "ss_net_paid": Column(PRICE, 189_997),
    "ss_net_paid_inc_tax": Column(PRICE, 209_987),
    "ss_net_profit": Column(PRICE, 99_989),
}


def base(files: int, rows: int, first: int = 0) -> str:
    """Return a DuckDB query for the rows of `files` files with `rows` rows each, from file number `first` on."""
    values = ", ".join(f"CAST({_text(name, rows)} AS {column.kind}) AS {name}" for name, column in COLUMNS.items())
    return f"SELECT {values} FROM range({first * rows}, {(first + files) * rows}) AS numbers(r)"


def _text(name: str, rows: int) -> str:
    column = COLUMNS[name]
    if name == DATE:
        return f"r // {rows}"
    value = f"r % {column.period}" if column.period else "r"
    return f"CAST({value} AS DECIMAL(12,2)) / 100" if column.kind == PRICE else value


def row(number: int, rows: int) -> tuple[int | Decimal, ...]:
    """Return the values of one row, by arithmetic alone."""
    return tuple(_value(name, number, rows) for name in COLUMNS)


def _value(name: str, number: int, rows: int) -> int | Decimal:
    column = COLUMNS[name]
    if name == DATE:
        return number // rows
    value = number % column.period if column.period else number
    return Decimal(value) / 100 if column.kind == PRICE else value


def quantities(numbers: range) -> int:
    """Return the sum of the quantities of the rows `numbers`."""
    return sum(number % COLUMNS[QUANTITY].period for number in numbers)


TABLE, LOG, MANIFESTS = "table", "_delta_log", "iceberg"  # folders
CHUNK = 1_000  # files whose rows are in memory at once
MANIFESTS_LEAST = 2  # Iceberg does not rewrite a single manifest
MANIFEST_FILES = 10_000  # files that a manifest lists at most
COMMITTED_MS = 1_767_225_600_000  # time of the one commit, constant so that each call writes the same
SNAPSHOT = 1
FIRST_FIELD, PARTITION_FIELD = 1, 1_000  # Iceberg's field ids of the first column and of the partition
DELTA_TYPES = {INTEGER: "integer", LONG: "long"}
ICEBERG_TYPES = {INTEGER: "int", LONG: "long"}
DECIMAL = "decimal(7,2)"
FIELD_ID = "PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file; lowest and highest values in the order of columns."""

    number: int
    size: int
    column_bytes: tuple[int, ...]
    lowest: tuple[Any, ...]
    highest: tuple[Any, ...]

    @property
    def path(self) -> str:
        """Path relative to the folder of the table."""
        return f"{DATE}={self.number}/part-0.parquet"


def make(connection: duckdb.DuckDBPyConnection, files: int, rows: int, folder: Path, place: Path) -> dict[str, int]:
    """Write `files` files of `rows` rows below `folder`, later moved to `place`; return the counts and data bytes."""
    written: list[DataFile] = []
    for first in range(0, files, CHUNK):
        written += _chunk(connection, first, min(CHUNK, files - first), rows, folder / TABLE)
    _delta(written, rows, folder / TABLE / LOG)
    _iceberg(written, rows, folder / MANIFESTS, place)
    return {"files": files, "rows": rows, "data_bytes": sum(each.size for each in written)}


def _chunk(
    connection: duckdb.DuckDBPyConnection, first: int, files: int, rows: int, folder: Path
) -> Iterator[DataFile]:
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE chunk AS {base(files, rows, first)}")
    ends = ", ".join(f"{end}({name})" for end in ("min", "max") for name in COLUMNS)
    bounds = connection.execute(f"SELECT {ends} FROM chunk GROUP BY {DATE} ORDER BY {DATE}").fetchall()
    whole = connection.execute("SELECT * FROM chunk ORDER BY ss_item_sk").fetch_arrow_table()
    numbered = [each.with_metadata({FIELD_ID: str(FIRST_FIELD + place)}) for place, each in enumerate(whole.schema)]
    whole = whole.cast(arrow.schema(numbered))
    for place, values in enumerate(bounds):
        number = first + place
        path = folder / f"{DATE}={number}/part-0.parquet"
        path.parent.mkdir(parents=True)
        told: list[Any] = []
        parquet.write_table(
            whole.slice(place * rows, rows), path, compression="snappy", metadata_collector=told, store_schema=False
        )
        group = told[0].row_group(0)
        sizes = tuple(group.column(column).total_compressed_size for column in range(len(COLUMNS)))
        yield DataFile(number, path.stat().st_size, sizes, values[: len(COLUMNS)], values[len(COLUMNS) :])


def _delta(written: Sequence[DataFile], rows: int, folder: Path) -> None:
    """Write a log with one commit: the protocol, the table's metadata, and its files."""
    folder.mkdir()
    fields = [
        {"name": name, "type": DELTA_TYPES.get(column.kind, DECIMAL), "nullable": True, "metadata": {}}
        for name, column in COLUMNS.items()
    ]
    table = {
        "id": str(uuid.UUID(int=len(written))),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [DATE],
        "configuration": {},
        "createdTime": COMMITTED_MS,
    }
    told = {"timestamp": COMMITTED_MS, "operation": "CREATE TABLE AS SELECT", "operationParameters": {}}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    head: list[dict[str, Any]] = [{"commitInfo": told}, {"protocol": protocol}, {"metaData": table}]
    with (folder / f"{0:020}.json").open("w") as file:
        for action in chain(head, ({"add": _added(each, rows)} for each in written)):
            file.write(json.dumps(action) + "\n")


def _added(each: DataFile, rows: int) -> dict[str, Any]:
    inside = [name for name in COLUMNS if name != DATE]

    def values(ends: Sequence[Any]) -> dict[str, float]:
        named = dict(zip(COLUMNS, ends, strict=True))
        return {name: named[name] if isinstance(named[name], int) else float(named[name]) for name in inside}

    stats = {
        "numRecords": rows,
        "minValues": values(each.lowest),
        "maxValues": values(each.highest),
        "nullCount": dict.fromkeys(inside, 0),
    }
    return {
        "path": each.path,
        "partitionValues": {DATE: str(each.number)},
        "size": each.size,
        "modificationTime": COMMITTED_MS,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def _iceberg(written: Sequence[DataFile], rows: int, folder: Path, place: Path) -> None:
    """Write manifests, a manifest list, and the first metadata file, in which the session sets the table's location."""
    schemas: Any = import_module("pyiceberg.schema")
    partitioning: Any = import_module("pyiceberg.partitioning")
    manifest: Any = import_module("pyiceberg.manifest")
    files: Any = import_module("pyiceberg.io.pyarrow").PyArrowFileIO()
    folder.mkdir()
    fields = [
        {"id": number, "name": name, "required": False, "type": ICEBERG_TYPES.get(column.kind, "decimal(7, 2)")}
        for number, (name, column) in enumerate(COLUMNS.items(), FIRST_FIELD)
    ]
    described = {"type": "struct", "schema-id": 0, "fields": fields}
    parted = {"name": DATE, "transform": "identity", "source-id": FIRST_FIELD, "field-id": PARTITION_FIELD}
    schema = schemas.Schema.model_validate(described)
    spec = partitioning.PartitionSpec.model_validate({"spec-id": 0, "fields": [parted]})
    named: list[Any] = []
    size = min(MANIFEST_FILES, -(-len(written) // MANIFESTS_LEAST))
    for first in range(0, len(written), size):
        output = files.new_output(str(folder / f"manifest-{len(named)}.avro"))
        with manifest.write_manifest(2, spec, schema, output, SNAPSHOT, "deflate") as writer:
            for each in written[first : first + size]:
                writer.add_entry(_entry(manifest, schema, each, rows, place))
        named.append(writer.to_manifest_file())
    listed = folder / "manifests.avro"
    with manifest.write_manifest_list(2, files.new_output(str(listed)), SNAPSHOT, None, 1, "deflate") as writer:
        # The list names manifests by their final location, not by the one they are written to.
        for number, each in enumerate(named):
            each[0] = str(place / MANIFESTS / f"manifest-{number}.avro")
        writer.add_manifests(named)
    counts = {"data-files": len(written), "records": rows * len(written)}
    summary = {f"{kind}-{name}": str(count) for kind in ("added", "total") for name, count in counts.items()}
    snapshot = {
        "snapshot-id": SNAPSHOT,
        "sequence-number": 1,
        "timestamp-ms": COMMITTED_MS,
        "summary": {"operation": "append", **summary},
        "manifest-list": str(place / MANIFESTS / listed.name),
        "schema-id": 0,
    }
    table = {
        "format-version": 2,
        "table-uuid": str(uuid.UUID(int=len(written))),
        "location": str(place),
        "last-sequence-number": 1,
        "last-updated-ms": COMMITTED_MS,
        "last-column-id": len(COLUMNS),
        "current-schema-id": 0,
        "schemas": [described],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [parted]}],
        "last-partition-id": PARTITION_FIELD,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": SNAPSHOT,
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
        "snapshots": [snapshot],
        "snapshot-log": [{"timestamp-ms": COMMITTED_MS, "snapshot-id": SNAPSHOT}],
        "metadata-log": [],
        "statistics": [],
    }
    (folder / "v1.metadata.json").write_text(json.dumps(table))


def _entry(manifest: Any, schema: Any, each: DataFile, rows: int, place: Path) -> Any:
    to_bytes: Any = import_module("pyiceberg.conversions").to_bytes
    numbers = range(FIRST_FIELD, FIRST_FIELD + len(COLUMNS))

    def bounds(ends: Sequence[Any]) -> dict[int, bytes]:
        return {number: to_bytes(schema.find_type(number), end) for number, end in zip(numbers, ends, strict=True)}

    data = manifest.DataFile.from_args(
        _table_format_version=2,
        content=manifest.DataFileContent.DATA,
        file_path=str(place / TABLE / each.path),
        file_format=manifest.FileFormat.PARQUET,
        partition=import_module("pyiceberg.typedef").Record(each.number),
        record_count=rows,
        file_size_in_bytes=each.size,
        column_sizes=dict(zip(numbers, each.column_bytes, strict=True)),
        value_counts=dict.fromkeys(numbers, rows),
        null_value_counts=dict.fromkeys(numbers, 0),
        nan_value_counts={},
        lower_bounds=bounds(each.lowest),
        upper_bounds=bounds(each.highest),
        key_metadata=None,
        split_offsets=[4],
        equality_ids=None,
        sort_order_id=None,
    )
    data.spec_id = 0
    return manifest.ManifestEntry.from_args(
        _table_format_version=2,
        status=manifest.ManifestEntryStatus.ADDED,
        snapshot_id=SNAPSHOT,
        sequence_number=None,
        file_sequence_number=None,
        data_file=data,
    )
