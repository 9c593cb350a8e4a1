"""Refresh sets, derived from the base by DuckDB: its generator has none, and the standard's own kit is in no registry.

A set has updates (rows of the base with their keys and dates, every measure changed by the set's number) and inserts
(copies of other rows of the base, each with a new order number, or for inventory with a week that the base lacks).
Rows are drawn by a hash of the seed, the set's number and the key, so that each call returns the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.errors import MachineError
from tidemark.studies.lhbench.data.tables import FACTS, Fact, measures

if TYPE_CHECKING:
    import duckdb

WEEKS = 100  # weeks per set for new rows of inventory; the calendar of TPC-DS is long enough for 50 sets
DAYS = 7


@dataclass(frozen=True, slots=True)
class Mix:
    """Size of a set as a share of the loaded rows, and the share of the set that are updates."""

    share: float
    updates: float

    def counts(self, loaded: int) -> tuple[int, int]:
        """Return the numbers of updates and inserts of a set, for a table with `loaded` rows."""
        whole = round(self.share * loaded)
        updates = round(whole * self.updates)
        return updates, whole - updates


def columns_of(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return the columns of a table or view in order, with DuckDB's type names."""
    return {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {table}").fetchall()}


def make(
    connection: duckdb.DuckDBPyConnection, table: str, number: int, seed: int, mix: Mix, path: Path
) -> dict[str, int]:
    """Write set `number` (from 1) of a fact table as a Parquet file; return its numbers of updates and inserts.

    `table` is a view of the loaded rows. Raise MachineError if two rows of the set have the same key: engines differ
    in how they merge such rows.
    """
    fact, columns = FACTS[table], columns_of(connection, table)
    loaded = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert loaded is not None
    updates, inserts = mix.counts(int(loaded[0]))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE drawn AS SELECT *, row_number() OVER (ORDER BY hash({seed}, {number}, "
        f"{', '.join(fact.key)}), {', '.join(fact.key)}) AS place FROM {table}"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE refresh AS SELECT {_changed(fact, columns, number)} FROM drawn "
        f"WHERE place <= {updates} UNION ALL SELECT {_new(fact, columns, table, number, updates, inserts)} FROM drawn "
        f"WHERE place > {updates} AND place <= {updates + inserts}"
    )
    found = connection.execute(
        f"SELECT count(*), count(DISTINCT ({', '.join(fact.key)})) FROM refresh"
    ).fetchone()  # fmt: skip
    if found != (updates + inserts, updates + inserts):
        raise MachineError(f"refresh {number} of {table}: found {found} rows and keys; allowed: a key a row")
    order = ", ".join(fact.key)
    connection.execute(f"COPY (FROM refresh ORDER BY {order}) TO '{path}' (FORMAT parquet, COMPRESSION snappy)")
    return {"updates": updates, "inserts": inserts}


def _changed(fact: Fact, columns: dict[str, str], number: int) -> str:
    """Return SQL that adds the set's number to each measure of a row, in hundredths to decimals."""
    own = measures(fact, columns)

    def value(name: str, kind: str) -> str:
        if name not in own:
            return name
        step = f"0.01 * {number}" if kind.startswith("DECIMAL") else str(number)
        return f"CAST({name} + {step} AS {kind}) AS {name}"

    return ", ".join(value(name, kind) for name, kind in columns.items())


def _new(fact: Fact, columns: dict[str, str], table: str, number: int, updates: int, inserts: int) -> str:
    """Return SQL for new rows: orders continue those of base and earlier sets; inventory gets the next free week."""
    if fact.order is not None:
        given, before = fact.order, (number - 1) * inserts
        fresh = f"(SELECT max({given}) FROM {table}) + {before} + place - {updates}"
    else:
        given = fact.date
        rest = ", ".join(each for each in fact.key if each != given)
        week = f"{(number - 1) * WEEKS} + row_number() OVER (PARTITION BY {rest} ORDER BY place)"
        fresh = f"(SELECT max({given}) FROM {table}) + {DAYS} * ({week})"
    kind = columns[given]
    return ", ".join(f"CAST({fresh} AS {kind}) AS {name}" if name == given else name for name in columns)
