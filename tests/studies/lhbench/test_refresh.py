"""Tests of refresh sets and of tables after merging them, small enough to be worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tidemark.errors import MachineError
from tidemark.studies.lhbench.data import micro
from tidemark.studies.lhbench.data.tpcds import FACTS, TABLES, Mix, key_of, make_set, measures, named_in
from tidemark.studies.lhbench.verifier.comparison import checksum, create_expected

SALES = FACTS["store_sales"]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield 100 sales (ten items, ten tickets) and 60 rows of inventory (ten weeks, three items, two warehouses)."""
    with duckdb.connect() as made:
        made.execute(
            "CREATE TABLE store_sales AS SELECT CAST(2450000 + range % 7 AS INTEGER) AS ss_sold_date_sk, "
            "CAST(range % 10 AS INTEGER) AS ss_item_sk, CAST(range // 10 + 1 AS BIGINT) AS ss_ticket_number, "
            "CAST(range AS INTEGER) AS ss_quantity, CAST(range / 4 AS DECIMAL(7, 2)) AS ss_net_paid FROM range(100)"
        )
        made.execute(
            "CREATE TABLE inventory AS SELECT CAST(2450000 + 7 * (range // 6) AS INTEGER) AS inv_date_sk, "
            "CAST(range % 3 AS INTEGER) AS inv_item_sk, CAST(range // 3 % 2 AS INTEGER) AS inv_warehouse_sk, "
            "CAST(range AS INTEGER) AS inv_quantity_on_hand FROM range(60)"
        )
        yield made


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


