"""Tests of a window step by step: failing steps, checks of its answers, and the data that its log adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidemark.errors import MachineError, ServiceError, SystemFailure
from tidemark.measure.workload import TestBed
from tidemark.runs.manifest import Footprint
from tidemark.services.engines.spark import Answer
from tidemark.services.engines.spark_events import Job, Stage
from tidemark.studies.lhbench.data.store import Verifier
from tidemark.studies.lhbench.record import NOT_TOLD, LakeWindow
from tidemark.studies.lhbench.script import BEFORE, COUNT, LOAD, QUERIED, QUERY, Closed, Held, Phase, Step
from tidemark.studies.lhbench.window import LakeRunner
from tidemark.systems.spark_sql import SqlEngineTable

HELD = (Held("t", ("k",), "SELECT 1 AS k"),)


@dataclass
class Engine:
    """Fake engine that answers the given statements and refuses all others."""

    answers: dict[str, Sequence[Any]]
    reader: str = "delta"
    asked: list[str] = field(default_factory=list)

    def run(self, statement: str, _label: str) -> Answer:
        self.asked.append(statement)
        if statement not in self.answers:
            raise ServiceError(f"Spark refused: no answer to {statement}\nat a place")
        rows = tuple((value,) for value in self.answers[statement])
        return Answer(("k",), rows, 1_000 * len(self.asked), 1_000, 50_000_000, "", "")

    def footprint(self, _table: str) -> Footprint:
        return Footprint(1, 2, 3, 4, None, "")

    def location(self, table: str) -> Path:
        return Path(table)

    def logged(self, _folder: Path) -> Sequence[Job]:
        stage = Stage(3, 0, tasks=2, run_ms=9, input_rows=5, input_bytes=70)
        return (Job(0, "query count 1 of file:/w/run-0/tables/t", 1_007, 1_030, [stage]),)


class Asked:
    """Fake judge that answers as given, and keeps the orders."""

    folder = Path()

    def __init__(self, words: str = "", beside: str = "", *, broken: bool = False) -> None:
        self.orders: list[dict[str, Any]] = []
        self.broken = broken
        self.words, self.beside = words, beside

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        self.orders.append(order)
        if order["do"] == "second":
            if self.broken:
                raise MachineError("'second' failed (-11). Its log ends:\nnothing")
            return {"ways": {order["reader"]: {}}}
        tables = {"t": {"expected": 4, "found": 4, "words": self.words}}
        beside = {"iceberg_scan": {"t": {"expected": 4, "found": 3, "words": self.beside}}}
        return {"tables": tables, "beside": beside, "answers": {}, "versions": {"DuckDB": "1"}, "seconds": 1.0}


def runner(phases: Sequence[Phase], engine: Engine, judge: Asked) -> LakeRunner:
    servers = SimpleNamespace(check=lambda: None, ended=lambda: False)
    test_bed = SimpleNamespace(servers=servers, groups=lambda _stage: {}, variant=SimpleNamespace(needs=()))
    system = cast(SqlEngineTable, engine)
    return LakeRunner(
        cast(TestBed, test_bed), Path("/w/run-0"), system, phases, cast(Verifier, judge), lambda _words: None
    )


def window_of(made: LakeRunner) -> LakeWindow:
    window = made.new_window()
    for _ in made.segments(window, 60):
        made.execute(window, 60)
    made.finish(window)
    return window


def count(number: int = 1) -> Step:
    return Step(QUERY, COUNT, number, ("SELECT count(*)",), closed=Closed(COUNT, 2, 2))


def test_failing_query_is_recorded_and_the_next_one_runs() -> None:
    steps = (Step(QUERY, "q9", 1, ("SELECT nothing",), "SELECT nothing"), count())
    done = window_of(runner([Phase(QUERIED, steps)], Engine({"SELECT count(*)": [4]}), Asked())).done
    assert [each.error for each in done] == ["Spark refused: no answer to SELECT nothing", ""]
    assert done[0].submitted_ms == NOT_TOLD and done[1].elapsed_ns == 50_000_000


def test_a_table_that_cannot_be_made_ends_the_series() -> None:
    made = runner([Phase(LOAD, (Step(LOAD, "t", 1, ("CREATE TABLE t",)),))], Engine({}), Asked())
    with pytest.raises((ServiceError, SystemFailure), match="refused"):
        window_of(made)


def test_cancelled_window_runs_no_further_step_and_is_invalid() -> None:
    made = runner([Phase(QUERIED, (count(),))], Engine({"SELECT count(*)": [4]}), Asked())
    made.cancel()
    with pytest.raises(SystemFailure, match="abandoned"):
        window_of(made)


@pytest.mark.parametrize(("number", "verdict"), [(4, True), (5, False)])
def test_answer_is_checked_against_its_closed_form_without_a_judge(number: int, verdict: bool) -> None:
    judge = Asked()
    made = runner(
        [Phase(QUERIED, (count(),), HELD, judged=True, read=False)], Engine({"SELECT count(*)": [number]}), judge
    )
    window = window_of(made)
    findings = made.check(window, True, lambda _words: None)
    assert findings.oracle.verdict is verdict and not judge.orders
    assert findings.oracle.reader == "answers alone, each by arithmetic"


def test_errors_of_another_reader_are_kept_but_do_not_affect_the_verdict() -> None:
    made = runner([Phase(LOAD, (), HELD, judged=True), Phase(QUERIED, (count(),))], Engine({"SELECT count(*)": [4]}),
                 Asked(beside="3 rows of 4"))  # fmt: skip
    assert made.check(window_of(made), True, lambda _words: None).oracle.verdict
    wrong = runner([Phase(LOAD, (), HELD, judged=True), Phase(QUERIED, (count(),))], Engine({"SELECT count(*)": [4]}),
                  Asked(words="3 rows of 4"))  # fmt: skip
    assert not wrong.check(window_of(wrong), True, lambda _words: None).oracle.verdict


def test_engine_log_is_attributed_to_each_step() -> None:
    window = window_of(runner([Phase(QUERIED, (count(), count(2)))], Engine({"SELECT count(*)": [4]}), Asked()))
    first, second = window.done
    assert (first.startup_ns, first.jobs, first.tasks, first.scan_bytes) == (7_000_000, 1, 2, 70)
    assert (second.startup_ns, second.jobs) == (NOT_TOLD, 0)
    assert [(place, job.description) for place, job, _ in window.stages] == [
        (0, "query count 1 of file:./tables/t"),
    ], "no folder of the machine"


def test_second_engine_runs_the_same_queries_after_the_first() -> None:
    steps = tuple(Step(QUERY, "q1", number, ("SELECT 1 AS `a`",), 'SELECT 1 AS "a"') for number in (1, 2))
    for broken, found in ((False, {"ways": {"delta": {}}}), (True, {"reason": "'second' failed (-11). Its log ends:"})):
        judge, engine = Asked(broken=broken), Engine({"SELECT 1 AS `a`": [1]})
        made = runner([Phase(BEFORE, steps, HELD, second=True)], engine, judge)
        window = window_of(made)
        order = judge.orders[0]
        assert (order["reader"], order["queries"], order["passes"]) == ("delta", {"q1": 'SELECT 1 AS "a"'}, 2)
        assert order["tables"]["t"]["location"] == "t" and len(engine.asked) == 2
        assert made.second == {BEFORE: found} and made.check(window, True, lambda _words: None).oracle.verdict


def test_format_without_another_reader_keeps_the_reason() -> None:
    judge = Asked()
    phase = Phase(BEFORE, (Step(QUERY, "q1", 1, ("SELECT 1",), "SELECT 1"),), HELD, second=True)
    made = runner([phase], Engine({"SELECT 1": [1]}, reader="hudi"), judge)
    window_of(made)
    assert made.second == {BEFORE: {"reason": "DuckDB has no reader of Hudi's tables"}}
    assert [order["do"] for order in judge.orders] == ["judge"]
