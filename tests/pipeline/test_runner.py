"""Lock of a workspace, series that are due again, and the exit code of the pipeline."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tidemark.config import load
from tidemark.errors import ConfigError, Locked
from tidemark.paths import Workspace
from tidemark.pipeline import runner as pipeline
from tidemark.pipeline.failure import LOCKED, Failure, forget, note, noted
from tidemark.pipeline.plan import Plan, make_plan
from tidemark.runs.outcome import Outcome, outcome_path

SHIPPED = Path(__file__).parents[2] / "config.yaml"
HOLD = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from tidemark.paths import Workspace
from tidemark.pipeline.runner import take_lock
take_lock(Workspace(Path(sys.argv[1])))
print("held", flush=True)
time.sleep(300)
"""


@pytest.fixture
def plan() -> Plan:
    return make_plan(
        load(SHIPPED, ['streams.systems={"null": {}, ducklake: {}}', "streams.modes=[single]", "protocol=thesis"])
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "2 series in each round until intervals are narrow enough, then 6 more; at most 1[0-9] min"),
        (["stacks=[thesis, current]"], "4 series in each round until .*, then 12 more; at most 2[0-9] min"),
        (["budget_minutes=1"], "2 series in each round until .*, then 6 more; at most [2-9] min"),  # these come anyway
        (["protocol=thesis"], "3 series to measure, about 3[0-9] min"),
    ],
)
def test_a_start_says_how_much_there_is_to_measure(tmp_path: Path, values: list[str], said: str) -> None:
    given = ['streams.systems={"null": {}, ducklake: {}, delta-rs: {}}', "streams.modes=[batch]", *values]
    assert re.match(said, pipeline.what_follows(make_plan(load(SHIPPED, given)), Workspace(tmp_path)))


def test_dry_run_says_series_minutes_and_gigabytes(plan: Plan, tmp_path: Path) -> None:
    first, systems, last = pipeline.what_would_follow(plan, Workspace(tmp_path))
    assert re.fullmatch(r"2 series to measure, about .* min .*, and at most [2-9][0-9]?\.[0-9] GB of disk", first), (
        first
    )
    assert systems == "streams, stack thesis: ducklake, null; each as single" and "-v" in last
    (archive := tmp_path / "runs.zip").write_bytes(b"made elsewhere")
    rebuilt = replace(plan, config=replace(plan.config, archive=archive))
    (said,) = pipeline.what_would_follow(rebuilt, Workspace(tmp_path))
    assert re.search(rf"made from {archive}, in results/archive-\w+/results, and nothing measured", said)


def hold(folder: Path) -> subprocess.Popen[str]:
    """Start another process that holds the lock of the workspace `folder`."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, folder], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    return holder


def test_second_pipeline_reports_the_holder_of_the_lock(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    try:
        with pytest.raises(Locked, match=rf"process {holder.pid}\).*{tmp_path}") as caught:
            pipeline.take_lock(Workspace(tmp_path))
        assert caught.value.exit_code == 10
    finally:
        holder.kill()
        holder.communicate()


def test_stale_lock_does_not_block(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    holder.kill()
    holder.communicate()
    file = tmp_path / ".tidemark" / "pipeline.lock"
    assert file.read_text() == f"{holder.pid}\n"
    with pipeline.locked(Workspace(tmp_path)):
        assert file.read_text() == f"{os.getpid()}\n"
    with pipeline.locked(Workspace(tmp_path)):
        pass


def test_failed_series_is_due_again(tmp_path: Path, plan: Plan) -> None:
    workspace = Workspace(tmp_path)
    failed, complete = (outcome_path(workspace, spec) for spec in plan.series)
    Outcome("failed", "the broker died", 5, ()).write(failed)
    Outcome("complete", None, 0, (0, 1, 2)).write(complete)
    pipeline.make_due_again(plan, workspace)
    assert not failed.exists() and complete.exists()


def test_exit_code_is_that_of_the_first_failure(tmp_path: Path, plan: Plan, capfd: pytest.CaptureFixture[str]) -> None:
    workspace = Workspace(tmp_path)
    first, second = (outcome_path(workspace, spec) for spec in plan.series)
    Outcome("complete", None, 0, (0,)).write(first)
    assert pipeline.verdict(plan, workspace, 3) == 3
    assert "1 of 2 series complete, 1 not measured; results" in capfd.readouterr().out
    Outcome("not-run", "not with these versions", 0, ()).write(second)
    assert pipeline.verdict(plan, workspace, 0) == 0
    assert "not with these versions" in capfd.readouterr().err
    Outcome("failed", "no room", 9, ()).write(second)
    assert pipeline.verdict(plan, workspace, 0) == 9
    Outcome("failed", "refused", 7, ()).write(first)
    assert pipeline.verdict(plan, workspace, 1) == 7


@pytest.mark.parametrize(("measured_by", "calls", "code"), [(1, 1, 0), (2, 2, 0), (3, 2, 1)])
def test_pipeline_that_succeeds_too_early_is_run_once_more_then_fails(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, measured_by: int, calls: int, code: int
) -> None:
    workspace = Workspace(tmp_path)
    made: list[int] = []

    def make(_runner: pipeline.Runner, *_targets: str, after: object = None) -> int:  # noqa: ARG001
        made.append(1)
        for spec in plan.series if len(made) >= measured_by else ():
            Outcome("complete", None, 0, (0, 1, 2)).write(outcome_path(workspace, spec))
        return 0

    monkeypatch.setattr(pipeline.Runner, "make", make)
    runner = pipeline.Runner(workspace, SHIPPED, [], [])
    status = pipeline.go_on(runner, plan, workspace, pipeline.make_in_rounds(runner, plan, workspace))
    assert status == code and len(made) == calls and (runner.failure is not None) == bool(code)


def test_last_line_is_the_reason(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Check the series or step, the reason, the log and the remedy; series that were never begun have no line."""
    many = make_plan(load(SHIPPED, ["protocol=smoke", "streams.modes=[single]"]))
    workspace = Workspace(tmp_path)
    step = Failure("dataset", "no-such-month.parquet does not exist; give another path", "results/logs/dataset.log", 3)
    assert pipeline.verdict(many, workspace, 3, step) == 3
    said = capfd.readouterr()
    assert said.out.splitlines() == [
        f"tidemark: 0 of {len(many.series)} series complete, {len(many.series)} not measured; results are in results"
    ]
    assert said.err.splitlines() == [
        "tidemark: dataset: failed: no-such-month.parquet does not exist; give another path. "
        "Its log is results/logs/dataset.log. Mend that and run the command again: what is done is not repeated."
    ]
    Outcome("failed", "the broker died.", 5, ()).write(outcome_path(workspace, many.series[0]))
    Outcome("failed", "refused", 7, ()).write(outcome_path(workspace, many.series[1]))
    assert pipeline.verdict(many, workspace, 1, step) == 5
    said = capfd.readouterr()
    first, *lines = said.err.splitlines()
    assert first.startswith("tidemark: dataset: failed: "), "the exit code is that of a series, whose reason comes last"
    one, other = lines
    assert one.startswith(f"tidemark: {many.series[0].label}: failed: the broker died. Its log is results/runs/")
    assert other.startswith(
        f"tidemark: {many.series[1].label}: failed: refused. Its log is {many.series[1].directory}/"
    )
    assert "run the command again" not in one and other.endswith("what is done is not repeated.")
    assert f"2 failed, {len(many.series) - 2} not measured" in said.out


