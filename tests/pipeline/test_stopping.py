"""The end of rounds: what decides it, that it leaves the coverage of intervals as it is, and what remains of it."""

from __future__ import annotations

import ast
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.test_rounds import ALIKE, TRUTH, UNLIKE, Design, half, in_rounds, values
from tests.runs.models import DUCKLAKE, ICEBERG_DUCKDB, PYICEBERG, Model
from tests.runs.runset import write_run_set

from tidemark.analysis.measures import Measures
from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.paths import REPOSITORY, Workspace
from tidemark.pipeline import rounds, runner
from tidemark.pipeline.build import ratio_widths
from tidemark.pipeline.plan import likely_seconds, make_plan
from tidemark.pipeline.rounds import (
    FIRST_LOOK,
    PROBE_SECONDS,
    UNKNOWN_MINUTES,
    End,
    leave_out,
    left_out,
    over,
    pace,
    spent_minutes,
    why_to_end,
)
from tidemark.results.report.answer import read_first
from tidemark.runs.outcome import LEFT_OUT, Outcome, outcome_path
from tidemark.runs.plan import Goal
from tidemark.runs.runset import RunSet
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.streams.metrics import QUANTITIES, WRITE_MEDIAN

SHIPPED = Path(__file__).parents[2] / "config.yaml"
MOST = 30


def widths_after(given: dict[str, dict[int, float]], number: int, block: int) -> dict[str, float]:
    so_far = {name: {r: value for r, value in each.items() if r < number} for name, each in given.items()}
    first, *others = in_rounds(so_far, block)[0]
    return {str(place): 100 * math.sinh(half(*each.less(first).of_mean())) for place, each in enumerate(others)}


def stopped(given: dict[str, dict[int, float]], precision: float, block: int = 1, first: int = FIRST_LOOK) -> int:
    """Return the round after which the rule ends, at most MOST; it looks first after `first` blocks of rounds."""
    goal = Goal(precision)
    looks = range(first * block, MOST, block)
    return next((n for n in looks if why_to_end(goal, n, widths_after(given, n, block), 0.0, 0.0)), MOST)


def coverage(design: Design, spread: np.ndarray, precision: float, first: int = FIRST_LOOK) -> float:
    """Return the share of ratios whose interval holds the truth when its width ended the rounds."""
    rng = np.random.default_rng(5)
    held = []
    for _ in range(120):
        given = values(design, spread, rng)
        last = stopped(given, precision, design.block, first)
        so_far = {name: {r: value for r, value in each.items() if r < last} for name, each in given.items()}
        found, _ = in_rounds(so_far, design.block)
        for place, one in enumerate(found[1:], 1):
            difference = one.less(found[0])
            held.append(abs(difference.mean - (TRUTH[place] - TRUTH[0])) <= half(*difference.of_mean()))
    return float(np.mean(held))


@pytest.mark.parametrize("precision", [5.0, 7.5, 10.0])
@pytest.mark.parametrize("spread", [ALIKE, UNLIKE], ids=["alike", "unlike"])
def test_intervals_hold_the_truth_when_their_width_ended_the_rounds(precision: float, spread: np.ndarray) -> None:
    assert 0.92 <= coverage(Design(MOST, deviation=0.06), spread, precision) <= 0.985


def test_two_blocks_cannot_show_what_a_start_of_the_servers_adds() -> None:
    """Plant starts that differ by more than rounds do: a look after two blocks ends them too soon, and is too sure."""
    design = Design(MOST, block=3, deviation=0.03, restart=0.04)
    assert coverage(design, ALIKE, 10.0, first=2) < 0.85
    assert 0.92 <= coverage(design, ALIKE, 10.0) <= 0.985


def test_rule_does_not_see_how_fast_systems_are() -> None:
    rng = np.random.default_rng(8)
    ends = set()
    for _ in range(20):
        given = values(Design(MOST, deviation=0.06), UNLIKE, rng)
        moved = {name: {r: value + 10 * float(name) for r, value in each.items()} for name, each in given.items()}
        ends.add(stopped(given, 7.5))
        assert stopped(moved, 7.5) == stopped(given, 7.5)
    assert len(ends) > 3, "it ends sooner where values vary less"


