"""Study of the thesis on stream writes, single events and batches, cold and hot: its series and their workload."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import UNSET, structs

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.measure.workload import Evict, Workload
from tidemark.runs.plan import Goal
from tidemark.runs.spec import TWIN, SeriesSpec
from tidemark.schema import sections
from tidemark.services.kafka import Kafka
from tidemark.settings import or_else
from tidemark.studies.streams.config import Protocol
from tidemark.studies.streams.session import Rates, Session
from tidemark.studies.streams.settings import AHEAD, PRODUCER, SECTION, StreamSettings, StreamsSection
from tidemark.studies.study import Study
from tidemark.systems.base import Capability, Variant
from tidemark.systems.registry import SystemEntry, spec_of, variant, with_defaults
from tidemark.systems.tables import TableSystem

STUDY = Study(
    name="streams",
    title="Evaluating Data Stream Write Performance in Lakehouse Systems",
    question="How fast can a data stream be written into a lakehouse table, event by event and in batches?",
)
COMMIT_SECONDS = 0.05  # of a commit, if nothing else is known
FILL_SECONDS = 1.0  # of the topic, for a window: it is filled once for all windows of a session
LONGEST_SECONDS = 3600.0  # longest window that ends by its number of commits, unless the sweep sets another
PROCESSORS = ("threads", "cpus")  # axes that are limited by the machine's processors


class Streams(Workload):
    """Workload that writes trips through Kafka into a table: poll, decode, assemble, write."""

    name = "streams"
    measurement = 1
    runner = "tidemark.studies.streams.runner"
    services = (Kafka,)
    excluded_groups = (Kafka.name, PRODUCER)

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings = StreamSettings.of(spec)
        self.ends_by_itself = self.settings.commits > 0
        self.evicts = Evict(self.settings.evict)
        self.rates = Rates(private / "rates.json", f"{spec.stack} {spec.name} {spec.mode}", self.settings.encoding)

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the likely seconds, with topic filling; a window ended by commits counts a typical time per commit."""
        settings, window = StreamSettings.of(spec), spec.window_seconds
        if settings.commits:
            window = min(window, max(settings.commits * COMMIT_SECONDS, settings.least_seconds))
        return FILL_SECONDS + window

    @contextmanager
    def start_processes(self, work: Path) -> Iterator[Session]:
        """Start the producer, which lives for a session; topics are created when the servers run."""
        from tidemark.stream.producer import Producer
        from tidemark.stream.topics import Topics

        with Producer(self.trips, work) as producer, closing(Topics(producer, self.spec.fingerprint)) as topics:
            yield Session(self.settings, self.rates, producer, topics)

    def taken_over(self, session: Session) -> Session:
        return replace(session, settings=self.settings, rates=self.rates)

    def needs_probe(self) -> bool:
        return self.settings.producer == AHEAD and self.rates.events_per_s is None

    @property
    def warm_up_seconds(self) -> float:
        return self.settings.least_seconds or self.spec.window_seconds

    @property
    def warms_up(self) -> bool:
        """False for a system that stores nothing: it has its full speed from the start."""
        return Capability.READ_BACK in self.variant.system.capabilities


def section(config: Config) -> StreamsSection:
    """Return the study's section, parsed and checked. Raises ConfigError if it is invalid."""
    return StreamsSection.parse(config.sections[SECTION], config.protocol, config.services, config.origin)


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    streams = section(config)
    made: list[SeriesSpec] = []
    for entry, mode in itertools.product((*streams.systems, *_twin(streams, config)), streams.modes):
        chosen = variant(entry, config.origin, (SECTION, "systems"), TableSystem)
        _check_compression(chosen, streams, config)
        settings = streams.settings(mode)
        if not _stores(chosen):
            settings = replace(settings, commits=0, least_seconds=0.0)  # its commits say nothing
        spec = spec_of(
            replace(base, cpus=streams.cpus),
            with_defaults(entry, streams.given),
            chosen,
            settings,
            window_seconds=streams.protocol.window_seconds if _stores(chosen) else streams.harness_window_seconds,
            runs=streams.protocol.runs,
        )
        sizes = streams.protocol
        if streams.main:
            made += _repeated(spec, sizes, chosen)
        for name, sweep in streams.sweeps.items():
            own = sizes if sweep.repeats is UNSET else structs.replace(sizes, repeats=sweep.repeats)
            for varied in _vary(spec, settings, name, streams, config):
                made += _repeated(varied, own, chosen, in_rounds=sweep.repeats is UNSET)
    return made


def _twin(streams: StreamsSection, config: Config) -> list[SystemEntry]:
    """Return the first system that stores rows, under a second name, if the protocol asks for that."""
    asked = streams.systems if streams.protocol.twin else ()
    storing = (each for each in asked if _stores(variant(each, config.origin, (SECTION, "systems"), TableSystem)))
    return [replace(each, name=each.name + TWIN, title=None) for each in itertools.islice(storing, 1)]


