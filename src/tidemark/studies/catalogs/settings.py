"""Section `catalogs` of the configuration, and the settings that a series takes from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import UNSET

from tidemark.errors import ConfigError
from tidemark.runs.spec import HasSettings, WorkloadSettings
from tidemark.schema import Origin, one_of
from tidemark.settings import decoded, or_else
from tidemark.studies.catalogs.config import Protocol
from tidemark.systems.registry import SystemEntry

SECTION = "catalogs"
CREATE, CRASH = "create", "crash"
CRASH_USERS = 8  # users during kills, or the nearest measured number below
ALONE = 1  # users of a sequential series
LONGEST_PATH = 255  # characters of a namespace's path that fit into the reference server's databases
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

    @property
    def label(self) -> str:
        """Mode as a path component."""
        return f"{USERS}{self.users}"


def users_of(series: HasSettings) -> int:
    """Return the number of users of a planned or measured series."""
    return CatalogSettings.of(series).users


@dataclass(frozen=True, slots=True)
class CatalogsSection:
    """Parsed section."""

    protocol: Protocol
    systems: tuple[SystemEntry, ...]
    parts: tuple[str, ...]
    timeout_seconds: float
    given: Mapping[str, Any]  # the complete section by key

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, origin: Origin) -> CatalogsSection:
        """Parse the section. Raises ConfigError, with the place of the key, for unknown names and too deep trees."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        sizes = decoded(given["protocols"][protocol], Protocol)
        for key, depth in (("depth", sizes.depth), ("concurrent_depth", sizes.concurrent_depth)):
            if depth is not UNSET and longest_path(depth) > LONGEST_PATH:
                allowed = max(each for each in range(1, 21) if longest_path(each) <= LONGEST_PATH)
                raise ConfigError(
                    f"{origin.place((SECTION, 'protocols', protocol, key))}: found {depth}; allowed: at most "
                    f"{allowed}, because catalogs keep a namespace's path in {LONGEST_PATH} characters"
                )
        if given["parts"][0] != CREATE:
            raise ConfigError(
                f"{origin.place((SECTION, 'parts'))}: found '{given['parts'][0]}' first; allowed: '{CREATE}', without "
                "which there is nothing to read or to update"
            )
        if CRASH in given["parts"][:-1]:
            raise ConfigError(
                f"{origin.place((SECTION, 'parts'))}: found '{CRASH}' before '{given['parts'][-1]}'; allowed: "
                f"'{CRASH}' at the end, because a server that was killed is not the one that the other parts measure"
            )
        return cls(
            protocol=sizes,
            systems=tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items()),
            parts=tuple(given["parts"]),
            timeout_seconds=given["timeout_seconds"],
            given=given,
        )

    def settings(self, users: int) -> CatalogSettings:
        """Return the settings of a series with this number of users."""
        sizes = self.protocol
        several = users > ALONE
        return CatalogSettings(
            users=users,
            depth=or_else(sizes.concurrent_depth, sizes.depth) if several else sizes.depth,
            parts=",".join(self.parts),
            mixed_requests=sizes.mixed_requests,
            open_seconds=float(sizes.open_seconds),
            rate=float(sizes.concurrent_rate if several else sizes.sequential_rate),
            hot_updates=sizes.hot_updates,
            appends=sizes.appends,
            races=sizes.races,
            churns=sizes.churns,
            kills=sizes.kills if CRASH in self.parts and users == killed_users(sizes.users) else 0,
            timeout_seconds=float(self.timeout_seconds),
        )


def killed_users(measured: tuple[int, ...]) -> int:
    """Return the measured number of users with which servers are killed."""
    return max((users for users in measured if users <= CRASH_USERS), default=min(measured))


def longest_path(depth: int) -> int:
    """Return the length of the longest path in a tree of `depth` levels, with dots between names and a run's mark."""
    last = [2**level - 1 for level in range(1, depth)]  # the rightmost node of each level has the longest number
    return len("NS_0_warm_up.Ramp") + sum(len(f".NS_{2 * node}") for node in last)
