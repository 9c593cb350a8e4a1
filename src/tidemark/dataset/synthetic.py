"""Replica of yellow_tripdata_2025-11 for machines that cannot obtain the file itself.

A row depends only on the seed, its position and the number of rows, not on the machine or on the chunk size
with which it is generated. All arithmetic is on integers; money becomes a float by one division.

Replicated: the 20 columns with their types and order; metered trips first, by hour, then the flex fares,
whose five metered columns are null; trips by hour of each day (in the full month: 162,604 pickups on the
15th, plus or minus one for each of the two blocks) and pickups by zone (in the full month: exact); the
longest trip; the components of total_amount for each vendor; the skew of payment types, rate codes, zones,
distances, durations, fares and tips, as far as two samples of other months show it.

Not replicated: the correlation of zone and hour, or of a trip's end and start beyond the part of the city;
trips dated outside the month; sums that follow no rule; the bytes, the digest and the compressed size of
the file. Writing these rows costs what writing rows of these types and shapes costs; no conclusions about
taxis can be drawn from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.dataset import distribution as known
from tidemark.dataset.draws import (
    LEVELS,
    Integers,
    Words,
    category_table,
    chance,
    proportional,
    quantile_table,
    quarters,
    shuffled,
)
from tidemark.dataset.files import replacing
from tidemark.dataset.model import YELLOW, raw_schema
from tidemark.progress import Progress

ROW_GROUP_ROWS = 1_048_576  # as in the files of the TLC
CHUNK_ROWS = 131_072
HALF = LEVELS // 2
LONGEST_FROM_ROWS = 100_000  # a smaller replica has no trip of 90 hours
SCHEMA: pa.Schema = raw_schema(YELLOW)

Mask = npt.NDArray[np.bool_]

_HOURS = [
    trips * share
    for day, trips in enumerate(known.DAY_TRIPS, 1)
    for share in (known.WEEKEND_HOURS if day in known.WEEKEND_DAYS else known.WEEKDAY_HOURS)
]


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a replica of `rows` rows: the metered trips, then the flex fares, each block ordered by hour.

    Hours and zones get their exact share of the rows by counting, not by chance, so a row depends on the number
    of rows.
    """

    rows: int
    seed: int
    metered_rows: int
    metered_hour_ends: Integers
    flex_hour_ends: Integers
    zone_ends: Integers
    longest_row: int  # -1: none

    @classmethod
    def of(cls, rows: int, seed: int) -> Layout:
        """Return the layout for `rows` rows, at least one, and any integer seed."""
        metered = rows - rows * known.FLEX_SHARE // 10_000
        first = np.zeros(1, dtype=np.uint64)
        longest = int(shuffled(first, metered, seed, 90)[0]) if rows >= LONGEST_FROM_ROWS else -1
        return cls(
            rows=rows,
            seed=seed,
            metered_rows=metered,
            metered_hour_ends=proportional(_HOURS, metered),
            flex_hour_ends=proportional(_HOURS, rows - metered),
            zone_ends=proportional(known.PICKUP_ZONE_TRIPS, rows),
            longest_row=longest,
        )

    def hour_of_month(self, rows: Integers, flex: Mask) -> Integers:
        """Return the hour of the month, 0..719, in which each row's trip begins, before strays are moved."""
        metered = np.searchsorted(self.metered_hour_ends, rows, side="right")
        later = np.searchsorted(self.flex_hour_ends, rows - self.metered_rows, side="right")
        return np.where(flex, later, metered)

    def pickup_zone(self, positions: Words) -> Integers:
        """Return the pickup zone, 1..265, of each row, in random order."""
        places = shuffled(positions, self.rows, self.seed, 50).astype(np.int64)
        return np.searchsorted(self.zone_ends, places, side="right") + 1


_MONTH_START_SECONDS = int(np.datetime64(known.MONTH_START, "s").astype(np.int64))

