"""Helpers that find the tables and figures of a run set, and judge its claims."""

from __future__ import annotations

from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.pipeline.build import parts
from tidemark.results.claims.judge import ClaimReport, judge_all
from tidemark.results.tables.table import TableBuilder
from tidemark.runs.runset import RunSet
from tidemark.studies.study import registry


def made(folder: Path, name: str) -> Path:
    """Return the file `name` in or below `folder`, or its path directly in `folder` if there is none."""
    return next(iter(folder.rglob(name)), folder / name)


def judge(results: Path) -> ClaimReport:
    """Judge every claim of the studies in the run set in `results`."""
    run_set = RunSet.load(results)
    return judge_all(run_set, [(part.results.claims, part.measures) for part in parts(run_set)])


def builder(of: Measures) -> TableBuilder:
    """Return a builder for tables of `of`, with the publications of all studies."""
    return TableBuilder(of, tuple(study.results.publication for study in registry().values()))
