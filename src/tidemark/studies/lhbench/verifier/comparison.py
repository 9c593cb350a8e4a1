"""Comparison of tables and answers with the expected ones, which DuckDB computes from base and refresh files alone.

Tables are put into one form that all formats can hold, and compared by checksums that ignore the order of rows. A
checksum has the numbers of rows, of keys and of distinct keys; the sum and the exclusive or of the hashes of complete
rows; and for each column the number of values and the sum of their hashes, so that differing columns can be named. Sums
have 128 bits. Hashes are DuckDB's and comparable only within the same release.

Answers are compared in any order of rows, with numbers within the precision of their types.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import duckdb

from tidemark.studies.lhbench.data.tpcds import columns_of
from tidemark.studies.lhbench.verifier import readers


@dataclass(frozen=True, slots=True)
class Checksum:
    """Checksum of a table; `columns`: number of values and sum of hashes. Sums are text: JSON lacks 128-bit numbers."""

    rows: int
    keys: int
    different_keys: int
    total: str
    parity: str
    columns: Mapping[str, tuple[int, str]]

    def difference(self, found: Checksum) -> str:
        """Return how `found` differs from this expected checksum, in words; empty if it does not."""
        if found == self:
            return ""
        words = []
        if found.rows != self.rows:
            words.append(f"{found.rows:,} rows of {self.rows:,}")
        if found.different_keys != self.different_keys:
            words.append(f"{found.different_keys:,} keys of {self.different_keys:,}")
        names = [name for name, each in self.columns.items() if found.columns.get(name) != each]
        if names:
            words.append(f"other values in {', '.join(names)}")
        return "; ".join(words) or "the values are there, in other rows than they belong to"


def canonical_column(name: str, kind: str) -> str:
    """Return SQL for the column `name`, of DuckDB's type `kind` in the base, in a form that all formats can hold."""
    kind = kind.upper()
    if kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"):
        return f"CAST({name} AS BIGINT)"
    if kind.startswith("DECIMAL"):
        return f"CAST({name} AS DECIMAL(18, 2))"
    if kind == "VARCHAR":
        return f"rtrim(CAST({name} AS VARCHAR))"
    return f"CAST({name} AS {kind})"


def checksum(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Mapping[str, str], key: Sequence[str]
) -> Checksum:
    """Return the checksum of `relation` (table, view or table function); `columns`: the base's types by name."""
    whole = ", ".join(f"{canonical_column(name, kind)} AS {name}" for name, kind in columns.items())
    row = f"hash({', '.join(columns)})"
    each = ", ".join(f"count({name}), CAST(coalesce(sum(CAST(hash({name}) AS HUGEINT)), 0) AS VARCHAR)"
                     for name in columns)  # fmt: skip
    keys = f"({', '.join(key)})"
    full = " AND ".join(f"{name} IS NOT NULL" for name in key)
    rows, keys_there, different, total, parity, *rest = connection.execute(
        f"WITH canonical AS (SELECT {whole} FROM {relation}) SELECT count(*), count(*) FILTER ({full}), "
        f"count(DISTINCT {keys}) FILTER ({full}), CAST(coalesce(sum(CAST({row} AS HUGEINT)), 0) AS VARCHAR), "
        f"CAST(coalesce(bit_xor({row}), 0) AS VARCHAR), {each} FROM canonical"
    ).fetchall()[0]
    of_columns = {name: (int(rest[2 * place]), str(rest[2 * place + 1])) for place, name in enumerate(columns)}
    return Checksum(int(rows), int(keys_there), int(different), str(total), str(parity), of_columns)


# Engines differ in the type of an average of decimals: one of them rounds it to six decimal places.
RELATIVE, ABSOLUTE = 1e-6, 1e-6
SORTED_DIGITS = 4  # significant digits by which rows are sorted, so that nearly equal rows stay adjacent
type Value = str | float | None
type Answer = list[tuple[Value, ...]]


