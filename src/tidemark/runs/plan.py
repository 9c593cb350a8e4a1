"""plan.json: the series of a configuration, with the folder of each one's runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.runs.circumstances import Harness
from tidemark.runs.manifest import FIRST_STUDY, FIRST_WORKLOAD, plan_brought_up
from tidemark.runs.serde import Fields, Pairs, read, written
from tidemark.runs.spec import MAIN

PLAN_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSeries:
    """One planned repeat of a series."""

    id: str
    study: str = FIRST_STUDY
    workload: str = FIRST_WORKLOAD
    system: str  # as the configuration names it
    title: str
    base: str  # the system of which it is a variant
    mode: str
    settings: Pairs[Any] = field(default=(), hash=False)  # of the workload; not in the earliest plans
    batch_size: int = 1
    protocol: str
    stack: str
    sweep: str = MAIN
    threads: int = 1
    cpus: int | None = None  # number of processors that client and servers are bound to
    read_ahead: int = 1  # maximum number of events per read
    position: int = 0
    repeat: int = 1
    repeats: str  # id of the first repeat, common to all repeats of a series
    directory: str  # relative to the workspace's root


@dataclass(frozen=True, slots=True)
class PlannedMachine:
    """Machine for which a plan is made."""

    identity: str


@dataclass(frozen=True, slots=True)
class Round:
    """Progress of a measurement: each series has been measured `number` times, of the `of` times planned.

    A series that is planned fewer times has all of its repeats.
    """

    number: int  # from 1, and less than `of`: after the last round a plan is complete
    of: int


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal that ends the rounds of a measurement before all planned ones are measured; 0: none.

    `precision`: half-width of the 95 % interval of each ratio, in per cent. `minutes`: of the measurement.
    """

    precision: float = 0.0
    minutes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """Content of plan.json: the contract between the pipeline and the analysis."""

    schema_version: int = PLAN_VERSION
    config: Pairs[Any] = field(hash=False)  # the configuration in force
    tidemark: Harness | None = None  # measuring code; None in the earliest plans, as is `machine`
    machine: PlannedMachine | None = None
    series: tuple[PlannedSeries, ...]
    notes: tuple[str, ...] = ()  # requested settings that the machine cannot provide
    round: Round | None = None  # set if further repeats are still due: `series` does not contain them

    def to_json(self) -> str:
        """Return the content of plan.json; that of a complete plan has no key `round`."""
        values = written(self)
        if self.round is None:
            del values["round"]
        return json.dumps(values, indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """Read plan.json at `path`; raise AnalysisError, naming file and key, if it is invalid."""
        return cls.of(Fields.read(path))

    @classmethod
    def of(cls, f: Fields) -> PlanFile:
        """Decode the plan in the fields `f`; raise AnalysisError as `read` does."""
        f.check_version(PLAN_VERSION, default=PLAN_VERSION)
        plan = read(cls, Fields(f.source, plan_brought_up(f.values)))
        if plan.round is not None:
            _check(plan.round, plan.series, f)
        return plan


def _check(made: Round, series: tuple[PlannedSeries, ...], f: Fields) -> None:
    """Raise AnalysisError if the series do not fit the round that the plan names."""
    said = f.part("round")
    if made.of < 2:
        raise said.wrong("of", "2 or more")
    if not 1 <= made.number < made.of:
        raise said.wrong("number", f"1 to {made.of - 1}, less than 'of'")
    for place, each in enumerate(series):
        if each.repeat > made.number:
            raise f.parts("series")[place].wrong("repeat", f"1 to {made.number}, the plan's round")
