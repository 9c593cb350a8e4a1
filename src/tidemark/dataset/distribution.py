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
CBD_ZONES = (
    4, 12, 13, 45, 48, 50, 68, 79, 87, 88, 90, 100, 107, 113, 114, 125, 137, 144, 148, 158, 161, 162, 163,
    164, 170, 186, 209, 211, 224, 229, 230, 231, 232, 233, 234, 246, 249, 261,
)
UPPER_MANHATTAN_ZONES = (
    24, 41, 42, 43, 74, 75, 116, 120, 127, 128, 140, 141, 142, 143, 151, 152, 153, 166, 194, 202, 236, 237,
    238, 239, 243, 244, 262, 263,
)
# Yellow cabs owe the congestion surcharge south of 96th Street: in the business district and in these zones.
SURCHARGE_ZONES_ABOVE_60TH = (43, 140, 141, 142, 143, 151, 236, 237, 238, 239, 262, 263)

# Share of trips that end in the zone where they began, and in the same part of the city.
SAME_ZONE_SHARE = 210
SAME_PART_SHARE = 1700

# Pickups in zones 1, 2, 3 ... 265; they sum to the month's trips. Zones 103 and 104 have none.
PICKUP_ZONE_TRIPS = (
    124, 5, 124, 4217, 1, 22, 3473, 24, 124, 1240, 207, 1116, 21538, 703, 165, 83, 1158, 413, 83, 413, 165,
    331, 207, 15916, 1902, 413, 41, 496, 496, 19, 89, 289, 2604, 165, 1033, 537, 1654, 331, 1116, 620,
    19016, 10294, 69244, 41, 4671, 41, 289, 120258, 909, 27987, 785, 992, 24, 16, 248, 496, 41, 20, 14, 207,
    2026, 496, 579, 289, 3183, 1406, 124, 101572, 868, 13229, 703, 703, 17, 21207, 46259, 1984, 703, 372,
    95126, 992, 455, 1778, 372, 1, 1711, 165, 21083, 9880, 1240, 72138, 703, 372, 909, 248, 951, 41, 2356,
    24, 16, 70898, 124, 83, 0, 0, 1, 455, 92849, 289, 4, 18, 4, 744, 58579, 47541, 124, 5581, 331, 41, 455,
    41, 372, 248, 207, 165, 18851, 207, 537, 18, 1282, 1075, 83, 178548, 124, 331, 331, 537, 46493, 116244,
    413, 91650, 115297, 121262, 51179, 30550, 2191, 2315, 207, 51711, 124, 124, 48120, 5043, 41, 17, 248,
    19, 455, 26664, 1695, 41, 184402, 133388, 110997, 86028, 289, 23812, 413, 1199, 661, 125094, 124, 14,
    83, 579, 20, 14, 868, 41, 1530, 124, 2108, 496, 207, 20, 372, 136315, 3, 1943, 537, 41, 207, 124, 1158,
    248, 537, 579, 703, 331, 4, 165, 83, 207, 331, 4, 827, 41, 41, 413, 5457, 248, 27739, 413, 827, 23, 951,
    909, 289, 331, 661, 413, 41, 413, 1323, 7028, 1240, 4217, 248, 785, 89542, 131715, 51964, 6532, 54527,
    112481, 703, 165167, 189001, 97149, 119596, 41, 413, 579, 4901, 5622, 14, 55313, 1240, 496, 80861, 496,
    12, 124, 15, 827, 1654, 1116, 207, 124, 496, 1571, 17611, 58124, 97190, 33361, 10666,
)
# Weights of zones 1, 2, 3 ... 265 as ends of trips.
DROPOFF_ZONE_WEIGHTS = (
    234, 1, 13, 427, 2, 1, 320, 4, 10, 112, 11, 44, 640, 62, 15, 32, 132, 35, 5, 12, 21, 26, 8, 404, 171,
    38, 2, 40, 22, 1, 9, 12, 268, 14, 50, 67, 140, 25, 56, 78, 810, 598, 1243, 2, 257, 4, 24, 2546, 134,
    1119, 28, 68, 5, 20, 26, 43, 1, 2, 1, 15, 182, 54, 23, 8, 162, 102, 20, 2333, 64, 54, 30, 38, 14, 1020,
    1744, 73, 12, 29, 1970, 120, 22, 75, 33, 1, 32, 24, 665, 336, 116, 1384, 39, 58, 32, 8, 157, 6, 151, 14,
    1, 1390, 10, 18, 0, 0, 1, 47, 1978, 11, 2, 1, 1, 191, 1199, 917, 2, 344, 23, 6, 29, 11, 33, 11, 14, 25,
    423, 29, 89, 7, 172, 76, 26, 841, 25, 23, 20, 30, 1468, 955, 23, 2183, 2851, 2690, 1548, 793, 234, 116,
    15, 963, 20, 5, 1098, 187, 10, 4, 35, 1, 34, 896, 62, 24, 3366, 2561, 2266, 1909, 34, 779, 33, 109, 32,
    2823, 13, 1, 24, 25, 6, 1, 42, 10, 129, 13, 256, 34, 5, 1, 30, 2130, 1, 112, 82, 17, 22, 6, 62, 20, 44,
    55, 48, 54, 1, 46, 10, 52, 14, 1, 32, 1, 1, 28, 234, 27, 769, 24, 47, 1, 35, 77, 45, 25, 37, 48, 2, 13,
    148, 418, 90, 223, 24, 50, 2113, 2458, 1364, 502, 1506, 2272, 40, 4541, 4131, 2512, 2910, 7, 31, 22,
    239, 431, 1, 1636, 72, 21, 1640, 20, 5, 24, 1, 28, 222, 223, 45, 35, 25, 100, 399, 1617, 2278, 579, 325,
)