def plain(value: Any) -> Value:
    """Return a value of an answer: numbers as float, all else as text without the trailing spaces of fixed lengths."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | Decimal):
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value).rstrip()


def numeric(rows: Sequence[Sequence[Any]]) -> frozenset[int]:
    """Return the indexes of the columns with numbers, from the values of an engine that returns numbers as such."""
    return frozenset(place for row in rows for place, value in enumerate(row) if isinstance(plain(value), float))


def canonical_answer(rows: Sequence[Sequence[Any]], numbers: frozenset[int] = frozenset()) -> Answer:
    """Return the rows of an answer in a canonical order, which does not depend on the last digits of a number.

    `numbers`: the indexes of columns whose values are numbers, even if they are given as text.
    """
    made = (tuple(_value(value, place in numbers) for place, value in enumerate(row)) for row in rows)
    return sorted(made, key=_place)


def _value(value: Any, is_number: bool) -> Value:
    return float(value) if is_number and isinstance(value, str) else plain(value)


def _place(row: tuple[Value, ...]) -> tuple[tuple[int, float, str], ...]:
    """Return the sort key: text first, then numbers by their leading digits, so that rounding keeps the order."""
    texts = [
        (0, 0.0, value) if isinstance(value, str) else (1, 0.0, "") for value in row if not isinstance(value, float)
    ]
    numbers = [(0, float(f"{value:.{SORTED_DIGITS}g}"), "") for value in row if isinstance(value, float)]
    exact = [(0, value, "") for value in row if isinstance(value, float)]
    return (*texts, *numbers, *exact)


def answer_difference(expected: Answer, found: Answer) -> str:
    """Return how two canonical answers differ, in words; empty if they do not."""
    if len(expected) != len(found):
        return f"{len(found):,} rows of {len(expected):,}"
    wrong = [place for place, pair in enumerate(zip(expected, found, strict=True)) if not _alike(*pair)]
    if not wrong:
        return ""
    first = wrong[0]
    return f"{len(wrong):,} of {len(expected):,} rows differ, the first: {found[first]} for {expected[first]}"


def _alike(expected: tuple[Value, ...], found: tuple[Value, ...]) -> bool:
    return len(expected) == len(found) and all(_same(*pair) for pair in zip(expected, found, strict=True))


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return a == b


def create_expected(
    connection: duckdb.DuckDBPyConnection, name: str, base: str, merged: Sequence[Path], key: Sequence[str]
) -> None:
    """Create the table `name` with the rows of the query `base`, after merges of the Parquet files `merged` by `key`.

    A row of a set replaces the row with the same key; the other rows of the set are new.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {base}")
    same = " AND ".join(f"old.{each} = new.{each}" for each in key)
    for path in merged:
        source = f"read_parquet('{path}')"
        connection.execute(f"DELETE FROM {name} AS old USING {source} AS new WHERE {same}")
        connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM {source}")


EXPECTED = "expected_"  # prefix of a table's name


def connect(folder: Path, *extensions: str) -> duckdb.DuckDBPyConnection:
    """Return a private DuckDB connection that writes only below `folder`, with `extensions` loaded from wheels."""
    private = str(folder)
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "extension_directory": private,
            "temp_directory": private,
        }
    )
    for name in extensions:
        found = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert found is not None and found.submodule_search_locations, name
        place = Path(found.submodule_search_locations[0], "extensions", f"v{duckdb.__version__}")
        connection.execute(f"LOAD '{place / name}.duckdb_extension'")
    return connection


def expect(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Create the expected content of the tables of an order, with views of it under their plain names, for queries."""
    for name, given in tables.items():
        merged = [Path(path) for path in given["merged"]]
        create_expected(connection, f"{EXPECTED}{name}", given["base"], merged, given["key"])
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {EXPECTED}{name}")


@dataclass(frozen=True, slots=True)
class Held:
    """A table at a location with its expected content; `name` is its name in queries once it is read."""

    name: str
    location: Path
    columns: Mapping[str, str]
    key: Sequence[str]
    wanted: Checksum

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, Any]) -> Self:
        """Return the table `name` of an order, whose expected content `connection` already has."""
        expected = f"{EXPECTED}{name}"
        columns = columns_of(connection, expected)
        wanted = checksum(connection, expected, columns, given["key"])
        return cls(f"found_{name}", Path(given["location"]), columns, given["key"], wanted)

    def compared(self, connection: duckdb.DuckDBPyConnection, reader: str) -> dict[str, Any]:
        """Return the number of rows expected, the number that a reader finds, and the difference in words."""
        try:
            relation = readers.relation(connection, self.name, reader, self.location)
            found = checksum(connection, relation, self.columns, self.key)
        except Exception as error:  # raised by a third-party reader: its message is the finding
            return {"expected": self.wanted.rows, "found": 0, "words": f"cannot be read: {error}"}
        return {"expected": self.wanted.rows, "found": found.rows, "words": self.wanted.difference(found)}
