"""Section `freshness` of the configuration, and the settings that a series takes from it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from msgspec import UNSET

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.runs.spec import WorkloadSettings
from tidemark.settings import or_else
from tidemark.studies.freshness.config import Protocol
from tidemark.studies.section import Section

EVENT = "event"  # one commit per event
POLICY = re.compile(r"event|([1-9]\d*)(ms|s|rows)")
KILLS, RAMP, UPKEEP = "kills", "ramp", "upkeep"
# Systems whose upkeep is measured wherever the first is, even if the section does not list them: the same lake with
# inlined rows or another catalog, and the same table by another client.
ALSO = {
    "ducklake": ("ducklake-inlined-postgres", "ducklake-inlined", "ducklake-quack", "ducklake-sqlite"),
    "iceberg-pyiceberg": ("iceberg-duckdb",),
}
PRODUCER, MOVING = "producer", "pipeline"  # groups of processes: the sender of events, and their mover into the table


@dataclass(frozen=True, slots=True)
class Policy:
    """Commit policy of Tidemark's consumer: a time after the first waiting event, or a number of waiting events."""

    interval_ms: int | None
    rows: int | None

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Parse `event`, `100ms`, `1s` or `1000rows`."""
        if text == EVENT:
            return cls(None, 1)
        found = POLICY.fullmatch(text)
        assert found is not None, text
        number, unit = int(found[1]), found[2]
        return cls(None, number) if unit == "rows" else cls(number * (1000 if unit == "s" else 1), None)

    def whole(self, events: int, rounded: Callable[[float], int]) -> int:
        """Round `events` to complete commits, because the events of an incomplete commit never become visible."""
        return max(1, rounded(events / self.rows)) * self.rows if self.rows else events

    @property
    def words(self) -> str:
        if self.interval_ms is not None:
            return f"every {self.interval_ms / 1000:g} s"
        return "every event" if self.rows == 1 else f"every {self.rows:,} events"


@dataclass(frozen=True, slots=True)
class FreshnessSettings(WorkloadSettings):
    """Settings that decide a series, in addition to the system and its options."""

    policy: str
    rate: int  # events per second that are due; of the first step, if there are steps
    encoding: str
    kills: int
    steps: int  # at most, each with twice the rate of the previous one; 0: constant rate
    step_seconds: float
    warm: int  # events before the window
    look_ms: int  # between looks of the reader
    drain_seconds: float  # longest wait, after the last event, until all are visible
    upkeep: str = ""  # of the table, by the consumer (`Upkeep.parse`); empty in series without such a policy
    label_pattern: ClassVar[re.Pattern[str]] = re.compile(
        rf"(?P<policy>\w+)-(?P<rate>\d+)-(?P<encoding>\w+)(-{KILLS}-(?P<kills>\d+))?(-{RAMP}-(?P<steps>\d+))?"
    )
    lacking: ClassVar[Mapping[str, Any]] = {"upkeep": ""}

    @property
    def label(self) -> str:
        """Mode as a path component."""
        more = f"-{KILLS}-{self.kills}" if self.kills else f"-{RAMP}-{self.steps}" if self.steps else ""
        more += f"-{UPKEEP}-{self.upkeep}" if self.upkeep else ""
        return f"{self.policy}-{self.rate}-{self.encoding}{more}"

    @property
    def rules(self) -> Policy:
        return Policy.parse(self.policy)

    @property
    def is_steady(self) -> bool:
        """True if events are due at one rate, nothing is killed, and the table is left as it is."""
        return not self.kills and not self.steps and not self.upkeep


class FreshnessSection(Section[Protocol]):
    """The section, with the settings of its series."""

    __slots__ = ()

    @classmethod
    def read(cls, config: Config) -> Self:
        """Return the section. Raises ConfigError, with the place of the key, for unknown names and invalid numbers."""
        found = cls.of(config, "freshness", Protocol)
        if Policy.parse(found.sizes.policy).interval_ms is None:
            raise ConfigError(
                f"{found.place_of_size('policy')}: found '{found.sizes.policy}'; allowed: a time, such as 1s: it is "
                "what pipelines and consumers are set to alike"
            )
        return found

    def cells(self, name: str, is_pipeline: bool) -> Iterator[FreshnessSettings]:
        """Yield the settings of each series of the system `name`; a pipeline's events are always JSON."""
        sizes = self.sizes
        encoding = "json" if is_pipeline else self.given["encoding"]
        policies = sizes.intervals if is_pipeline else sizes.policies
        shapes = dict.fromkeys([(policy, sizes.rate) for policy in policies])
        shapes |= dict.fromkeys((sizes.policy, rate) for rate in sizes.rates)
        made = [self._cell(policy, rate, encoding) for policy, rate in shapes]
        if sizes.kills:
            made.append(replace(self._cell(sizes.policy, sizes.kill_rate, encoding), kills=sizes.kills))
        if sizes.ramp is not UNSET and name not in or_else(sizes.ramp.without, ()):
            climbing = self._cell(sizes.policy, sizes.ramp.rate, encoding)
            made.append(replace(climbing, steps=sizes.ramp.steps, step_seconds=float(sizes.ramp.step_seconds)))
        for each in made:
            # Events left after a climb need not arrive: by then it is known which rate was too high.
            is_patient = is_pipeline and not each.steps
            longest = sizes.drain_seconds if is_patient else or_else(sizes.own_drain_seconds, sizes.drain_seconds)
            yield replace(each, drain_seconds=longest)

    def upkeep_cells(self) -> Iterator[tuple[str, FreshnessSettings]]:
        """Yield the system and the settings of each series of a table that its consumer maintains."""
        given = self.sizes.upkeep
        if given is UNSET:
            return
        longest = or_else(self.sizes.own_drain_seconds, self.sizes.drain_seconds)
        for name, rate, text in itertools.product(given.systems, given.rates, given.policies):
            policy, _, upkeep = text.partition(" ")
            made = self._cell(policy, rate, self.given["encoding"])
            yield name, replace(made, upkeep=upkeep.replace(" ", "-"), drain_seconds=longest)

    def window_seconds(self, settings: FreshnessSettings) -> float:
        """Return the seconds in which events arrive: at least two commits, and more for each kill."""
        if settings.steps:
            return settings.steps * settings.step_seconds
        rules = settings.rules
        commits = 2 * (rules.rows / settings.rate if rules.rows else (rules.interval_ms or 0) / 1000)
        kept = self.sizes.upkeep if settings.upkeep else UNSET
        least = self.sizes.window_seconds if kept is UNSET else kept.window_seconds
        return max(float(least), commits) + self.sizes.kill_seconds * settings.kills

    def _cell(self, policy: str, rate: int, encoding: str) -> FreshnessSettings:
        return FreshnessSettings(
            policy=policy,
            rate=rate,
            encoding=encoding,
            kills=0,
            steps=0,
            step_seconds=0.0,
            warm=Policy.parse(policy).whole(self.given["warm"], math.ceil),
            look_ms=self.given["look_ms"],
            drain_seconds=0.0,
        )
