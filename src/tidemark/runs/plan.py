"""plan.json: the series of a configuration, and where the runs of each lie."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.errors import AnalysisError
from tidemark.runs.circumstances import Harness
from tidemark.runs.coding.fields import Fields
from tidemark.runs.coding.older import plan_brought_up
from tidemark.runs.coding.shapes import Pairs, read, written
from tidemark.runs.manifest import FIRST_STUDY, FIRST_WORKLOAD
from tidemark.runs.names import MAIN

PLAN_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSeries:
    """One time that a series is to be measured."""

    id: str
    study: str = FIRST_STUDY
    workload: str = FIRST_WORKLOAD
    system: str  # as the configuration names it
    title: str
    base: str  # the system that it is one of
    mode: str
    batch_size: int = 1
    protocol: str
    stack: str
    sweep: str = MAIN
    threads: int = 1
    cpus: int | None = None  # processors that client and servers are held to
    read_ahead: int = 1  # events read in one go at most
    position: int = 0
    repeat: int = 1
    repeats: str  # what all repeats of a series have in common: the id of the first
    directory: str  # from the workspace's root


@dataclass(frozen=True, slots=True)
class PlannedMachine:
    """The machine that it is to be measured on."""

    identity: str


@dataclass(frozen=True, slots=True)
class Round:
    """How far a measurement had come: each series was measured `number` times, of the `of` times that it is planned.

    A series that is planned less often has all of its repeats.
    """

    number: int  # from 1, and less than `of`: after the last round a plan is whole
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The contract between the pipeline and the analysis."""

    schema_version: int = PLAN_VERSION
    config: Pairs[Any] = field(hash=False)  # what is in force
    tidemark: Harness | None = None  # the code that is to measure; None in the first plans, as the machine
    machine: PlannedMachine | None = None
    series: tuple[PlannedSeries, ...]
    notes: tuple[str, ...] = ()  # where the machine cannot give what was asked for
    round: Round | None = None  # where further repeats are still to be measured: `series` has none of them

    def to_json(self) -> str:
        """The content of its file; that of a whole plan has no key `round`."""
        values = written(self)
        if self.round is None:
            del values["round"]
        return json.dumps(values, indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """plan.json at `path`; AnalysisError, naming file and key, for what it must not say."""
        return cls.of(Fields.read(path))

    @classmethod
    def of(cls, f: Fields) -> PlanFile:
        """The plan in the fields `f`; AnalysisError as for `read`."""
        if (version := f.integer("schema_version", PLAN_VERSION)) != PLAN_VERSION:
            raise AnalysisError(
                f"{f.source}: key 'schema_version': found {version}; allowed: {PLAN_VERSION}. "
                "Analyse it with the version of Tidemark that measured it."
            )
        plan = read(cls, Fields(f.source, plan_brought_up(f.values)))
        if plan.round is not None:
            _check(plan.round, plan.series, f)
        return plan


def _check(made: Round, series: tuple[PlannedSeries, ...], f: Fields) -> None:
    """AnalysisError where a plan cannot be that of the round that it names."""
    said = f.part("round")
    if made.of < 2:
        raise said.wrong("of", "2 or more")
    if not 1 <= made.number < made.of:
        raise said.wrong("number", f"1 to {made.of - 1}, less than 'of'")
    for place, each in enumerate(series):
        if each.repeat > made.number:
            raise f.parts("series")[place].wrong("repeat", f"1 to {made.number}, the plan's round")