_VENDORS = np.stack([category_table(known.VENDORS_METERED), category_table(known.VENDORS_FLEX)])
_PAYMENTS = category_table(known.PAYMENT_TYPES)
_PASSENGERS = np.stack([category_table(known.PASSENGERS), category_table(known.PASSENGERS_VENDOR_1)])
_TIP_CHOICES = category_table(known.CARD_TIP_CHOICES)
_TIP_DOLLARS = quantile_table(known.TIP_DOLLARS) // 100 * 100
_TIP_ODD_CENTS = quantile_table(known.TIP_ODD_CENTS)
_FLEX_TIPS = quantile_table(known.FLEX_TIP_CENTS)
_TOLLS = category_table(known.OTHER_TOLLS)
_SPEED_FACTORS = quantile_table(known.SPEED_FACTOR)
_FLEX_FACTORS = quantile_table(known.FLEX_FARE_FACTOR)
_NEGATIVE_FLEX_FARES = quantile_table(known.NEGATIVE_FLEX_FARE)
_NEGOTIATED_FARES = quantile_table(known.NEGOTIATED_FARE)
_DAY_LONG = quantile_table(known.DAY_LONG_SECONDS)
_MEDIAN_SPEEDS = np.array(known.MEDIAN_SPEED_BY_HOUR, dtype=np.int64)
_ZERO_DISTANCE = np.array([chance(share) for share in known.ZERO_DISTANCE_SHARES], dtype=np.int64)
_NEGATIVE = np.array([chance(share) for share in known.NEGATIVE_SHARES], dtype=np.int64)


def _zone_flags(zones: tuple[int, ...]) -> Mask:
    flags = np.zeros(266, dtype=np.bool_)
    flags[list(zones)] = True
    return flags


# Parts of the city: 0 the business district, 1 Manhattan above it, 2 anywhere else.
_PARTS = np.full(266, 2, dtype=np.int64)
_PARTS[list(known.UPPER_MANHATTAN_ZONES)] = 1
_PARTS[list(known.CBD_ZONES)] = 0
_IN_CBD = _zone_flags(known.CBD_ZONES)
_HAS_SURCHARGE = _zone_flags(known.CBD_ZONES + known.SURCHARGE_ZONES_ABOVE_60TH)
_DROPOFFS = np.stack(
    [
        category_table({z: weight for z, weight in enumerate(known.DROPOFF_ZONE_WEIGHTS, 1) if _PARTS[z] in parts})
        for parts in ((0,), (1,), (2,), (0, 1, 2))
    ]
)
# Distance by kind of route: within Manhattan, to or from elsewhere, LaGuardia, Kennedy.
_KNOTS = (known.CITY_DISTANCE, known.OUTER_DISTANCE, known.LAGUARDIA_DISTANCE, known.KENNEDY_DISTANCE)
_DISTANCES = np.stack([quantile_table(knots) for knots in _KNOTS])


