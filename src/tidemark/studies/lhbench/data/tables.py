"""Tables of TPC-DS: their keys, the date by which facts are partitioned, and the columns of a fact that may change."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


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


INVENTORY = Fact("inventory", ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"), "inv_date_sk", None)
FACTS = {
    fact.name: fact
    for fact in (
        INVENTORY,
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
