"""Integer tables of the distribution of yellow_tripdata_2025-11, from which the replica is drawn.

Sources, by reliability:

- *exact, from the month itself*: number of trips, trips on the 15th, longest trip, the pickups in zones 31, 85,
  137, 148 and 243 and in the dozen rarest zones;
- *published for 2025*: the ten busiest pickup zones, the share of rows without the five metered columns, the tips
  of card payers;
- *from a random sample of 5,000 trips of 2025-02*: vendors, payment types, passengers, rate codes, and the
  components of total_amount for each vendor;
- *from a random sample of 100,000 trips of 2020 to 2024*: all other zones; of 2024: hours and speeds;
- *fitted*: distances by part of the city, speeds and fares, so that their overall quantiles are close to
  those of 2025-02;
- *plausible shape only*: the distribution of trips over the days other than the 15th (a weekly pattern, with
  fewer trips on Veterans Day and Thanksgiving).

All values are integers: shares in parts of 10,000, money in cents, distance in hundredths of a mile, time in
seconds, speed in hundredths of a mile per hour. Integer sums are the same on every machine.
"""

from __future__ import annotations

import csv
from pathlib import Path

# fmt: off
MONTH_TRIPS = 4_181_444
LONGEST_TRIP_SECONDS = 326_328
MONTH_START = "2025-11-01"

# Trips by day of the month; the 15th is exact.
DAY_TRIPS = (
    165379, 131482, 125318, 141754, 148944, 155107, 154080, 165379, 131482, 125318, 134666, 148944, 155107,
    154082, 162604, 131482, 125318, 141754, 148944, 155107, 154080, 165379, 131482, 125318, 141754, 129581,
    86860, 101693, 127342, 115704,
)
# Saturdays and Sundays of November 2025, which began on a Saturday.
WEEKEND_DAYS = frozenset({1, 2, 8, 9, 15, 16, 22, 23, 29, 30})
WEEKDAY_HOURS = (
    189, 90, 49, 32, 35, 67, 163, 334, 453, 461, 462, 487, 523, 542, 595, 619, 618, 695, 740, 644, 601, 625,
    565, 411,
)
WEEKEND_HOURS = (
    546, 435, 307, 199, 114, 53, 85, 125, 196, 306, 410, 485, 552, 579, 588, 595, 667, 675, 654, 586, 489,
    495, 475, 384,
)
MEDIAN_SPEED_BY_HOUR = (
    1380, 1464, 1489, 1550, 1719, 1619, 1360, 1080, 893, 831, 789, 751, 760, 779, 778, 764, 797, 799, 837,
    919, 993, 1038, 1079, 1153,
)

# Flex fares (payment_type 0) form the last block of the file; these parts of 10,000 rows belong to it.
FLEX_SHARE = 2383
STRAY_SHARE = 45  # rows of a block that are one hour away from their neighbours

VENDORS_METERED = {1: 2271, 2: 7711, 7: 18}
VENDORS_FLEX = {1: 1244, 2: 8756}
PAYMENT_TYPES = {1: 8457, 2: 1192, 3: 72, 4: 279}
# Only vendor 1 leaves the number of passengers at 0, stores trips before forwarding them, and writes rate code 99.
PASSENGERS = {1: 8060, 2: 1360, 3: 327, 4: 176, 5: 54, 6: 23}
PASSENGERS_VENDOR_1 = {0: 273, 1: 7810, 2: 1340, 3: 320, 4: 180, 5: 54, 6: 23}
STORED_VENDOR_1_SHARE = 443
UNKNOWN_RATE_VENDOR_1_SHARE = 659
NEGOTIATED_RATE_SHARE = 77
NASSAU_RATE_SHARE = 26

# Share of trips of length zero, and of negative fares (vendor 2 books a reversal), by payment type.
ZERO_DISTANCE_SHARES = (773, 82, 260, 1429, 741)
NEGATIVE_SHARES = (0, 0, 618, 3705, 7325)

