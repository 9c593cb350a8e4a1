# ruff: noqa: ARG001, ARG002 -- the protocol has parameters that so small a study does not use
"""The smallest possible study: three files of code, a claim and a chapter. It times repeated sleeps."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidemark.config import Config
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed, WindowRunner, Workload
from tidemark.paths import private_directory
from tidemark.runs.proofs import Oracle
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.study import Study

STUDY = Study(
    name="ticks", title="Sleeps that are long enough", question="Does a sleep take as long as it was asked to?"
)


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    given = config.sections["ticks"]
    sizes = given["protocols"][config.protocol]
    spec = replace(base, name="clock", title="Clock", system="null", mode="ticks", runs=sizes["runs"])
    return [replace(spec, settings=(("sleep_ms", given["sleep_ms"]),), window_seconds=sizes["window_seconds"])]


def limits(config: Config) -> list[str]:
    return []


@dataclass(slots=True)
class Sleeps:
    starts: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    elapsed_ns: int = 0

    @property
    def operations(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> int:
        return len(self.lengths)

    def elapsed(self) -> npt.NDArray[np.int64]:
        return np.array(self.lengths, np.int64)

    def budget(self) -> dict[str, int]:
        return {"sleep": sum(self.lengths), "rest": self.elapsed_ns - sum(self.lengths)}

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"start_ns": self.starts, "elapsed_ns": self.lengths, "rows": [1] * self.rows}
        pq.write_table(pa.table(columns), path)


class Bed(WindowRunner[Sleeps]):
    def __init__(self, ticks: Ticks, test_bed: TestBed, directory: Path) -> None:
        self.directory = directory
        self._ticks, self._test_bed = ticks, test_bed
        self._awake = False

    def new_window(self) -> Sleeps:
        return Sleeps()

    def execute(self, window: Sleeps, until_seconds: float) -> None:
        sleep_s = dict(self._ticks.spec.settings)["sleep_ms"] / 1e3
        began = time.perf_counter_ns()
        while window.elapsed_ns < until_seconds * 1e9 and not self._awake:
            started = time.perf_counter_ns()
            time.sleep(sleep_s)
            window.starts.append(started - began)
            window.lengths.append(time.perf_counter_ns() - started)
            window.elapsed_ns = time.perf_counter_ns() - began

    def cancel(self) -> None:
        self._awake = True

    def finish(self, window: Sleeps) -> None:
        pass

    def check(self, window: Sleeps, last: bool, show: ProgressCallback) -> CheckResult:
        return CheckResult(Oracle(True, False, window.rows, 0, 0, 0, 0, "nothing is stored", 0.0))

    def describe(self, window: Sleeps) -> RunMetadata:
        import pyarrow as pa

        from tidemark.measure.describe import system_part
        from tidemark.systems.base import Context

        system = self._test_bed.variant.open(Context(self.directory, {}, 1))
        return RunMetadata(
            system_part(self._test_bed.variant, system, pa.schema([])), {"Python": platform.python_version()}
        )


class Ticks(Workload):
    name = "ticks"
    measurement = 1

    @contextmanager
    def open_window(self, test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[Bed]:
        yield Bed(self, test_bed, private_directory(test_bed.work / name))

    @property
    def warms_up(self) -> bool:
        return False


WORKLOAD = Ticks
