"""Comparison of a table with its source: rows are counted, and compared value by value, through DuckDB.

Values are compared in one form for all formats: integers as BIGINT, decimals with the source's digits, text without
trailing spaces, days as DATE. An order-free checksum over all columns shows whether two tables are equal; differing
rows are searched only if it differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tidemark.systems import duckdb_client

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Difference:
    """Differences of a table from its source; if there are none, all counts after `found` are zero."""

    expected: int
    found: int
    missing: int
    unexpected: int
    doubled: int  # keys of more than one row

    @property
    def holds(self) -> bool:
        return not (self.missing or self.unexpected or self.doubled)

    @property
    def words(self) -> str:
        return (
            f"of {self.expected:,} rows {self.missing:,} are missing, {self.unexpected:,} are others, and "
            f"{self.doubled:,} keys are there more than once"
        )


class Comparer:
    """Comparison of tables with the Parquet file `source`; a context manager."""

    def __init__(self, source: Path, keys: Sequence[str], extensions: Sequence[str], directory: Path) -> None:
        self._connection: duckdb.DuckDBPyConnection = duckdb_client.connect(extensions, directory, check=False)
        self._source = f"read_parquet({duckdb_client.literal(source)})"
        self._keys = ", ".join(keys)
        self._columns = self._canonical(self._source)
        self._expected = self._checksum(self._source)

    @property
    def rows(self) -> int:
        """Number of rows of the source."""
        return int(self._expected[0])

    def compare(self, relation: str) -> Difference:
        """Compare every value that DuckDB selects from `relation` with the source."""
        found = self._checksum(relation)
        missing = unexpected = doubled = 0
        if found != self._expected:
            missing, unexpected = self._beyond(self._source, relation), self._beyond(relation, self._source)
            doubled = self._one(f"SELECT count(*) FROM (SELECT 1 FROM {relation} GROUP BY {self._keys} "
                                "HAVING count(*) > 1)")[0]  # fmt: skip
        return Difference(self.rows, int(found[0]), missing, unexpected, int(doubled))

    def departures(self, relation: str) -> list[str]:
        """Return the columns whose type differs from the source's, in words."""
        ours, theirs = self._types(self._source), self._types(relation)
        return [
            f"{name}: {kind} became {theirs.get(name, 'nothing')}"
            for name, kind in ours.items()
            if theirs.get(name) != kind
        ]

    def _types(self, relation: str) -> dict[str, str]:
        rows = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        return {str(row[0]): str(row[1]) for row in rows}

    def _canonical(self, relation: str) -> str:
        """Return SQL for all columns of the source, each in the form in which it is compared."""
        found = []
        for name, kind in self._types(relation).items():
            column = duckdb_client.identifier(name)
            if kind == "VARCHAR":
                column = f"rtrim({column})"
            elif kind in ("TINYINT", "SMALLINT", "INTEGER"):
                kind = "BIGINT"
            found.append(f"{column}::{kind} AS {duckdb_client.identifier(name)}")
        return ", ".join(found)

    def _checksum(self, relation: str) -> tuple[Any, ...]:
        """Return the number of rows, and two order-free aggregates of the hashes of all rows."""
        return self._one(
            f"SELECT count(*), sum(hash(rows)::HUGEINT), bit_xor(hash(rows)) FROM (SELECT {self._columns} "
            f"FROM {relation}) AS rows"
        )

    def _beyond(self, these: str, those: str) -> int:
        """Return the number of rows of `these` that `those` lacks, duplicates included."""
        beyond = f"SELECT {self._columns} FROM {these} EXCEPT ALL SELECT {self._columns} FROM {those}"
        return int(self._one(f"SELECT count(*) FROM ({beyond})")[0])

    def _one(self, query: str) -> tuple[Any, ...]:
        return self._connection.execute(query).fetchall()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
