"""plan.json: the series of a configuration, and where the runs of each lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.errors import AnalysisError
from tidemark.runs.circumstances import Harness
from tidemark.runs.coding.fields import Fields
from tidemark.runs.coding.older import plan_brought_up
from tidemark.runs.coding.shapes import Pairs, read
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """The contract between the pipeline and the analysis."""

    schema_version: int = PLAN_VERSION
    config: Pairs[Any] = field(hash=False)  # what is in force
    tidemark: Harness | None = None  # the code that is to measure; None in the first plans, as the machine
    machine: PlannedMachine | None = None
    series: tuple[PlannedSeries, ...]
    notes: tuple[str, ...] = ()  # where the machine cannot give what was asked for

    @classmethod
    def read(cls, path: Path) -> PlanFile:
        """plan.json at `path`; AnalysisError, naming file and key, for what it must not say."""
        f = Fields.read(path)
        if (version := f.integer("schema_version", PLAN_VERSION)) != PLAN_VERSION:
            raise AnalysisError(
                f"{path}: key 'schema_version': found {version}; allowed: {PLAN_VERSION}. "
                "Analyse it with the version of Tidemark that measured it."
            )
        return read(cls, Fields(str(path), plan_brought_up(f.values)))
