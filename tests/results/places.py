"""Where a table or a figure of a set lies, and its ledger."""

from __future__ import annotations

from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.pipeline.build import parts
from tidemark.results.claims.judge import Ledger, judge_all
from tidemark.results.tables.table import Workshop
from tidemark.runs.runset import RunSet
from tidemark.studies.registry import registry


def made(folder: Path, name: str) -> Path:
    """The file `name` at or below `folder`; its place at the top where there is none."""
    return next(iter(folder.rglob(name)), folder / name)


def judge(results: Path) -> Ledger:
    """Every claim of the studies that the set in `results` has."""
    run_set = RunSet.load(results)
    return judge_all(run_set, [(part.results.claims, part.measures) for part in parts(run_set)])


def workshop(of: Measures) -> Workshop:
    """What makes tables of `of`, with what all studies published."""
    return Workshop(of, tuple(study.results.publication for study in registry().values()))