def test_reason_names_what_ended_the_rounds() -> None:
    goal, wide = Goal(10, 30), {"a over b": 8.0, "c over b": 14.2, "d over b": math.inf}
    assert why_to_end(goal, 6, {"a over b": 9.9}, 5, 5) == (
        "the rounds ended after 6: the 95 % interval of each ratio is within ±10 %"
    )
    assert why_to_end(goal, 6, wide, 25, 5) is None
    over_time = "the rounds ended after 6: with more of them, measuring would take over 30 minutes"
    assert why_to_end(goal, 6, wide, 25.1, 5) == (
        f"{over_time}; when last looked at, not within ±10 %: d over b (±inf %), c over b (±14 %)"
    )
    assert why_to_end(goal, 6, {}, 40, 5) == over_time
    assert why_to_end(Goal(minutes=30), 1, {}, 10, 5) is None, "without a precision the time alone ends them"
    assert why_to_end(Goal(precision=10), 9, {}, 1e9, 5) is None, "nothing to compare, and no limit"


def test_pauses_are_no_part_of_the_time(tmp_path: Path) -> None:
    began = datetime.now(UTC) - timedelta(minutes=200)
    for name, start, minutes in (("a", 0, 2), ("b", 2, 3), ("c", 190, 10)):
        at = began + timedelta(minutes=start)
        ended = at + timedelta(minutes=minutes)
        attempt = {"number": 1, "started_at": at.isoformat(timespec="seconds"), "status": "complete", "reason": None}
        attempt |= {"ended_at": ended.isoformat(timespec="seconds"), "exit_code": 0}
        (tmp_path / name).mkdir()
        (tmp_path / name / "attempts.json").write_text(json.dumps([attempt]))
    assert spent_minutes([tmp_path / name for name in "abcd"]) == pytest.approx(15, abs=0.2)
    assert spent_minutes([tmp_path / "d"]) == 0


def test_goal_of_the_command_line_replaces_the_protocols() -> None:
    assert make_plan(load(SHIPPED)).goal == Goal(10, 30)
    assert make_plan(load(SHIPPED, ["precision=5", "budget_minutes=0"])).goal == Goal(5, 0)
    assert make_plan(load(SHIPPED, ["protocol=thesis", "precision=5"])).goal == Goal(), "it has no rounds"
    own = "streams.protocols={own: {window_seconds: 5, runs: 2, precision: 5}}"
    with pytest.raises(ConfigError, match="precision': found 5; allowed: 0, as there are no rounds"):
        make_plan(load(SHIPPED, [own, "protocol=own"]))


def test_other_studies_take_no_time_of_the_rounds(tmp_path: Path) -> None:
    """Plan hours of another study, which would have ended the rounds after the first block."""
    workspace, own = Workspace(tmp_path), ["streams.systems={delta-rs: {}}", "streams.modes=[single]"]
    plan = make_plan(load(SHIPPED, [*own, "studies=[streams, lhbench]"]), tmp_path)
    plan.write(workspace)
    first, second, *_ = [job for job in plan.jobs() if job[0].study == "streams"]
    Outcome("complete", None, 0, (1,)).write(outcome_path(workspace, first[0]))
    others = likely_seconds(each for each in plan.series if each.study == "lhbench")
    assert others > 60 * plan.goal.minutes and second[0].block == 2
    assert over(second, plan.goal, workspace) is None
    assert plan.seconds == pytest.approx(make_plan(load(SHIPPED, own)).seconds + others)


