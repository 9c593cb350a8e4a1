# /// script
# requires-python = "==3.12.*"
# dependencies = []
# ///
"""The labels of LHBench's figure 3 (rows updated) against its own times: a hundred times fewer rows explain them.

A merge that copies files costs what it touches. Half of a label's rows update uniformly drawn rows of a table of 1,000
files, so that the share of files touched follows from the label; a line through the four times over these shares has to
pass near them. Prints one line of JSON. Nothing is measured: the times are the figure's, read off it to 5 s.
"""

import json

FILES = 1_000
TIMES_S = {7_000: 60, 70_000: 213, 700_000: 646, 7_000_000: 665}  # "Rows Updated", Iceberg that copies files


def worst_miss(factor: int) -> tuple[float, list[float]]:
    """The largest distance of a time from the line, as a share of it, with labels divided by `factor`; the shares."""
    shares = [1 - (1 - 1 / FILES) ** (label / factor / 2) for label in TIMES_S]
    times = list(TIMES_S.values())
    mean_share, mean_time = sum(shares) / len(shares), sum(times) / len(times)
    over = sum((share - mean_share) * (time - mean_time) for share, time in zip(shares, times, strict=True))
    slope = over / sum((share - mean_share) ** 2 for share in shares)
    start = mean_time - slope * mean_share
    misses = [abs(start + slope * share - time) / time for share, time in zip(shares, times, strict=True)]
    return max(misses), [round(share, 4) for share in shares]


as_labelled, shares = worst_miss(1)
hundredth, shares_of_hundredth = worst_miss(100)
said = (
    f"a line over files touched misses a time by up to {100 * as_labelled:.0f} % with the labels as they stand, by "
    f"{100 * hundredth:.0f} % with a hundredth of them"
)
evidence = {"files touched, as labelled": shares, "files touched, a hundredth": shares_of_hundredth, "times": TIMES_S}
seen = as_labelled > 0.2 and hundredth < 0.2
print(json.dumps({"seen": seen, "said": said, "versions": {}, "evidence": evidence}))