# Quantiles: (parts of 10,000, value), with linear interpolation between two knots.
CITY_DISTANCE = (
    (0, 15), (100, 32), (500, 50), (1000, 63), (2500, 93), (5000, 140), (7500, 212), (9000, 320),
    (9500, 420), (9900, 640), (9990, 1000), (10000, 1900),
)
OUTER_DISTANCE = (
    (0, 30), (500, 90), (1000, 150), (2500, 270), (5000, 440), (7500, 690), (9000, 1010), (9500, 1300),
    (9900, 1900), (9990, 2800), (10000, 6900),
)
LAGUARDIA_DISTANCE = (
    (0, 90), (500, 380), (2500, 870), (5000, 990), (7500, 1160), (9000, 1430), (9900, 2050), (9990, 3000),
    (10000, 5500),
)
KENNEDY_DISTANCE = (
    (0, 110), (500, 590), (1500, 1000), (2500, 1410), (5000, 1705), (7500, 1860), (9000, 2010),
    (9900, 2450), (9990, 3800), (10000, 9000),
)
# Speed of one trip, in parts of 10,000 of the speed expected for its hour and length.
SPEED_FACTOR = (
    (0, 1000), (10, 2500), (100, 4800), (500, 6700), (1000, 7600), (2500, 9400), (5000, 11500), (7500, 13700),
    (9000, 16200), (9500, 18000), (9900, 22500), (9990, 32000), (10000, 70000),
)
# Upfront fares, in parts of 10,000 of the fare that the meter would have shown.
FLEX_FARE_FACTOR = (
    (0, 5600), (500, 8200), (2500, 10200), (5000, 12400), (7500, 14800), (9500, 18600), (9990, 26000),
    (10000, 42000),
)
NEGATIVE_FLEX_SHARE = 1609
NEGATIVE_FLEX_FARE = ((0, -1500), (400, -900), (1500, -475), (9000, -475), (9800, -150), (10000, -1))
NEGOTIATED_FARE = (
    (0, 100), (1000, 2000), (3000, 5000), (5000, 7500), (8000, 12000), (9900, 25000), (10000, 60000)
)

# Tips of card payers: percent of the sum before the tip, or whole dollars (-1), or an odd amount in cents (-2).
CARD_TIP_CHOICES = {20: 5381, 25: 900, 30: 640, 15: 330, 10: 280, -1: 1400, -2: 569, 0: 500}
TIP_DOLLARS = ((0, 100), (3000, 200), (6000, 300), (8000, 500), (9500, 1000), (9990, 3000), (10000, 10000))
TIP_ODD_CENTS = ((0, 1), (500, 100), (5000, 330), (9000, 900), (9900, 2000), (10000, 9000))
FLEX_TIP_SHARE = 1431
FLEX_TIP_CENTS = (
    (0, 50), (2000, 200), (5000, 370), (8000, 620), (9500, 1061), (9990, 2400), (10000, 7378)
)

AIRPORT_TOLL_SHARE = 4700
OTHER_TOLL_SHARE = 130
BRIDGE_TOLL = 694
OTHER_TOLLS = {694: 7400, 1406: 900, 1606: 600, 520: 400, 260: 300, 2286: 200, 1388: 200}

# Durations that traffic cannot explain: meters left on for a day, and trips of duration zero.
DAY_LONG_SHARE = 5
DAY_LONG_SECONDS = ((0, 80_000), (3000, 85_600), (9800, 86_390), (9990, 90_000), (10000, 180_000))
NO_TIME_SHARE = 60

KENNEDY, LAGUARDIA, NEWARK = 132, 138, 1
# Zones 1 to 265. Pickups sum to the month's trips; 103 and 104 have none. Weights are those of zones as ends of trips.
# Yellow cabs owe the congestion surcharge south of 96th Street: in the business district, and in some zones above it.
_TEXT = Path(__file__).with_name("zones.csv").read_text()
_ZONES = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(_TEXT.splitlines())]
PICKUP_ZONE_TRIPS = tuple(row["pickups"] for row in _ZONES)
DROPOFF_ZONE_WEIGHTS = tuple(row["dropoffs"] for row in _ZONES)
CBD_ZONES, UPPER_MANHATTAN_ZONES, SURCHARGE_ZONES_ABOVE_60TH = (
    tuple(row["zone"] for row in _ZONES if row[part]) for part in ("cbd", "upper_manhattan", "surcharge_above_60th")
)

# Share of trips that end in the zone where they began, and in the same part of the city.
SAME_ZONE_SHARE = 210
SAME_PART_SHARE = 1700