def test_rounds_that_were_left_out_are_due_again_for_another_goal(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    plan = make_plan(load(SHIPPED, ["streams.systems={delta-rs: {}}", "streams.modes=[single]"]), tmp_path)
    plan.write(workspace)
    complete = Outcome("complete", None, 0, (1,))
    first, second, third, *_ = plan.jobs()
    assert [len(job) for job in (first, second, third)] == [1, 3, 3]
    complete.write(outcome_path(workspace, first[0]))
    assert over(second, plan.goal, workspace) is None, "too early for a look, and no time was spent"
    leave_out(second, plan.goal, workspace, "enough")
    assert over(third, plan.goal, workspace) == End(3, "enough", known=True), "the next one follows it"
    leave_out(third, plan.goal, workspace, "enough")
    runner.make_due_again(plan, workspace)
    assert len(left_out(plan.series, workspace)) == 6
    rounds.make_due_again(plan.series, Goal(5, 30), workspace)
    assert left_out(plan.series, workspace) == []
    assert sum(outcome_path(workspace, spec).exists() for spec in plan.series) == 1
    begun = workspace.root / second[1].directory / "run-1"
    begun.mkdir()
    (begun / "run.json").write_text("{}")
    assert over(second, Goal(minutes=1e-9), workspace) is None, "a block that was begun is finished"


def attempted(workspace: Workspace, specs: Sequence[SeriesSpec], began: datetime, seconds: float) -> None:
    """Write the attempts at series that took `seconds` in all, one after another."""
    for place, spec in enumerate(specs):
        begun, ended = (began + timedelta(seconds=seconds * each / len(specs)) for each in (place, place + 1))
        attempt = {"number": 1, "started_at": begun.isoformat(), "ended_at": ended.isoformat(), "status": "complete"}
        attempt |= {"reason": None, "exit_code": 0}
        (workspace.root / spec.directory / "attempts.json").write_text(json.dumps([attempt]))
        Outcome("complete", None, 0, (1,)).write(outcome_path(workspace, spec))


def test_time_that_is_left_is_judged_by_what_was_measured(tmp_path: Path) -> None:
    """Expect of a first round with probes, and of minutes in which results were made, no rounds that are as slow."""
    workspace = Workspace(tmp_path)
    plan = make_plan(load(SHIPPED), tmp_path)
    plan.write(workspace)
    first, second, *_ = [job for job in plan.jobs() if job[0].in_round]
    after = likely_seconds(spec for spec in plan.series if not spec.in_round) / 60
    a_round = likely_seconds(second) / 60 / 3
    assert pace(plan.series, set(), workspace) == 1.0, "none was tried"
    for slower in (0.5, 1.0, 2.0):
        seconds, results = slower * (likely_seconds(first) + PROBE_SECONDS * len(first)), 2.0
        attempted(workspace, first, datetime.now(UTC) - timedelta(minutes=seconds / 60 + results), seconds)
        found = pace(plan.series, {spec.id for spec in plan.series} - {spec.id for spec in first}, workspace)
        damped = (seconds / 60 + UNKNOWN_MINUTES) / (seconds / 60 / slower + UNKNOWN_MINUTES)
        assert found == pytest.approx(damped) and min(1, slower) <= found <= max(1, slower)
        # Series after the rounds start servers: a machine whose rounds are fast may need as long as likely for them.
        so_far, rest = seconds / 60 + results, max(1.0, found) * after
        for rounds_more in range(4):
            end = over(second, Goal(minutes=so_far + rest + (rounds_more + 0.5) * found * a_round), workspace)
            assert (end.after if end else 4) == 1 + rounds_more, "what fits is measured"
    assert over(first, Goal(minutes=1e-9), workspace) is None, "a first round is always measured"


def test_rounds_end_at_the_first_look_that_finds_each_interval_narrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    plan = make_plan(load(SHIPPED, ["streams.systems={delta-rs: {}}", "streams.modes=[single]"]), tmp_path)
    plan.write(workspace)
    blocks = [job for job in plan.jobs() if job[0].in_round]
    looked: list[int] = []

    def widths(number: int, *_: object) -> dict[str, float]:
        looked.append(number)
        return {"a over b": {10: 10.5, 13: 9.5}[number]}

    monkeypatch.setattr(rounds, "widths_after", widths)
    for place, block in enumerate(blocks[: FIRST_LOOK + 2]):
        found = over(block, Goal(10), workspace)
        if place < FIRST_LOOK + 1:
            assert found is None
        else:
            assert found is not None and found.after == 13 and "within ±10 %" in found.why
        attempted(workspace, block, datetime.now(UTC), 1)
    assert looked == [10, 13], "the first look is after the fourth block"


def test_block_of_another_stack_ends_after_the_same_round(tmp_path: Path) -> None:
    workspace, own = Workspace(tmp_path), ["streams.systems={delta-rs: {}}", "streams.modes=[single]"]
    plan = make_plan(load(SHIPPED, [*own, "stacks=[thesis, current]"]), tmp_path)
    plan.write(workspace)
    one, other = (job for job in plan.jobs() if job[0].block == 2)
    attempted(workspace, [spec for spec in plan.series if spec.block == 1], datetime.now(UTC), 1)
    leave_out(one[2:], plan.goal, workspace, "no time")
    for spec in one[:2]:
        (workspace.root / spec.directory / "run-1").mkdir(parents=True)
        (workspace.root / spec.directory / "run-1" / "run.json").write_text("{}")
    assert over(other, plan.goal, workspace) == End(3, "no time", known=True)


def measured_in_rounds(tmp_path: Path, *models: Model, after: int = 0) -> Path:
    """Write results of rounds that have no cold run, a last repeat that has one, and `after` that were left out."""
    results = write_run_set(tmp_path, [replace(model, factors=(1.1, 1.0)) for model in models], window_s=2.0)
    planned = json.loads((results / "plan.json").read_text())["series"]
    last = max(each["repeat"] for each in planned)
    for each in planned:
        folder = tmp_path / each["directory"]
        outcome = json.loads((folder / "outcome.json").read_text())
        if each["repeat"] < last:
            shutil.rmtree(folder / "run-0")
            outcome["runs"] = [1]
        if last - after <= each["repeat"] < last:
            shutil.rmtree(folder / "run-1")
            outcome |= {"status": LEFT_OUT, "reason": "the rounds ended", "runs": []}
        (folder / "outcome.json").write_text(json.dumps(outcome))
    return results


REPEATS = (1.0, 1.02, 0.97, 1.03, 0.99, 1.01)
THREE = tuple(
    replace(model, repeats=tuple(np.roll(REPEATS, place)))
    for place, model in enumerate((DUCKLAKE, PYICEBERG, ICEBERG_DUCKDB))
)


def test_rounds_that_were_left_out_are_no_part_of_results_but_for_the_reason(tmp_path: Path) -> None:
    run_set = RunSet.load(measured_in_rounds(tmp_path, *THREE, after=2))
    assert {len(series.repeats) for series in run_set.series} == {4} and run_set.ended == ("The rounds ended.",)
    shown = {"label": "Rounds", "text": "The rounds ended.", "warning": False}
    assert shown in read_first(run_set, [Measures(run_set, QUANTITIES)])
    assert run_set.notes == ()
    assert all(series.status == "complete" for series in run_set.series)


def test_a_single_cold_run_is_taken_to_vary_as_hot_rounds_do(tmp_path: Path) -> None:
    run_set = RunSet.load(measured_in_rounds(tmp_path, *THREE))
    measures = Measures(run_set, QUANTITIES)
    ducklake = run_set.find("ducklake", "single")
    assert ducklake is not None and len(ducklake.cold_runs) == 1 and len(ducklake.hot_runs) == 6
    hot = measures.hot(WRITE_MEDIAN, ducklake)
    assert hot.rounds is not None and hot.rounds.prior is not None
    for found in (measures.cold(WRITE_MEDIAN, ducklake), measures.cold_effect(WRITE_MEDIAN, ducklake)):
        assert found.variance >= 0.6 * hot.rounds.prior
        ends = found.estimate("")
        assert ends.low is not None and ends.high is not None and ends.high / ends.low > 1.05


def test_what_servers_of_a_block_have_in_common_widens_intervals(tmp_path: Path) -> None:
    """Plant a restart that makes one system 20 % slower for a block of rounds, and another one in the next block."""
    restarts = (1, 1, 1, 1.2, 1.2, 1.2, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1.2, 1.2, 1.2, 1), (1.0,) * 10
    systems = zip((DUCKLAKE, PYICEBERG, ICEBERG_DUCKDB), restarts, strict=True)
    results = measured_in_rounds(tmp_path, *(replace(model, repeats=repeats) for model, repeats in systems))

    def half_width() -> float:
        return next(iter(ratio_widths(results, results / "plan.json").values()))

    alone = half_width()
    for path in results.rglob("run-1/run.json"):
        values = json.loads(path.read_text())
        values["config"]["block"] = (values["series"]["repeat"] + 2) // 3 if values["series"]["repeat"] < 10 else 0
        path.write_text(json.dumps(values))
    assert half_width() > 1.3 * alone


def test_window_after_a_cold_start_is_no_round(tmp_path: Path) -> None:
    """Plant one that is three times as slow: the effect of the cold start alone is of it."""
    slow = (replace(model, repeats=(*REPEATS[:5], 3.0)) for model in (DUCKLAKE, PYICEBERG))
    results = measured_in_rounds(tmp_path, *slow)
    for path in results.rglob("run-*/run.json"):
        values = json.loads(path.read_text())
        values["config"]["block"] = values["series"]["repeat"] % 6
        path.write_text(json.dumps(values))
    measures = Measures(RunSet.load(results), QUANTITIES)
    series = measures.run_set.find("ducklake", "single")
    assert series is not None and len(series.hot_runs) == 5 and len(series.repeats) == 6
    one = measures.of_run(WRITE_MEDIAN, series.hot_runs[0])
    assert measures.hot(WRITE_MEDIAN, series).value == pytest.approx(one.value, rel=0.1)
    assert measures.cold_effect(WRITE_MEDIAN, series).value == pytest.approx(1.1, rel=0.05)


def test_widths_need_no_libraries_of_the_analysis_where_rounds_are_measured(tmp_path: Path) -> None:
    """The Python of a stack measures, and has none of them."""
    results = measured_in_rounds(tmp_path, *THREE)
    workspace = Workspace(tmp_path)
    workspace.private.mkdir(exist_ok=True)
    workspace.plan.write_text((results / "plan.json").read_text())
    code = (
        "import sys; sys.modules['scipy'] = None; from pathlib import Path; from tidemark.paths import Workspace; "
        "from tidemark.pipeline.rounds import widths_after; "
        "print(widths_after(5, 'streams', Workspace(Path.cwd()), sys.executable))"
    )
    path = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rounds.write_widths(5, "streams", workspace, tmp_path / "here.json")
    assert ast.literal_eval(done.stdout) == json.loads((tmp_path / "here.json").read_text()) != {}


def test_widths_are_those_of_what_is_measured_while_other_studies_wait(tmp_path: Path) -> None:
    results = measured_in_rounds(tmp_path, *THREE)
    workspace = Workspace(tmp_path)
    workspace.private.mkdir(exist_ok=True)
    plan = json.loads((results / "plan.json").read_text())
    waiting = {"study": "ingest", "repeat": 1, "directory": "results/runs/ingest/ducklake/one-4/1"}
    plan["series"].append({**plan["series"][0], **waiting})
    workspace.plan.write_text(json.dumps(plan))
    rounds.write_widths(5, "streams", workspace, tmp_path / "widths.json")
    assert len(json.loads((tmp_path / "widths.json").read_text())) == 2


def test_widths_are_those_of_ratios_to_the_first_system(tmp_path: Path) -> None:
    results = measured_in_rounds(tmp_path, *THREE)
    found = ratio_widths(results, results / "plan.json")
    assert list(found) == ["Iceberg (PyIceberg) over DuckLake, single", "Iceberg (DuckDB) over DuckLake, single"]
    assert all(1 < width < 10 for width in found.values())