def test_log_that_was_removed_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the results while Snakemake runs, so that it fails for want of its files."""
    workspace = Workspace(tmp_path)
    workspace.private.mkdir()
    monkeypatch.setenv(LOCKED, "1")
    runner = pipeline.Runner(workspace, SHIPPED, [], [])
    for log in (workspace.results / "logs/snakemake.log", None):

        def fails(_command: list[str], log: Path | None = log, **_options: object) -> int:
            if log is not None:
                log.parent.mkdir(parents=True)
                log.touch()
            note(workspace, Failure("Snakemake", "Missing files", "results/logs/snakemake.log", 1))
            return 1

        shutil.rmtree(workspace.results, ignore_errors=True)
        monkeypatch.setattr(pipeline, "run_guarded", fails)
        assert runner.make() == 1 and runner.failure is not None
        assert ("were removed while it ran" in str(runner.failure)) == (log is None)


def test_failed_step_records_its_reason_and_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(tmp_path)
    workspace.private.mkdir()
    first, second = (Failure(name, "a reason", None, code) for name, code in (("dataset", 3), ("tables", 14)))
    monkeypatch.delenv(LOCKED, raising=False)
    note(workspace, first)
    assert noted(workspace) is None, "no pipeline around it"
    monkeypatch.setenv(LOCKED, "1")
    note(workspace, first)
    note(workspace, second)
    assert noted(workspace) == first
    forget(workspace)
    assert noted(workspace) is None


def test_snakemake_gets_the_overrides_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the Snakefile the originals: Snakemake reads nested numbers as text, and mixes systems with the file's."""
    typed = ['streams.systems={"null": {}}', "dataset.synthetic_rows=500", "dataset.source=synthetic", "protocol=smoke"]
    monkeypatch.setenv(pipeline.OVERRIDES, json.dumps(typed))
    monkeypatch.setenv(LOCKED, "1")
    plan = pipeline.enter({"streams": {"systems": {"ducklake": {}}}}, tmp_path, str(SHIPPED))
    assert {spec.name for spec in plan.series} == {"null"}
    assert plan.config.dataset.synthetic_rows == 500
    assert json.loads((tmp_path / ".tidemark/plan.json").read_text())["config"]["protocol"] == "smoke"


@pytest.mark.parametrize(
    ("words", "dry"),
    [
        ([], False),
        (["-n"], True),
        (["-np"], True),
        (["--dry-r"], True),
        (["--dry-run", "--quiet"], True),
        (["--quiet"], False),
    ],
)
def test_dry_runs_are_recognised(words: list[str], dry: bool) -> None:
    assert pipeline.is_dry(words) is dry


def test_unknown_option_is_refused_before_anything_is_due_again() -> None:
    with pytest.raises(ConfigError, match="unrecognized arguments: --resmue"):
        pipeline.is_dry(["--resmue"])
