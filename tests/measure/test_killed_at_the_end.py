"""A kill between the last run and the end of a series leaves a work folder, which the next start removes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tidemark.config import load
from tidemark.measure.series import measure_block, measure_series
from tidemark.measure.session import work_folder
from tidemark.paths import Workspace, private_directory
from tidemark.pipeline.plan import make_plan
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.streams.study import Streams

SHIPPED = Path(__file__).parents[2] / "config.yaml"


def killed(workspace: Workspace, in_round: bool, keep_tables: bool) -> SeriesSpec:
    """Return a series with the files of all its runs, no outcome, and a file in its work folder."""
    plan = make_plan(load(SHIPPED, ["protocol=smoke", 'streams.systems={"null": {}}', "streams.modes=[single]"]))
    spec = replace(plan.series[0], in_round=in_round, keep_tables=keep_tables, block=int(in_round))
    trips = private_directory(workspace.root / spec.dataset_directory)
    (trips / "dataset.json").write_text(json.dumps({"sha256": "0"}))
    for number in spec.numbers:
        run = private_directory(workspace.root / spec.directory / f"run-{number}")
        (run / "run.json").write_text(json.dumps({"dataset": {"sha256": "0"}}))
    (private_directory(work_folder(spec, workspace)) / "kafka.log").write_text("")
    return spec


@pytest.mark.parametrize("in_round", [False, True])
@pytest.mark.parametrize("keep_tables", [False, True])
def test_work_folder_of_a_series_with_all_runs_is_removed(tmp_path: Path, in_round: bool, keep_tables: bool) -> None:
    workspace = Workspace(tmp_path)
    spec = killed(workspace, in_round, keep_tables)
    if in_round:
        (outcome,) = measure_block([spec], Streams, workspace, lambda _: lambda _: None)
    else:
        outcome = measure_series(spec, Streams, workspace, lambda _: None)
    assert outcome.status == "complete"
    assert work_folder(spec, workspace).exists() == keep_tables
