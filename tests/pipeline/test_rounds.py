"""Results made between rounds: the rounds after which they are made, and the cost of a kill between rounds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.paths import ANSWER, Workspace
from tidemark.pipeline import runner as pipeline
from tidemark.pipeline.failure import LOCKED, Failure
from tidemark.pipeline.plan import ROUND, Plan, asked_for, due, make_plan, rounds, to_make
from tidemark.runs.outcome import Outcome, outcome_path
from tidemark.runs.plan import PlanFile, Round
from tidemark.runs.spec import SeriesSpec

SHIPPED = Path(__file__).parents[2] / "config.yaml"
SENTENCE = "Round 1 of 2: each system was measured once so far"
DONE = Outcome("complete", None, 0, (0, 1))


def planned(repeats: int) -> Plan:
    protocol = f"streams.protocols={{often: {{window_seconds: 1, runs: 2, repeats: {repeats}}}}}"
    systems = "streams.systems={ducklake: {}, delta-rs: {}}"
    return make_plan(load(SHIPPED, [protocol, "protocol=often", systems, "streams.modes=[single]"]))


def end(workspace: Workspace, series: Iterable[SeriesSpec]) -> None:
    for spec in series:
        DONE.write(outcome_path(workspace, spec))


@pytest.mark.parametrize(
    ("repeats", "measured", "made"),
    [
        (1, (), ()),  # one round, which is everything
        (2, (), (1,)),
        (2, (1,), ()),  # killed in round 2: measuring continues directly
        (2, (1, 2), ()),
        (2, (2,), ()),  # only round 1 is missing, and after it everything is complete
        (3, (), (1, 2)),
        (3, (1,), (2,)),
        (3, (2,), (2,)),  # results of round 1 would be older than those that the same series allow
        (3, (1, 2), ()),
        (9, (), (1, 2, 4, 8)),  # each with intervals some 30 % narrower than the one before
        (9, (1, 2, 3, 4, 5), (8,)),
    ],
)
def test_results_are_made_after_a_round_that_adds_some(
    tmp_path: Path, repeats: int, measured: tuple[int, ...], made: tuple[int, ...]
) -> None:
    plan, workspace = planned(repeats), Workspace(tmp_path)
    end(workspace, (spec for spec in plan.series if spec.repeat in measured))
    assert to_make(plan, workspace) == tuple(Round(number, repeats) for number in made)


def test_one_due_series_makes_its_round_due(tmp_path: Path) -> None:
    plan, workspace = planned(2), Workspace(tmp_path)
    end(workspace, plan.series[1:2])
    assert to_make(plan, workspace) == (Round(1, 2),)
    end(workspace, plan.series[:1])
    assert to_make(plan, workspace) == ()
    Outcome("failed", "the broker died", 5, ()).write(outcome_path(workspace, plan.series[0]))
    assert to_make(plan, workspace) == (), "one that failed has been measured, until it is made due again"
    assert [spec.repeat for spec in due(plan.series, workspace)] == [2, 2]


def test_first_results_wait_for_series_with_fewer_repeats_only_without_rounds() -> None:
    sweep = "streams.sweep={cores: {axis: cpus, values: [1], repeats: 1}}"
    typed = ["streams.systems={ducklake: {}}", sweep, "streams.sweeps=[main, cores]"]
    repeated = make_plan(
        load(SHIPPED, [*typed, "streams.protocols={own: {window_seconds: 5, runs: 2, repeats: 2}}", "protocol=own"])
    )
    assert {spec.sweep for spec in repeated.until(Round(1, 2))} == {"main", "cores"}
    plan = make_plan(load(SHIPPED, typed))
    assert rounds(plan) == 21
    first = plan.until(Round(1, 21))
    assert {spec.sweep for spec in first} == {"main"} and {spec.repeat for spec in first} == {1}
    assert plan.until(None) == plan.series and first == plan.series[: len(first)], "the order is that of the whole"


def test_a_round_is_measured_in_one_go_and_has_no_cold_run() -> None:
    systems = "streams.systems={null: {}, ducklake: {}, delta-rs: {}}"
    own = "streams.protocols={own: {window_seconds: 5, runs: 2, rounds: 3}}"
    plan = make_plan(load(SHIPPED, [own, "protocol=own", systems, "stacks=[thesis, current]"]))
    shared = [job for job in plan.jobs() if job[0].in_round]
    names = [f"streams-block-0{block}-{stack}" for block in (1, 2, 3) for stack in ("thesis", "current")]
    assert sorted(job[0].job for job in shared) == sorted(names)
    assert {(len(job), len({spec.stack for spec in job})) for job in shared} == {(4, 1)} and len(shared) == 6
    assert [spec for job in plan.jobs() for spec in job] == list(plan.series), "in the order of the plan"
    orders = [[spec.label.split(" (")[0] for spec in job] for job in shared]
    assert len({tuple(order) for order in orders}) > 1, "each round in an order of its own"
    numbers = {(spec.name, spec.repeat): list(spec.numbers) for spec in plan.series}
    assert numbers["delta-rs", 1] == [1] and numbers["delta-rs", 4] == [0, 1] and numbers["null", 4] == [0, 1]
    assert ("null", 3) not in numbers
    assert len({spec.repeated_id for spec in plan.series if spec.name == "ducklake"}) == 4, "by mode and stack alone"


def test_first_round_is_a_block_and_then_each_three_are(tmp_path: Path) -> None:
    def rounds_of_jobs(*typed: str) -> list[list[int]]:
        own = "streams.protocols={own: {window_seconds: 5, runs: 2, rounds: 8, block: 3}}"
        plan = make_plan(load(SHIPPED, [own, "protocol=own", "streams.systems={ducklake: {}, delta-rs: {}}", *typed]))
        assert [made.number for made in to_make(plan, Workspace(tmp_path))] == [1, 4, 8]
        jobs = [[spec.repeat for spec in job] for job in plan.jobs() if job[0].in_round]
        assert all(job == sorted(job) for job in jobs), "one round after the other"
        assert all(len({spec.stack for spec in job}) == 1 for job in plan.jobs()), "a client process has one stack"
        return [sorted(set(job)) for job in jobs]

    blocks = [[1], [2, 3, 4], [5, 6, 7], [8]]
    assert rounds_of_jobs() == blocks
    both = rounds_of_jobs("stacks=[thesis, current]")
    assert both == [block for block in blocks for _ in range(2)], "the stacks of a block follow one another"


def test_repeats_of_the_command_line_count_rounds_and_the_series_after_them() -> None:
    def planned_with(*typed: str) -> list[tuple[int, bool]]:
        chosen = ["streams.systems={delta-rs: {}}", "streams.modes=[single]", *typed]
        return [(spec.repeat, spec.in_round) for spec in make_plan(load(SHIPPED, chosen)).series]

    assert planned_with("repeats=3") == [(1, True), (2, True), (3, False)]
    assert planned_with("repeats=1") == [(1, False)]
    plan = make_plan(load(SHIPPED, ["streams.systems={delta-rs: {}}", "streams.modes=[single]", "repeats=25"]))
    assert [spec.block for spec in plan.series] == [1, *(2 + place // 3 for place in range(19)), 21, 22, 23, 24, 0]
    assert planned_with("repeats=2", "protocol=thesis") == [(1, False), (2, False)]


def test_sweep_with_cold_runs_alone_or_repeats_of_its_own_comes_after_the_rounds() -> None:
    sweep = (
        "streams.sweep={sizes: {axis: batch_size, values: [10], runs: 1}, chunked: {axis: chunks, values: [rows]}, "
        "once: {axis: batch_size, values: [20], repeats: 1}}"
    )
    typed = [sweep, "streams.sweeps=[sizes, chunked, once]", "streams.systems={delta-rs: {}}", "streams.modes=[batch]"]
    made = make_plan(load(SHIPPED, typed)).series
    for name in ("sizes", "once"):
        assert [(spec.repeat, spec.in_round) for spec in made if spec.sweep == name] == [(21, False)]
    assert [spec.in_round for spec in made if spec.sweep == "chunked"] == [True] * 20 + [False]


def test_folders_of_which_a_killed_pipeline_removed_a_part_are_made_again(tmp_path: Path) -> None:
    def make(name: str) -> Path:
        folder = tmp_path / name
        (folder / "streams").mkdir(parents=True, exist_ok=True)
        (folder / "streams" / "one.svg").write_text("")
        index = {name: [{"name": "one", "files": ["streams/one.svg"]}, {"name": "none", "files": []}]}
        (folder / "index.json").write_text(json.dumps(index))
        return folder

    tables, figures = make("tables"), make("figures")
    pipeline.remove_partial(tmp_path)
    assert tables.exists() and figures.exists()
    (figures / "streams" / "one.svg").unlink()
    (tables / "index.json").unlink()
    pipeline.remove_partial(tmp_path)
    assert not tables.exists() and not figures.exists()
    pipeline.remove_partial(tmp_path / "nothing yet")


def test_snakefile_receives_the_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["streams.systems={delta-rs: {}}", "streams.modes=[single]", "protocol=quick"]
    monkeypatch.setenv(pipeline.OVERRIDES, json.dumps(typed))
    monkeypatch.setenv(LOCKED, "1")
    monkeypatch.delenv(ROUND, raising=False)
    plan = pipeline.enter({}, tmp_path, str(SHIPPED))
    whole, of_round = (Workspace(tmp_path).plan, Workspace(tmp_path).plan_of_round(1))
    before = whole.read_bytes()
    assert asked_for(plan) is None and not of_round.exists() and PlanFile.read(whole).round is None
    monkeypatch.setenv(ROUND, "1")
    assert pipeline.enter({}, tmp_path, str(SHIPPED)) == plan, "positions and fingerprints are those of the whole"
    assert whole.read_bytes() == before
    subset = PlanFile.read(of_round)
    assert subset.round == Round(1, 21) and subset.series == PlanFile.read(whole).series[:1]
    monkeypatch.setenv(ROUND, "21")
    assert asked_for(plan) is None, "after the last one everything is measured"


@pytest.mark.parametrize("text", ["", "0", "3", "-1", "one", "1.0", "²"])
def test_unknown_round_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(ROUND, text)
    with pytest.raises(ConfigError, match=f"{ROUND}: found '{text}'; allowed: a whole number from 1 to 2"):
        asked_for(planned(2))


@dataclass
class Hand:
    """Fake runner that measures everything requested at once, unless `stops` is set."""

    plan: Plan
    workspace: Workspace
    ends: list[Failure | int] = field(default_factory=list)  # result of each call; success once the list is empty
    stops: bool = False  # before anything is measured
    asked: list[Round | None] = field(default_factory=list)
    failure: Failure | None = None

    def make(self, *targets: str, after: Round | None = None) -> int:
        assert not targets
        self.asked.append(after)
        how = self.ends.pop(0) if self.ends else 0
        if not self.stops:
            end(self.workspace, self.plan.until(after))
            (self.workspace.results / "report.html").write_text("")
            (self.workspace.results / ANSWER).write_text("Fastest one by one: a.\nFastest in batches: b.\n")
        self.failure = None if isinstance(how, int) else how
        return how if isinstance(how, int) else how.exit_code


def in_rounds(tmp_path: Path, **how: Any) -> tuple[Hand, int]:
    plan = planned(2)
    hand = Hand(plan, Workspace(tmp_path), **how)
    hand.workspace.results.mkdir()
    return hand, pipeline.make_in_rounds(cast(pipeline.Runner, hand), plan, hand.workspace)


def test_line_after_a_round_names_the_report(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hand, status = in_rounds(tmp_path)
    assert status == 0 and hand.asked == [Round(1, 2), None]
    answer = ["    Fastest one by one: a.", "    Fastest in batches: b."]
    report = "results/report.html"
    assert capfd.readouterr().out.splitlines() == [
        f"tidemark: round 1 of 2 is measured, intervals will still change; the report is {report}",
        *answer,
    ]
    assert pipeline.verdict(hand.plan, hand.workspace, 0) == 0
    said = capfd.readouterr().out.splitlines()
    assert said[0].startswith("tidemark: 4 of 4 series complete")
    assert said[1:] == [f"tidemark: the report is {report}", *answer]
    assert pipeline.verdict(hand.plan, hand.workspace, 14) == 14
    assert len(capfd.readouterr().out.splitlines()) == 1, "the report would be that of before"


def test_failure_to_make_results_does_not_stop_the_measurement(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = Failure("figures", "a figure is wrong", "results/logs/figures.log", 14)
    hand, status = in_rounds(tmp_path, ends=[broken])
    assert status == 0 and hand.asked == [Round(1, 2), None] and hand.failure is None
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err == (
        "tidemark: figures: failed: a figure is wrong. Its log is results/logs/figures.log. "
        "The measurement goes on, and results are made again at its end.\n"
    )


@pytest.mark.parametrize(
    ("how", "status"), [(Failure("dataset", "no such month", None, 3), 3), (pipeline.INTERRUPTED, 130), (0, 0)]
)
def test_failure_before_the_round_is_measured_stops_the_pipeline(
    tmp_path: Path, how: Failure | int, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Stop with 0 as well, Snakemake's status if less than everything was requested, as with --until."""
    hand, ended = in_rounds(tmp_path, ends=[how], stops=True)
    assert ended == status and hand.asked == [Round(1, 2)]
    assert capfd.readouterr().out == ""


def test_ctrl_c_while_results_of_a_round_are_made_stops_at_once(tmp_path: Path) -> None:
    hand, ended = in_rounds(tmp_path, ends=[pipeline.INTERRUPTED])
    assert ended == pipeline.INTERRUPTED and hand.asked == [Round(1, 2)]