def test_set_has_updates_with_other_measures_and_inserts_with_new_orders(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    for number in (1, 2):
        path = tmp_path / f"{number}.parquet"
        made = make_set(connection, "store_sales", number, 7, Mix(0.2, 0.5), path)
        assert made == {"updates": 10, "inserts": 10}
        connection.execute(f"CREATE TABLE set_{number} AS FROM '{path}'")
        same = " AND ".join(f"o.{each} = n.{each}" for each in SALES.key)
        changed = rows(connection, "SELECT n.ss_quantity - o.ss_quantity, n.ss_net_paid - o.ss_net_paid "
                                   f"FROM set_{number} n JOIN store_sales o ON {same}")  # fmt: skip
        assert [(int(str(a)), float(str(b))) for a, b in changed] == [(number, number / 100)] * 10
        orders = [row[0] for row in rows(connection, f"SELECT ss_ticket_number FROM set_{number} "
                                                     "WHERE ss_ticket_number > 10 ORDER BY 1")]  # fmt: skip
        assert orders == list(range(11 + 10 * (number - 1), 21 + 10 * (number - 1)))
    assert rows(connection, "SELECT count(*) FROM set_1 JOIN set_2 USING (ss_item_sk, ss_ticket_number)") != [(10,)]


def test_new_rows_of_inventory_have_weeks_that_the_base_lacks(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "set.parquet"
    made = make_set(connection, "inventory", 2, 7, Mix(0.5, 0.4), path)
    assert made == {"updates": 12, "inserts": 18}
    new = rows(connection, f"SELECT inv_date_sk FROM '{path}' WHERE inv_date_sk > 2450063")
    weeks = [(int(str(day)) - 2450063) / 7 for (day,) in new]
    assert len(new) == 18 and all(week == int(week) and 100 < week <= 118 for week in weeks)


def test_same_seed_makes_the_same_set_and_another_seed_another(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path, seed in zip(paths, (7, 7, 8), strict=True):
        make_set(connection, "store_sales", 1, seed, Mix(0.2, 0.5), path)
    first, again, other = (rows(connection, f"FROM read_parquet('{path}') ORDER BY ALL") for path in paths)
    assert first == again != other


def test_set_with_a_duplicate_key_is_refused(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    connection.execute("INSERT INTO store_sales FROM store_sales")
    with pytest.raises(MachineError, match=r"refresh 1 of store_sales: found \(200, .* allowed: a key a row"):
        make_set(connection, "store_sales", 1, 7, Mix(1.0, 1.0), tmp_path / "set.parquet")


@pytest.fixture
def merged(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> tuple[str, list[Path]]:
    """Return a base of three rows, and two refresh sets."""
    sets = ("(2, 'B'), (4, 'D')", "(4, 'DD'), (5, 'E'), (1, 'A')")
    paths = [tmp_path / f"{number}.parquet" for number in range(len(sets))]
    for path, values in zip(paths, sets, strict=True):
        connection.execute(f"COPY (FROM (VALUES {values}) AS t(k, v)) TO '{path}' (FORMAT parquet)")
    return "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) AS t(k, v)", paths


def test_expected_table_after_two_merges(connection: duckdb.DuckDBPyConnection, merged: tuple[str, list[Path]]) -> None:
    create_expected(connection, "held", *merged, ("k",))
    assert rows(connection, "FROM held ORDER BY k") == [(1, "A"), (2, "B"), (3, "c"), (4, "DD"), (5, "E")]


@pytest.mark.parametrize(
    "wrong",
    [
        "(1, 'a'), (2, 'B'), (3, 'c'), (4, 'D')",  # the second set was left out
        "(1, 'A'), (2, 'B'), (3, 'c'), (4, 'D'), (5, 'E')",  # they were merged in the other order
        "(1, 'A'), (2, 'B'), (3, 'c'), (4, 'DD'), (5, 'E'), (5, 'E')",  # the second was inserted twice
        "(1, 'A'), (2, 'B'), (3, 'c'), (4, 'DD'), (5, 'E'), (1, 'a')",  # a changed row's old version was left
    ],
)
def test_results_of_wrong_merges_are_detected(
    connection: duckdb.DuckDBPyConnection, merged: tuple[str, list[Path]], wrong: str
) -> None:
    create_expected(connection, "held", *merged, ("k",))
    columns = {"k": "INTEGER", "v": "VARCHAR"}
    right = checksum(connection, "held", columns, ("k",))
    other = checksum(connection, f"(SELECT * FROM (VALUES {wrong}) AS t(k, v))", columns, ("k",))
    assert right.difference(other)


def test_set_of_the_synthetic_table_touches_the_expected_files(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "set.parquet"
    made = micro.make_set(connection, 1_000, 10, 5, 3, path)
    assert made["updates"] == made["inserts"] == 5 and 1 <= made["touched"] <= 5
    found = rows(connection, f"SELECT key, value, value2, partition FROM '{path}' ORDER BY key")
    old, new = found[:5], found[5:]
    assert [row[0] for row in new] == list(range(1_000, 1_005))
    assert len({int(str(row[0])) // 100 for row in old}) == made["touched"]
    for key, value, text, partition in found:
        number = int(str(key))
        assert float(str(value)) == number * 7.1 + 13.4 + (number < 1_000)
        assert (text, partition) == (str(91 * number), number % 1_000)


def test_expected_share_of_touched_files() -> None:
    assert micro.expected_share(1, 1) == 1
    assert micro.expected_share(10, 1) == pytest.approx(0.1)
    assert micro.expected_share(10, 2) == pytest.approx(0.19)
    assert micro.expected_share(1_000, 35) == pytest.approx(0.0344, abs=1e-4)
    assert micro.expected_share(1_000, 3_500) == pytest.approx(0.9699, abs=1e-4)


def test_tables_are_those_of_the_standard() -> None:
    assert len(TABLES) == 24 and len(FACTS) == 7
    assert key_of("web_returns") == ("wr_item_sk", "wr_order_number", "wr_returned_date_sk")
    assert key_of("time_dim") == ("t_time_sk",)
    assert measures(SALES, ["ss_item_sk", "ss_promo_sk", "ss_ticket_number", "ss_quantity"]) == ("ss_quantity",)
    text = "SELECT * FROM store_sales, customer_address WHERE ca_address_sk = ss_addr_sk"
    assert named_in(text) == ("customer_address", "store_sales")
