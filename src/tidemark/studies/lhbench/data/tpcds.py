"""TPC-DS from DuckDB's generator, the same at each call: tables, the standard's 99 queries, and refresh sets.

The generator has no refresh sets, and the standard's own kit is in no registry: DuckDB derives them from the base. A
set has updates (rows of the base with their keys and dates, every measure changed by the set's number) and inserts
(copies of other rows of the base, each with a new order number, or for inventory with a week that the base lacks). Rows
are drawn by a hash of the seed, the set's number and the key, so that each call returns the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.errors import MachineError

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Fact:
    """Fact table; `key`: the columns that identify a row, including the date, as in LHBench's merges.

    `order`: the column in which new rows get a new number; None if new rows get another week instead.
    """

    name: str
    key: tuple[str, ...]
    date: str
    order: str | None


def _sold(name: str, prefix: str, date: str, order: str) -> Fact:
    return Fact(name, (f"{prefix}_item_sk", f"{prefix}_{order}", f"{prefix}_{date}"), f"{prefix}_{date}",
                f"{prefix}_{order}")  # fmt: skip


FACTS = {
    fact.name: fact
    for fact in (
        Fact("inventory", ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"), "inv_date_sk", None),
        _sold("catalog_returns", "cr", "returned_date_sk", "order_number"),
        _sold("catalog_sales", "cs", "sold_date_sk", "order_number"),
        _sold("store_returns", "sr", "returned_date_sk", "ticket_number"),
        _sold("store_sales", "ss", "sold_date_sk", "ticket_number"),
        _sold("web_returns", "wr", "returned_date_sk", "order_number"),
        _sold("web_sales", "ws", "sold_date_sk", "order_number"),
    )
}
DIMENSIONS = {
    "call_center": "cc_call_center_sk",
    "catalog_page": "cp_catalog_page_sk",
    "customer": "c_customer_sk",
    "customer_address": "ca_address_sk",
    "customer_demographics": "cd_demo_sk",
    "date_dim": "d_date_sk",
    "household_demographics": "hd_demo_sk",
    "income_band": "ib_income_band_sk",
    "item": "i_item_sk",
    "promotion": "p_promo_sk",
    "reason": "r_reason_sk",
    "ship_mode": "sm_ship_mode_sk",
    "store": "s_store_sk",
    "time_dim": "t_time_sk",
    "warehouse": "w_warehouse_sk",
    "web_page": "wp_web_page_sk",
    "web_site": "web_site_sk",
}
TABLES = tuple(sorted({**FACTS, **DIMENSIONS}))
SURROGATE = "_sk"  # suffix of columns that refer to other tables


def key_of(table: str) -> tuple[str, ...]:
    """Return the columns that identify a row of `table`."""
    return FACTS[table].key if table in FACTS else (DIMENSIONS[table],)


def measures(fact: Fact, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that an update may change: those that are neither key nor reference."""
    return tuple(each for each in columns if each not in fact.key and not each.endswith(SURROGATE))


def loaded(table: str) -> str:
    """Return the SQL condition for rows that are loaded: LHBench drops facts without a date."""
    return f"{FACTS[table].date} IS NOT NULL" if table in FACTS else "TRUE"


def named_in(text: str, tables: Iterable[str] = TABLES) -> tuple[str, ...]:
    """Return those of `tables` that the text of a query names, each once, in their order."""
    words = set(re.findall(r"\w+", text.lower()))
    return tuple(each for each in tables if each in words)


QUOTED = re.compile(r'"([^"\n]+)"')


def generate(connection: duckdb.DuckDBPyConnection, scale: float, folder: Path) -> dict[str, dict[str, int]]:
    """Write the tables of a scale factor as `folder`/<table>.parquet; return the rows and loaded rows of each.

    `connection` must have the extension tpcds loaded and no tables.
    """
    connection.execute(f"CALL dsdgen(sf = {scale:g})")
    counts = {}
    for table in TABLES:
        path = folder / f"{table}.parquet"
        connection.execute(f"COPY {table} TO '{path}' (FORMAT parquet, COMPRESSION snappy)")
        found = connection.execute(f"SELECT count(*), count(*) FILTER ({loaded(table)}) FROM {table}").fetchall()[0]
        counts[table] = {"rows": int(found[0]), "loaded": int(found[1])}
    return counts


def queries(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return the query texts by number, with the standard's qualification parameters; needs the extension tpcds."""
    found = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    return {str(number): text.strip().removesuffix(";") for number, text in found}


def for_spark(text: str) -> str:
    """Return `text` with double-quoted names in backticks, because double quotes delimit strings in Spark."""
    return QUOTED.sub(r"`\1`", text)


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


def make_set(
    connection: duckdb.DuckDBPyConnection, table: str, number: int, seed: int, mix: Mix, path: Path
) -> dict[str, int]:
    """Write set `number` (from 1) of a fact table as a Parquet file; return its numbers of updates and inserts.

    `table` is a view of the loaded rows. Raise MachineError if two rows of the set have the same key: engines differ
    in how they merge such rows.
    """
    fact, columns = FACTS[table], columns_of(connection, table)
    key = ", ".join(fact.key)
    updates, inserts = mix.counts(int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE drawn AS SELECT *, row_number() OVER (ORDER BY hash({seed}, {number}, {key}), "
        f"{key}) AS place FROM {table}"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE refresh AS SELECT {_changed(fact, columns, number)} FROM drawn "
        f"WHERE place <= {updates} UNION ALL SELECT {_new(fact, columns, table, number, updates, inserts)} FROM drawn "
        f"WHERE place > {updates} AND place <= {updates + inserts}"
    )
    found = connection.execute(f"SELECT count(*), count(DISTINCT ({key})) FROM refresh").fetchall()[0]
    if found != (updates + inserts, updates + inserts):
        raise MachineError(f"refresh {number} of {table}: found {found} rows and keys; allowed: a key a row")
    connection.execute(f"COPY (FROM refresh ORDER BY {key}) TO '{path}' (FORMAT parquet, COMPRESSION snappy)")
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
