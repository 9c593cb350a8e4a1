"""Table for filtered queries, and the filters: file i contains hour i and has its own region and word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidemark.systems.tables import Filter

if TYPE_CHECKING:
    import pyarrow as pa


START = datetime(2025, 11, 15)


def schema() -> pa.Schema:
    """Return the schema of the table."""
    import pyarrow as pa

    kinds = {"id": pa.int64(), "region": pa.string(), "shard": pa.int64(), "moment": pa.timestamp("us")}
    return pa.schema({**kinds, "message": pa.string()})


def rows_of(file: int, rows: int) -> pa.Table:
    """Return the rows of a file: ids are consecutive across all files, moments are spread over the file's hour."""
    import pyarrow as pa

    step, begin = timedelta(hours=1) / rows, START + timedelta(hours=file)
    columns = {
        "id": range(file * rows, (file + 1) * rows),
        "region": [f"r{file}"] * rows,
        "shard": [file] * rows,
        "moment": [begin + place * step for place in range(rows)],
        "message": [f"alpha{file} retry"] * rows,
    }
    return pa.table(columns, schema())


def _hours(first: int, last: int) -> str:
    begin, end = ((START + timedelta(hours=hour)).isoformat() for hour in (first, last + 1))
    return f"moment >= '{begin}' AND moment < '{end}'"


@dataclass(frozen=True, slots=True)
class Predicate:
    """Filter; `fits` returns True if all rows of a file match, False if none do. `best`: files read, by kyma."""

    name: str
    asked: Filter
    fits: Callable[[int], bool]
    best: int | None  # of ten files, as kyma's page states it; None if it states none

    def files(self, files: int) -> int:
        """Return how many of this number of files have matching rows: no reader can read fewer."""
        return sum(map(self.fits, range(files)))


PREDICATES = (
    Predicate("all rows", Filter(), lambda _: True, 10),
    Predicate("region", Filter("region = 'r3'"), lambda file: file == 3, 1),
    Predicate("integer", Filter("shard = 7"), lambda file: file == 7, 1),
    Predicate("one of two", Filter("region IN ('r2', 'r7')"), lambda file: file in (2, 7), 2),
    Predicate("no match", Filter("region = 'moon'"), lambda _: False, 0),
    Predicate("region and time", Filter(f"region = 'r3' AND {_hours(3, 3)}"), lambda file: file == 3, 1),
    Predicate("one hour", Filter(_hours(4, 4)), lambda file: file == 4, 1),
    Predicate("five hours", Filter(_hours(0, 4)), lambda file: file < 5, None),
    Predicate("text", Filter(contains=("message", "alpha3 ")), lambda file: file == 3, 1),
)
BY_NAME = {each.name: each for each in PREDICATES}
