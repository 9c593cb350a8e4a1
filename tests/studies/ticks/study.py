"""The smallest study: its settings, a claim, a chapter and two more files of code. It times sleeps."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from tidemark.config import Config
from tidemark.measure.workload import CheckResult, DoneWindow, ProgressCallback, WindowRunner, Workload
from tidemark.runs.proofs import Oracle
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.study import Study

STUDY = Study("ticks", "Sleeps that are long enough", "Does a sleep take as long as it was asked to?")


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    given = config.sections["ticks"]
    sizes = given["protocols"][config.protocol]
    spec = replace(base, name="clock", title="Clock", system="null", mode="ticks", runs=sizes["runs"])
    return [replace(spec, settings=(("sleep_ms", given["sleep_ms"]),), window_seconds=sizes["window_seconds"])]


@dataclass
class Sleep:
    start_ns: int
    elapsed_ns: int
    rows: int = 1


class SleepRunner(WindowRunner[DoneWindow[Sleep]]):
    def new_window(self) -> DoneWindow[Sleep]:
        return DoneWindow()

    def execute(self, window: DoneWindow[Sleep], until_seconds: float) -> None:
        seconds = dict(self.test_bed.spec.settings)["sleep_ms"] / 1e3
        began = time.perf_counter_ns()
        while window.elapsed_ns < until_seconds * 1e9 and not self.is_cancelled:
            started = time.perf_counter_ns()
            time.sleep(seconds)
            window.done.append(Sleep(started - began, time.perf_counter_ns() - started))
            window.elapsed_ns = time.perf_counter_ns() - began

    def check(self, window: DoneWindow[Sleep], last: bool, show: ProgressCallback) -> CheckResult:
        del last, show
        return CheckResult(Oracle.not_applicable(window.rows, "nothing is stored"))


class Ticks(Workload):
    name, measurement = "ticks", 1
    runner_class = SleepRunner
    warms_up = False


WORKLOAD = Ticks
