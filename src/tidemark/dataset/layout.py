"""Assignment of a replica's rows to trips: block, hour and zone of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidemark.dataset import distribution as known
from tidemark.dataset.draws import Integers, Words, proportional, shuffled
from tidemark.errors import ConfigError

LONGEST_FROM_ROWS = 100_000  # a smaller replica has no trip of 90 hours

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
        """Return the layout for `rows` rows and any integer seed; raise ConfigError for fewer than 1 row."""
        if rows < 1:
            raise ConfigError(f"key 'dataset.synthetic_rows': found {rows}; allowed: 1 or more.")
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

    def is_longest(self, rows: Integers) -> Mask:
        mask: Mask = rows == self.longest_row
        return mask
