"""Schemas of a month of trips: the columns of the TLC's yellow and green files, and the check against them.

The schemas are those of 2025. Earlier months (from 2011 on) and rewritten files differ in known ways, which
are allowed: columns that are absent or all null, integers that are wider or, because of nulls, stored as
floats, timestamps of another unit, strings with 32-bit or 64-bit offsets, and `airport_fee` in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.errors import DatasetError

MOST_NAMED = 30  # maximum number of a file's columns in a message
_INTEGERS = ("int8", "int16", "int32", "int64")
_FLOATS = ("float", "double")
# Types that are accepted in place of each type of 2025. Values that do not fit are rejected later.
ALLOWED_TYPES = {
    "int32": _INTEGERS,
    "int64": (*_INTEGERS, *_FLOATS),
    "double": (*_FLOATS, *_INTEGERS),
    "timestamp[us]": ("timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]"),
    "large_string": ("string", "large_string"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a kind of file: its type in 2025, and the permitted deviations."""

    name: str
    type: str
    optional: bool = False  # may be absent
    nullable: bool = True  # may be of type null: in a month without values


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of trips, yellow or green, with its columns in the order of the files of 2025."""

    name: str
    columns: tuple[Column, ...]

    @property
    def pickup(self) -> str:
        """Name of the column that distinguishes the kinds."""
        return self.columns[1].name


def _always(name: str, kind: str) -> Column:
    return Column(name, kind, nullable=False)


YELLOW = Kind(
    "yellow",
    (
        _always("VendorID", "int32"),
        _always("tpep_pickup_datetime", "timestamp[us]"),
        _always("tpep_dropoff_datetime", "timestamp[us]"),
        Column("passenger_count", "int64"),
        _always("trip_distance", "double"),
        Column("RatecodeID", "int64"),
        Column("store_and_fwd_flag", "large_string"),
        _always("PULocationID", "int32"),
        _always("DOLocationID", "int32"),
        Column("payment_type", "int64"),
        _always("fare_amount", "double"),
        Column("extra", "double"),
        Column("mta_tax", "double"),
        Column("tip_amount", "double"),
        Column("tolls_amount", "double"),
        Column("improvement_surcharge", "double"),
        _always("total_amount", "double"),
        Column("congestion_surcharge", "double", optional=True),
        Column("Airport_fee", "double", optional=True),
        Column("cbd_congestion_fee", "double", optional=True),
    ),
)
GREEN = Kind(
    "green",
    (
        _always("VendorID", "int32"),
        _always("lpep_pickup_datetime", "timestamp[us]"),
        _always("lpep_dropoff_datetime", "timestamp[us]"),
        Column("store_and_fwd_flag", "large_string"),
        Column("RatecodeID", "int64"),
        _always("PULocationID", "int32"),
        _always("DOLocationID", "int32"),
        Column("passenger_count", "int64"),
        _always("trip_distance", "double"),
        _always("fare_amount", "double"),
        Column("extra", "double"),
        Column("mta_tax", "double"),
        Column("tip_amount", "double"),
        Column("tolls_amount", "double"),
        Column("ehail_fee", "double", optional=True),
        Column("improvement_surcharge", "double"),
        _always("total_amount", "double"),
        Column("payment_type", "int64"),
        Column("trip_type", "int64", optional=True),
        Column("congestion_surcharge", "double", optional=True),
        Column("cbd_congestion_fee", "double", optional=True),
    ),
)
KINDS = (YELLOW, GREEN)


def raw_schema(kind: Kind) -> pa.Schema:
    """Return the Arrow schema of a month of 2025 as published by the TLC."""
    return pa.schema([(column.name, pa.type_for_alias(column.type)) for column in kind.columns])


def plain_type(column: Column) -> pa.DataType:
    """Return the Arrow type that every system receives: the type of 2025, strings with 32-bit offsets."""
    return pa.string() if column.type == "large_string" else pa.type_for_alias(column.type)


@dataclass(frozen=True, slots=True)
class TripFile:
    """File that passed the check; `columns` are its kind's columns that it has, in the order of 2025."""

    path: Path
    kind: Kind
    rows: int
    columns: tuple[Column, ...]
    schema: pa.Schema  # that of the file itself
    unknown: tuple[str, ...]  # columns of the file that its kind does not have

    def name_of(self, column: Column) -> str | None:
        """Return the file's own spelling of a column, or None if it lacks the column."""
        return next((name for name in self.schema.names if name.lower() == column.name.lower()), None)


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open `path` as a Parquet file, checking that footer and extent are consistent; raise DatasetError if not."""
    try:
        status = path.stat()
        if S_ISDIR(status.st_mode):
            raise DatasetError(f"{path}: found a folder; allowed: one Parquet file, or a list of Parquet files.")
        if not S_ISREG(status.st_mode):
            raise DatasetError(f"{path}: found neither a file nor a link to one; allowed: a Parquet file.")
        size = status.st_size
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(max(0, size - 4))
            tail = file.read(4)
    except FileNotFoundError as error:
        raise DatasetError(f"{path}: no such file. Give a TLC month as Parquet, or leave dataset.path out.") from error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}.") from error
    if head != b"PAR1":
        raise DatasetError(
            f"{path}: not a Parquet file: it does not begin with PAR1. "
            "CSV and compressed copies are not read; get the Parquet file of the month."
        )
    if size < 12 or tail != b"PAR1":
        raise DatasetError(
            f"{path}: truncated: it has {size:,} bytes and does not end with PAR1, as a Parquet file does. "
            "Get the file again."
        )
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(error).split()).removesuffix(".")
        raise DatasetError(f"{path}: its Parquet footer cannot be read: {text}. Get the file again.") from error
    _check_extent(path, file.metadata, size)
    return file


def _check_extent(path: Path, metadata: pq.FileMetaData, size: int) -> None:
    rows = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        rows += group.num_rows
        if group.num_rows == 0:
            continue  # it has no pages, and its offsets are meaningless
        for place in range(group.num_columns):
            chunk = group.column(place)
            begin = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                begin = min(begin, chunk.dictionary_page_offset)
            end = begin + chunk.total_compressed_size
            if begin < 4 or end > size - 8:
                raise DatasetError(
                    f"{path}: truncated: column '{chunk.path_in_schema}' of row group {index} lies at bytes "
                    f"{begin:,} to {end:,}, the file has {size:,}. Get the file again."
                )
    if rows != metadata.num_rows:
        raise DatasetError(
            f"{path}: its footer names {metadata.num_rows:,} rows, its row groups hold {rows:,}. Get the file again."
        )


def check_all(paths: tuple[Path, ...]) -> tuple[TripFile, ...]:
    """Check the months at `paths`; raise DatasetError as `check` does, and if they are not of one kind."""
    files = tuple(map(check, paths))
    other = next((file for file in files if file.kind is not files[0].kind), None)
    if other is not None:
        raise DatasetError(
            f"{other.path}: a {other.kind.name} month, but {files[0].path} is a {files[0].kind.name} one; "
            "allowed: months of one kind, because a table has one set of columns."
        )
    return files


def check(path: Path) -> TripFile:
    """Check the month of trips at `path` by its footer alone; pages are read when the trips are prepared.

    Raises DatasetError, naming the file, what was found and what is allowed, if the file is not such a month.
    """
    with open_parquet(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    names = [name.lower() for name in schema.names]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise DatasetError(f"{path}: found column '{doubled[0]}' more than once; allowed: once.")
    # The pickup column determines the kind; without it, the kind that has the most of its columns present.
    kind = max(KINDS, key=lambda each: (each.pickup in names, len(each.columns) - len(_absent(each, names))))
    missing = [column.name for column in _absent(kind, names) if not column.optional]
    if missing:
        what = "neither a yellow nor a green month" if kind.pickup in missing else f"not a whole {kind.name} month"
        raise DatasetError(
            f"{path}: {what}: found {_listed(schema.names)}; missing, of a {kind.name} month's columns: "
            f"{', '.join(missing)}. Months of 2011 and later have them."
        )
    columns = tuple(column for column in kind.columns if _has(path, kind, column, schema, names))
    if rows == 0:
        raise DatasetError(f"{path}: found 0 rows; allowed: 1 or more.")
    known = {column.name.lower() for column in kind.columns}
    unknown = tuple(name for name in schema.names if name.lower() not in known)
    return TripFile(path, kind, rows, columns, schema, unknown)


def _absent(kind: Kind, names: list[str]) -> list[Column]:
    """Return the columns of a `kind` that are not among the `names`, which are in lower case."""
    return [column for column in kind.columns if column.name.lower() not in names]


def _listed(names: list[str]) -> str:
    more = [f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return ", ".join([*names[:MOST_NAMED], *more]) or "no column"


def _has(path: Path, kind: Kind, column: Column, schema: pa.Schema, names: list[str]) -> bool:
    if column.name.lower() not in names:
        return False
    found = str(schema.field(names.index(column.name.lower())).type)
    allowed = ALLOWED_TYPES[column.type] + (("null",) if column.nullable else ())
    if found not in allowed:
        raise DatasetError(
            f"{path}: column '{column.name}' has type {found}; allowed for a {kind.name} month: {', '.join(allowed)}."
        )
    return True
