"""Settings of a series: the users, and the requests that they send."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from tidemark.runs.spec import HasSettings, WorkloadSettings

CREATE, CRASH = "create", "crash"
ALONE = 1  # users of a sequential series
COUNTED_DEPTH, COUNTED_REQUESTS = 3, 16  # tree depth, and requests about one table, while statements are counted
USERS = "users-"


@dataclass(frozen=True, slots=True)
class CatalogSettings(WorkloadSettings):
    """Settings that decide what a series requests from its catalog, in addition to the system and its options."""

    users: int
    depth: int
    parts: str  # names separated by commas, in order
    mixed_requests: int
    open_seconds: float
    rate: float  # arrivals per second in open loops
    hot_updates: int
    appends: int
    races: int
    churns: int
    kills: int  # of each server and database; 0 in most series
    timeout_seconds: float
    label_pattern: ClassVar[re.Pattern[str]] = re.compile(f"{USERS}(?P<users>[0-9]+)")


def users_of(series: HasSettings) -> int:
    """Return the number of users of a planned or measured series."""
    return CatalogSettings.of(series).users


def longest_path(depth: int) -> int:
    """Return the length of the longest path in a tree of `depth` levels, with dots between names and a run's mark."""
    last = [2**level - 1 for level in range(1, depth)]  # the rightmost node of each level has the longest number
    return len("NS_0_warm_up.Ramp") + sum(len(f".NS_{2 * node}") for node in last)