class _Chunk:
    """Columns of a range of rows, computed in the order of their dependencies."""

    def __init__(self, layout: Layout, start: int, stop: int) -> None:
        self.layout = layout
        self.rows = np.arange(start, stop, dtype=np.int64)
        self.positions = self.rows.astype(np.uint64)
        self.flex = self.rows >= layout.metered_rows
        self.who()
        self.where_and_when()
        self.how_far()
        self.how_long()
        self.fares()
        self.charges()
        self.tips()

    def draw(self, stream: int) -> tuple[Integers, Integers, Integers, Integers]:
        return quarters(self.layout.seed, stream, self.positions)

    def who(self) -> None:
        vendor, payment, passengers, stored = self.draw(0)
        self.vendor = _VENDORS[self.flex.astype(np.int64), vendor]
        self.first_vendor = self.vendor == 1
        self.payment = np.where(self.flex, 0, _PAYMENTS[payment])
        self.passengers = _PASSENGERS[self.first_vendor.astype(np.int64), passengers]
        self.stored = self.first_vendor & (stored < chance(known.STORED_VENDOR_1_SHARE))

    def where_and_when(self) -> None:
        stray, side, same, ending = self.draw(1)
        hour = self.layout.hour_of_month(self.rows, self.flex)
        hour_of_day = hour % 24
        # One hour earlier or later, but never across midnight: each day keeps its number of trips.
        step = np.where((side & 1 == 0) & (hour_of_day > 0) | (hour_of_day == 23), -1, 1)
        hour = hour + np.where(stray < chance(known.STRAY_SHARE), step, 0)
        self.hour_of_day = hour % 24
        self.day = hour // 24 + 1
        second = (self.draw(2)[0] * 3600) >> 16
        self.pickup = _MONTH_START_SECONDS + hour * 3600 + second

        self.begins = self.layout.pickup_zone(self.positions)
        near = same < chance(known.SAME_ZONE_SHARE + known.SAME_PART_SHARE)
        table = np.where(near, _PARTS[self.begins], 3)
        self.same_zone = (same < chance(known.SAME_ZONE_SHARE)) | ((self.begins == 264) & (same < HALF))
        self.ends = np.where(self.same_zone, self.begins, _DROPOFFS[table, ending])

    def how_far(self) -> None:
        length, zero, huge, _ = self.draw(3)
        begin, end = _PARTS[self.begins], _PARTS[self.ends]
        way = np.where((begin == 2) | (end == 2), 1, 0)
        way = np.where((self.begins == known.LAGUARDIA) | (self.ends == known.LAGUARDIA), 2, way)
        way = np.where((self.begins == known.KENNEDY) | (self.ends == known.KENNEDY), 3, way)
        far = _DISTANCES[way, length]
        far = np.where(begin + end == 1, far * 140 // 100, far)
        far = np.where(self.same_zone, far // 3 + 1, far)
        self.travelled = far  # hundredths of a mile, as metered
        shown = np.where(zero < _ZERO_DISTANCE[self.payment], 0, far)
        # Some flex fares have a distance longer than any cab drives in a month.
        absurd = self.flex & (huge < 6)
        shown = np.where(absurd, far * (3000 + 17 * length % 4000), shown)
        self.distance = np.where(self.first_vendor, shown // 10 * 10, shown)

    def how_long(self) -> None:
        factor, odd, long, second = self.draw(4)
        # Longer trips use fast roads for more of their distance.
        usual = _MEDIAN_SPEEDS[self.hour_of_day] * (70 + np.minimum(self.travelled, 1800) // 9) // 100
        speed = np.maximum(usual * _SPEED_FACTORS[factor] // 10_000, 60)
        self.driven = np.minimum(30 + self.travelled * 3600 // speed, 6 * 3600)
        seconds = np.where(odd < chance(known.DAY_LONG_SHARE), _DAY_LONG[long], self.driven + second % 7)
        none = (odd >= HALF) & (odd < HALF + chance(known.NO_TIME_SHARE)) | (self.vendor == 7)
        seconds = np.where(none, 0, seconds)
        self.duration = np.where(self.rows == self.layout.longest_row, known.LONGEST_TRIP_SECONDS, seconds)

    def fares(self) -> None:
        rate, price, below, cents = self.draw(5)
        # Metered fare: 3.00, plus 0.70 for each fifth of a mile, or for each minute in traffic slower than that.
        slow = np.maximum(self.driven - self.travelled * 2, 0)  # seconds beyond those at 18 miles an hour
        meter = 300 + 70 * (np.maximum(self.travelled - slow // 12, 0) // 20 + slow // 60)
        middle = (_PARTS[self.begins] < 2) | (_PARTS[self.ends] < 2)
        kennedy = (self.begins == known.KENNEDY) | (self.ends == known.KENNEDY)
        code = np.ones(self.rows.shape, dtype=np.int64)
        code = np.where(rate >= LEVELS - chance(known.NASSAU_RATE_SHARE), 4, code)
        code = np.where(rate < chance(known.NEGOTIATED_RATE_SHARE), 5, code)
        code = np.where(self.ends == known.NEWARK, 3, code)
        code = np.where(kennedy & middle, 2, code)
        other = self.first_vendor & (price < chance(known.UNKNOWN_RATE_VENDOR_1_SHARE)) & (code == 1)
        self.rate = np.where(other, 99, code)
        fare = np.where(code == 2, 7000, meter)
        fare = np.where(code == 3, meter + 2000, fare)
        fare = np.where(code == 4, meter * 3 // 2, fare)
        fare = np.where(code == 5, _NEGOTIATED_FARES[price], fare)
        upfront = meter * _FLEX_FACTORS[price] // 10_000
        upfront = np.where(below < chance(known.NEGATIVE_FLEX_SHARE), _NEGATIVE_FLEX_FARES[cents], upfront)
        fare = np.where(self.flex, upfront, fare)
        self.reversed = (self.vendor == 2) & (below < _NEGATIVE[self.payment])
        self.fare = fare

    def charges(self) -> None:
        toll, kind, odd, flex_extra = self.draw(6)
        overnight = (self.hour_of_day >= 20) | (self.hour_of_day < 6)
        weekend = np.isin(self.day, list(known.WEEKEND_DAYS))
        rush = (self.hour_of_day >= 16) & (self.hour_of_day < 20) & ~weekend
        extra = np.where(overnight, 100, np.where(rush, 250, 0)) * (self.rate == 1)
        extra += np.where((self.rate == 2) & rush, 500, 0)
        extra += np.where(self.begins == known.LAGUARDIA, 500, 0)
        airport_pickup = (self.begins == known.LAGUARDIA) | (self.begins == known.KENNEDY)
        self.airport = np.where(airport_pickup, 175, 0)
        self.congestion = np.where(_HAS_SURCHARGE[self.begins] | _HAS_SURCHARGE[self.ends], 250, 0)
        self.cbd = np.where(_IN_CBD[self.begins] | _IN_CBD[self.ends], 75, 0)
        airport_way = airport_pickup | (self.ends == known.LAGUARDIA) | (self.ends == known.KENNEDY)
        over_bridge = airport_way & (toll < chance(known.AIRPORT_TOLL_SHARE))
        elsewhere = ~airport_way & (toll < chance(known.OTHER_TOLL_SHARE))
        self.tolls = np.where(over_bridge, known.BRIDGE_TOLL, np.where(elsewhere, _TOLLS[kind], 0))
        self.mta = np.where(np.isin(self.rate, (3, 4)) | (odd < chance(60)), 0, 50)
        self.improvement = np.where(odd >= LEVELS - chance(100), 0, 100)
        metered_extra = extra + np.where(self.first_vendor, self.congestion + self.airport + self.cbd, 0)
        rare_extra = np.where(flex_extra < chance(255), np.where(kind & 1 == 0, 100, 250), 0)
        self.extra = np.where(self.flex, rare_extra, metered_extra)

    def tips(self) -> None:
        choice, amount, flex_tip, flex_amount = self.draw(7)
        sums = self.fare + self.extra + self.mta + self.tolls + self.improvement
        # Vendor 1's extra includes these charges already; flex fares include them, although their columns are null.
        sums += np.where(self.first_vendor & ~self.flex, 0, self.congestion + self.cbd)
        sums += np.where(self.first_vendor | self.flex, 0, self.airport)
        chosen = _TIP_CHOICES[choice]
        card = np.where(chosen > 0, (sums * chosen + 50) // 100, 0)
        card = np.where(chosen == -1, _TIP_DOLLARS[amount], card)
        card = np.where(chosen == -2, _TIP_ODD_CENTS[amount], card)
        tip = np.where(self.payment == 1, card, 0)
        tipped = self.flex & (flex_tip < chance(known.FLEX_TIP_SHARE)) & (self.fare > 0)
        self.tip = np.where(tipped, _FLEX_TIPS[flex_amount], tip)
        self.sign = np.where(self.reversed, -1, 1)
        self.total = sums * self.sign + self.tip

    def batch(self) -> pa.RecordBatch:
        def money(cents: Integers) -> npt.NDArray[np.float64]:
            return cents / 100.0

        def metered(values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> pa.Array:
            return pa.array(values, mask=self.flex)

        sign = self.sign
        columns = [
            pa.array(self.vendor.astype(np.int32)),
            pa.array(self.pickup * 1_000_000).cast(pa.timestamp("us")),
            pa.array((self.pickup + self.duration) * 1_000_000).cast(pa.timestamp("us")),
            metered(self.passengers),
            pa.array(money(self.distance)),
            metered(self.rate),
            pa.DictionaryArray.from_arrays(
                pa.array(self.stored.astype(np.int8), mask=self.flex), pa.array(["N", "Y"], pa.large_string())
            ).cast(pa.large_string()),
            pa.array(self.begins.astype(np.int32)),
            pa.array(self.ends.astype(np.int32)),
            pa.array(self.payment),
            pa.array(money(self.fare * sign)),
            pa.array(money(self.extra * sign)),
            pa.array(money(self.mta * sign)),
            pa.array(money(self.tip)),
            pa.array(money(self.tolls * sign)),
            pa.array(money(self.improvement * sign)),
            pa.array(money(self.total)),
            metered(money(self.congestion * sign)),
            metered(money(self.airport * sign)),
            pa.array(money(self.cbd * sign)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def chunk(layout: Layout, start: int, stop: int) -> pa.RecordBatch:
    """Return rows `start` to `stop` (exclusive) of a replica, with the schema of the month."""
    return _Chunk(layout, start, stop).batch()


def write_replica(path: Path, rows: int, seed: int, chunk_rows: int = CHUNK_ROWS) -> None:
    """Write a replica to `path` in constant memory, in row groups of 1,048,576 rows."""
    layout = Layout.of(rows, seed)
    with (
        replacing(path) as sink,
        pq.ParquetWriter(sink, SCHEMA, compression="zstd", write_page_checksum=True) as writer,
        Progress("synthetic trips", rows, " rows") as progress,
    ):
        for group in range(0, rows, ROW_GROUP_ROWS):
            end = min(group + ROW_GROUP_ROWS, rows)
            chunks = []
            for start in range(group, end, chunk_rows):
                chunks.append(chunk(layout, start, min(start + chunk_rows, end)))
                progress.update(start)
            writer.write_table(pa.Table.from_batches(chunks), row_group_size=ROW_GROUP_ROWS)
