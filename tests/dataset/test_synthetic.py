"""The replica: the same rows on every machine, in the shape of the month that it represents."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.dataset import distribution as known
from tidemark.dataset.draws import category_table, proportional, quantile_table, shuffled
from tidemark.dataset.model import YELLOW, check, raw_schema
from tidemark.dataset.synthetic import Layout, chunk, write_replica

METERED_ONLY = ["passenger_count", "RatecodeID", "store_and_fwd_flag", "congestion_surcharge", "Airport_fee"]
ROWS = 120_000


def replica(rows: int, seed: int, step: int) -> pa.Table:
    layout = Layout.of(rows, seed)
    return pa.Table.from_batches(
        [chunk(layout, start, min(start + step, rows)) for start in range(0, rows, step)]
    ).combine_chunks()


@pytest.fixture(scope="module")
def trips() -> pa.Table:
    return replica(ROWS, 3, 50_000)


def cents(table: pa.Table, column: str) -> np.ndarray:
    return np.rint(table[column].fill_null(0).to_numpy() * 100).astype(np.int64)


@given(rows=st.integers(1, 700), seed=st.integers(0, 2**63), step=st.integers(1, 200))
@settings(max_examples=25, deadline=None)
def test_a_row_does_not_depend_on_the_chunk_it_is_made_in(rows: int, seed: int, step: int) -> None:
    assert replica(rows, seed, rows).equals(replica(rows, seed, step))


def test_values_are_the_same_on_every_machine() -> None:
    digest = hashlib.sha256()
    for column in replica(5000, 20251101, 777).columns:
        digest.update(repr(column.to_pylist()).encode())
    assert digest.hexdigest() == "24a5d12b84c106d387a1b4931d5d841a9183bee6403f96fcfcaf821b3f7e9fe8"


def test_another_seed_gives_other_trips() -> None:
    assert not replica(1000, 1, 1000).equals(replica(1000, 2, 1000))


def test_file_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_replica(tmp_path / name, 3000, 5)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    write_replica(tmp_path / "c", 3000, 5, chunk_rows=17)
    assert pq.read_table(tmp_path / "c").equals(pq.read_table(tmp_path / "a"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 100])
def test_any_number_of_rows_makes_a_month_that_passes_the_check(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "trips.parquet"
    write_replica(path, rows, 0)
    found = check(path)
    assert (found.rows, found.kind, found.columns, found.unknown) == (rows, YELLOW, YELLOW.columns, ())


def test_columns_types_and_order_are_those_of_the_month(trips: pa.Table) -> None:
    assert trips.schema == raw_schema(YELLOW)
    assert trips.schema.field("store_and_fwd_flag").type == pa.large_string()
    assert trips.schema.field("tpep_pickup_datetime").type == pa.timestamp("us")
    assert len(trips.schema) == 20


def test_flex_fares_are_the_last_block_and_lack_the_metered_columns_together(trips: pa.Table) -> None:
    flex = pc.equal(trips["payment_type"], 0).to_numpy()
    count = ROWS * known.FLEX_SHARE // 10_000
    assert flex.sum() == count
    assert flex[-count:].all()
    for column in trips.column_names:
        nulls = trips[column].is_null().to_numpy()
        assert np.array_equal(nulls, flex if column in METERED_ONLY else np.zeros_like(flex)), column


def test_each_block_is_grouped_by_hour(trips: pa.Table) -> None:
    hours = trips["tpep_pickup_datetime"].cast(pa.int64()).to_numpy() // 3_600_000_000
    flex = pc.equal(trips["payment_type"], 0).to_numpy()
    for block in (hours[~flex], hours[flex]):
        falling = (np.diff(block) < 0).mean()
        assert 0.001 < falling < 0.01
    seconds = trips["tpep_pickup_datetime"].cast(pa.int64()).to_numpy() // 1_000_000
    assert 0.4 < (np.diff(seconds) >= 0).mean() < 0.6


def test_pickups_lie_in_november_and_no_trip_ends_before_it_begins(trips: pa.Table) -> None:
    pickup = trips["tpep_pickup_datetime"]
    assert str(pc.min(pickup).as_py())[:7] == "2025-11"
    assert str(pc.max(pickup).as_py())[:7] == "2025-11"
    seconds = pc.seconds_between(pickup, trips["tpep_dropoff_datetime"]).to_numpy()
    assert seconds.min() == 0
    assert seconds.max() == known.LONGEST_TRIP_SECONDS
    assert (seconds == known.LONGEST_TRIP_SECONDS).sum() == 1


def test_total_is_the_sum_that_each_vendor_uses(trips: pa.Table) -> None:
    parts = ["fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "improvement_surcharge"]
    base = sum(cents(trips, part) for part in parts)
    cbd = cents(trips, "cbd_congestion_fee")
    beside = cents(trips, "congestion_surcharge") + cents(trips, "Airport_fee") + cbd
    total = cents(trips, "total_amount")
    vendor, payment = trips["VendorID"].to_numpy(), trips["payment_type"].to_numpy()
    first, flex = (vendor == 1) & (payment > 0), payment == 0
    assert np.array_equal(total[first], base[first])
    rest = ~first & ~flex
    assert np.array_equal(total[rest], (base + beside)[rest])
    assert set(np.unique((total - base - cbd)[flex])) == {0, 250}


def test_shares_are_the_known_ones(trips: pa.Table) -> None:
    def share(column: str, value: object) -> float:
        return pc.sum(pc.equal(trips[column], value)).as_py() / ROWS

    assert share("payment_type", 1) == pytest.approx(0.645, abs=0.01)
    assert share("VendorID", 2) == pytest.approx(0.796, abs=0.01)
    assert share("VendorID", 7) == pytest.approx(0.0014, abs=0.0006)
    assert share("store_and_fwd_flag", "Y") == pytest.approx(0.0078, abs=0.002)
    assert share("cbd_congestion_fee", 0.75) == pytest.approx(0.7285, abs=0.02)
    assert share("trip_distance", 0) == pytest.approx(0.0276, abs=0.006)
    assert pc.approximate_median(trips["trip_distance"]).as_py() == pytest.approx(1.7, abs=0.2)
    assert pc.approximate_median(trips["fare_amount"]).as_py() == pytest.approx(12.8, abs=0.8)
    assert pc.approximate_median(trips["total_amount"]).as_py() == pytest.approx(20.2, abs=0.8)


def test_full_month_has_the_published_counts() -> None:
    layout = Layout.of(known.MONTH_TRIPS, 1)
    rows = np.arange(known.MONTH_TRIPS)
    hours = layout.hour_of_month(rows, rows >= layout.metered_rows)
    assert np.count_nonzero(hours // 24 == 14) == pytest.approx(162_604, abs=2)
    zones = np.bincount(layout.pickup_zone(rows.astype(np.uint64)), minlength=266)
    assert zones[[148, 31, 243, 137, 85]].tolist() == [51_711, 89, 4_901, 46_493, 1_711]
    assert zones[[0, 103, 104]].tolist() == [0, 0, 0]
    longest = chunk(layout, layout.longest_row, layout.longest_row + 1)
    seconds = pc.seconds_between(longest["tpep_pickup_datetime"], longest["tpep_dropoff_datetime"])
    assert seconds.to_pylist() == [326_328]


@given(count=st.integers(1, 5000), seed=st.integers(0, 2**40))
@settings(max_examples=40, deadline=None)
def test_the_shuffle_is_a_bijection(count: int, seed: int) -> None:
    places = shuffled(np.arange(count, dtype=np.uint64), count, seed, 50)
    assert np.array_equal(np.sort(places), np.arange(count))


@given(weights=st.lists(st.integers(0, 10**12), min_size=1, max_size=50).filter(sum), total=st.integers(0, 10**9))
def test_proportional_parts_sum_to_the_total_and_deviate_by_less_than_one(weights: list[int], total: int) -> None:
    ends = proportional(weights, total)
    assert ends[-1] == total
    parts = np.diff(ends, prepend=0)
    assert all(abs(part - total * weight / sum(weights)) < 1.001 for part, weight in zip(parts, weights, strict=True))


def test_tables_hold_every_category_and_stay_between_their_knots() -> None:
    table = category_table({5: 1, 9: 3, 7: 0})
    assert np.unique(table, return_counts=True)[1].tolist() == [16_384, 49_152]
    values = quantile_table(((0, -10), (5000, 10), (10_000, 1000)))
    assert (values[0], values[32_768]) == (-10, 10)
    assert values[-1] in range(990, 1001)
    assert (np.diff(values) >= 0).all()
