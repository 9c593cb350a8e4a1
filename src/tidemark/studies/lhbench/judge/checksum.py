"""Content of a table, independent of the writer: canonical columns, and checksums that ignore the order of rows.

A table's checksum has the numbers of rows, of keys and of distinct keys; the sum and the exclusive or of the hashes of
complete rows; and for each column the number of values and the sum of their hashes, so that differing columns can be
named. Sums have 128 bits. Hashes are DuckDB's and comparable only within the same release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Checksum:
    """Checksum of a table; `columns`: number of values and sum of hashes. Sums are text: JSON lacks 128-bit numbers."""

    rows: int
    keys: int
    different_keys: int
    total: str
    parity: str
    columns: Mapping[str, tuple[int, str]]

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "columns": {name: list(each) for name, each in self.columns.items()}}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the checksum that `plain` converted to a dict."""
        return cls(**{**given, "columns": {name: (each[0], each[1]) for name, each in given["columns"].items()}})


def canonical(name: str, kind: str) -> str:
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
    whole = ", ".join(f"{canonical(name, kind)} AS {name}" for name, kind in columns.items())
    row = f"hash({', '.join(columns)})"
    each = ", ".join(f"count({name}), CAST(coalesce(sum(CAST(hash({name}) AS HUGEINT)), 0) AS VARCHAR)"
                     for name in columns)  # fmt: skip
    keys = f"({', '.join(key)})"
    full = " AND ".join(f"{name} IS NOT NULL" for name in key)
    found = connection.execute(
        f"WITH canonical AS (SELECT {whole} FROM {relation}) SELECT count(*), count(*) FILTER ({full}), "
        f"count(DISTINCT {keys}) FILTER ({full}), CAST(coalesce(sum(CAST({row} AS HUGEINT)), 0) AS VARCHAR), "
        f"CAST(coalesce(bit_xor({row}), 0) AS VARCHAR), {each} FROM canonical"
    ).fetchone()
    assert found is not None
    rows, keys_there, different, total, parity, *rest = found
    of_columns = {name: (int(rest[2 * place]), str(rest[2 * place + 1])) for place, name in enumerate(columns)}
    return Checksum(int(rows), int(keys_there), int(different), str(total), str(parity), of_columns)


def difference(expected: Checksum, found: Checksum) -> str:
    """Return how `found` differs from `expected`, in words; empty if it does not."""
    if found == expected:
        return ""
    said = []
    if found.rows != expected.rows:
        said.append(f"{found.rows:,} rows of {expected.rows:,}")
    if found.different_keys != expected.different_keys:
        said.append(f"{found.different_keys:,} keys of {expected.different_keys:,}")
    names = [name for name, each in expected.columns.items() if found.columns.get(name) != each]
    if names:
        said.append(f"other values in {', '.join(names)}")
    return "; ".join(said) or "the values are there, in other rows than they belong to"