def goal(config: Config) -> Goal:
    """Return when the rounds of its series end."""
    sizes = section(config).protocol
    precision = sizes.precision if config.precision is None else config.precision
    minutes = sizes.budget_minutes if config.budget_minutes is None else config.budget_minutes
    return Goal(precision, minutes) if sizes.rounds else Goal()


def limits(config: Config) -> list[str]:
    """Return one sentence for each sweep value that this machine cannot provide."""
    most = os.cpu_count() or 1
    return [
        f"sweep '{name}': {value} {sweep.axis} were asked for, this machine has {most}; measured with {most}"
        for name, sweep in section(config).sweeps.items()
        if sweep.axis in PROCESSORS
        for value in sweep.values
        if isinstance(value, int) and value > most
    ]


def _stores(chosen: Variant) -> bool:
    return Capability.READ_BACK in chosen.system.capabilities


def _repeated(spec: SeriesSpec, sizes: Protocol, chosen: Variant, *, in_rounds: bool = True) -> list[SeriesSpec]:
    """Return one spec per repeat, rounds first. A system that stores nothing is only a bound, and runs once, last.

    Without `in_rounds`, or with a cold run alone, it is measured after the rounds: first results do not wait for it.
    """
    last = sizes.rounds + sizes.repeats
    of_rounds = in_rounds and spec.runs > 1
    first = last if not _stores(chosen) else 1 if of_rounds else sizes.rounds + 1
    return [
        replace(spec, repeat=number, in_round=in_round, block=_block(number, sizes) if in_round else 0)
        for number in range(first, last + 1)
        for in_round in [number <= sizes.rounds]
    ]


def _block(number: int, sizes: Protocol) -> int:
    """Return the block of a round, both from 1: the first round is a block by itself."""
    return 1 if number == 1 else 2 + (number - 2) // sizes.block


def _check_compression(chosen: Variant, streams: StreamsSection, config: Config) -> None:
    """Raise ConfigError if a system cannot write the codec. A system without codecs writes no Parquet and passes."""
    allowed, found = chosen.system.compressions, streams.given["compression"]
    if allowed and found not in allowed:
        raise ConfigError(
            f"{config.origin.place((SECTION, 'compression'))}: found '{found}'; the system '{chosen.name}' can be set "
            f"to write {', '.join(sorted(allowed))} only. Choose one of these, or take '{chosen.name}' out of "
            f"'{SECTION}.systems'"
        )


def _vary(
    base: SeriesSpec, settings: StreamSettings, name: str, streams: StreamsSection, config: Config
) -> Iterator[SeriesSpec]:
    """Yield `base` once for each value of the axis of the sweep `name`; yield nothing if the sweep excludes it."""
    sweep = streams.sweeps[name]
    if base.name not in or_else(sweep.systems, (base.name,)):
        return
    if settings.mode not in or_else(sweep.modes, streams.modes):
        return
    window = min(or_else(sweep.window_seconds, base.window_seconds), base.window_seconds * 6)
    if sweep.axis == "commits":
        window = or_else(sweep.window_seconds, LONGEST_SECONDS)
    if sweep.axis == "commits" or sweep.window_seconds is not UNSET:  # a sweep with a length of its own keeps to it
        settings = replace(settings, commits=0, least_seconds=0.0)
    for value in sweep.values:
        wanted = int if sweep.axis == "cpus" else type(getattr(settings, sweep.axis))
        place = config.origin.place((SECTION, "sweep", name, "values"))
        if type(value) is not wanted:
            raise ConfigError(f"{place}: found {value!r}; allowed for '{sweep.axis}': {wanted.__name__}")
        if why := _why_not(sweep.axis, value):
            raise ConfigError(f"{place}: found {value!r}; allowed for '{sweep.axis}': {why}")
        if sweep.axis in PROCESSORS:
            value = min(value, os.cpu_count() or 1)
        changed: dict[str, Any] = {sweep.axis: value}
        spec = replace(base, sweep=name, window_seconds=window, runs=or_else(sweep.runs, base.runs))
        if sweep.axis == "cpus":
            yield replace(spec, **changed)
        else:
            other = replace(settings, **changed)
            yield replace(spec, mode=other.label, settings=other.pairs)


def _why_not(axis: str, value: Any) -> str:
    """Return what the key that a sweep varies allows, if that is not `value`; else nothing."""
    keys = sections()[SECTION]["properties"]
    rule = keys.get(axis) or keys["protocols"]["additionalProperties"]["properties"][axis]
    allowed = rule.get("enum")
    if allowed is not None and value not in allowed:
        return ", ".join(map(str, allowed))
    least = min(1, rule.get("minimum", 1))  # batches of one row are compared, too
    most = math.inf if axis in PROCESSORS else rule.get("maximum", math.inf)  # those are limited by the machine
    return "" if isinstance(value, str) or least <= value <= most else f"{least:g} to {most:,}"


WORKLOAD = Streams
