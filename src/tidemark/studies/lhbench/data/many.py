"""Table of the part `files`: the columns of store_sales, one file per partition, all values derived from row numbers.

LHBench's program writes such a table in place of what its paper calls store_sales of TPC-DS: the date is the file's
number, and items are consecutive, so that no two files share a date or an item. A row's number is its item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

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
