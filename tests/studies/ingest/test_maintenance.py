"""Tests of commits during maintenance worked out by hand, of rounds, and of maintenance that drops rows of a table."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import make_plan
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.serde import Fields
from tidemark.runs.serde import read as decoded
from tidemark.studies.ingest.load.maintenance import DONE, Upkeep, rounds, watch
from tidemark.studies.ingest.load.records import ACKED, CONFLICT
from tidemark.studies.ingest.load.writer import WorkerConfig
from tidemark.studies.ingest.parts import MAINTENANCE, MaintenanceSettings, part_name, settings_of
from tidemark.studies.ingest.study import Ingest
from tidemark.studies.ingest.tables import maintenance as results
from tidemark.studies.ingest.tables.maintenance import (
    ROUND,
    Kept,
    commit_ms,
    failed_calls,
    held_sentence,
    operations,
    rounds_s,
    slowed,
    wrong,
)
from tidemark.studies.ingest.window.maintenance import Growth, MaintainedPool, record
from tidemark.studies.ingest.window.runner import Finding, look, states
from tidemark.systems.base import Context
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.registry import variant_of
from tidemark.systems.writers import ClientFactory, CommitStatus, TableWriter

SHIPPED = Path(__file__).parents[3] / "config.yaml"
ROWS, SECOND = 5, 1_000_000_000


def call(operation: str, moment_s: float, seconds: float, number: int = 1, outcome: str = DONE) -> dict[str, Any]:
    plain = {"operation": operation, "round": number, "moment_s": moment_s, "seconds": seconds, "peak_bytes": 1}
    return {**plain, "outcome": outcome, "said": "" if outcome == DONE else "Error: no"}


def kept(calls: list[dict[str, Any]], *, words: str = "exact", title: str = "DuckLake", missing: int = 0) -> Kept:
    """Return a run with an attempt every 10 ms for 4 s, each tenth refused; those during a call take 8 ms, others 2."""
    starts = np.arange(400) * 10_000_000
    beside = np.zeros(400, bool)
    for each in calls:
        beside |= (starts / 1e9 + 0.002 > each["moment_s"]) & (starts / 1e9 < each["moment_s"] + each["seconds"])
    took = np.where(beside, 8, 2) * 1_000_000
    outcomes = np.array([CONFLICT if place % 10 == 9 else ACKED for place in range(400)], object)
    columns = {"start_ns": starts, "elapsed_ns": took, "response_ns": took, "outcome": outcomes}
    found = {
        "maintenance": {
            "left_undone": None,
            "calls": calls,
            "sizes": [],
            "looks_failed": 0,
            "reads": {
                "moment_s": [0.5, 1.1, 3.0, 3.5],
                "seconds": [0.01, 0.04, 0.02, 0.01],
                "rows": [10, 40, None, 30],
                "said": ["OSError: gone"],
            },
        },
        "oracle": {"words": words, "lost": missing, "doubled": 0},
    }
    oracle = SimpleNamespace(verdict=words == "exact", missing=missing, duplicated=0, expected=1000)
    manifest = SimpleNamespace(oracle=oracle)
    footprint = SimpleNamespace(data_files=7)
    read = columns.__getitem__
    run = SimpleNamespace(
        manifest=manifest, footprint=footprint, column=read, words=read, elapsed_s=4.0, has=columns.__contains__,
        record=lambda kind: decoded(kind, Fields("run.json", found)), label=title,
    )  # fmt: skip
    return Kept(cast(Series, SimpleNamespace(title=title, id=title)), cast(Run, run))


def round_of(one: Kept) -> BootstrapEstimate:
    how = ROUND.how
    assert callable(how)
    found: BootstrapEstimate = how(one.run)
    return found


CALLS = [
    call("merge", 1.0, 0.3), call("expire", 1.3, 0.1), call("merge", 2.0, 0.5, 2), call("expire", 2.5, 0.1, 2),
    call("merge", 3.0, 0.2, 3), call("expire", 3.2, 0.1, 3, str(CommitStatus.CONFLICT)),
]  # fmt: skip


def test_commits_during_and_between_maintenance_calls_are_separated() -> None:
    one = kept(CALLS)
    assert [set(one.times_ms(during=which).round(6)) for which in (True, False)] == [{8.0}, {2.0}]
    assert len(one.times_ms(during=True)) + len(one.times_ms(during=False)) == 360
    assert commit_ms([one], 0.5, during=True).value == pytest.approx(8)
    found = commit_ms([one], 0.5, during=False).estimate("ms")  # all alike, but another window may not be
    assert found.low is not None and found.low < 2 / 1.2 and found.high is not None and found.high > 2 * 1.2
    assert slowed([one], 0.5).estimate("x").value == pytest.approx(4)
    # Some 20 commits begin in the last expire and the one before; a p99 needs 100.
    with pytest.raises(NotAvailable, match="needs 100 commits"):
        commit_ms([one], 0.99, True, "expire")
    assert slowed([one], 0.5, "expire").value == pytest.approx(4)
    during, between = one.pause_s(during=True), one.pause_s(during=False)
    assert during == pytest.approx(0.026) and between == pytest.approx(0.02)


def test_calls_are_counted_by_outcome_and_only_complete_rounds_count() -> None:
    one = kept(CALLS)
    assert operations([one]) == ["merge", "expire"]
    assert failed_calls([one]) == (1, 0) and failed_calls([one], "merge") == (0, 0)
    assert failed_calls([kept([call("vacuum", 1, 1, outcome=str(CommitStatus.UNKNOWN))])]) == (0, 1)
    assert sorted(rounds_s(one.run)) == pytest.approx([0.4, 0.6])  # not the third, in which a call was refused
    assert round_of(one).value == pytest.approx(0.6**0.5 * 0.4**0.5, rel=0.03)
    assert round_of(one).estimate("s").low is None  # only two rounds
    with pytest.raises(NotAvailable, match="without an error"):
        round_of(kept([CALLS[-1]]))


def test_reads_that_failed_or_saw_fewer_rows_than_before_are_counted() -> None:
    reads = kept(CALLS).reads
    assert (reads.count, reads.failed, reads.backwards) == (4, 1, 1)
    assert reads.during_ms.tolist() == [40.0] and reads.between_ms.tolist() == [10.0, 10.0]


def test_table_with_wrong_rows_has_no_times_and_a_share_of_wrong_rows() -> None:
    broken = kept(CALLS, words="20 rows doubled", title="Lossy", missing=20)
    for compute in (lambda: slowed([broken], 0.5), lambda: round_of(broken)):
        with pytest.raises(NotAvailable, match="does not hold what was acknowledged"):
            compute()
    assert wrong([broken]).value == pytest.approx(0.02) and wrong([kept(CALLS)]).estimate("").is_below(0.01)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that makes the sentence about given runs, each with an exact control."""

    def of(*found: Kept) -> str:
        control = SimpleNamespace(of=kept([], title="control"))
        pairs = [(SimpleNamespace(of=each, runs=(1,)), control) for each in found]
        monkeypatch.setattr(results, "pairs", lambda _run_set: pairs)
        monkeypatch.setattr(results, "kept_of", lambda series: [series.of])
        return held_sentence(cast(RunSet, None))

    return of


def test_sentence_names_tables_that_maintenance_breaks(said: Callable[..., str]) -> None:
    broken = kept(CALLS, words="20 rows doubled", title="Lossy", missing=20)
    held = said(kept(CALLS), broken)
    assert "there once in DuckLake." in held and "Lossy: 20 rows doubled (without maintenance: exact)" in held
    assert said(kept(CALLS)).endswith("there once in DuckLake.")
    with pytest.raises(NotAvailable, match="no table was maintained"):
        said()


class Client(TableWriter):
    """Client that merges, cannot expire, and counts; the second count fails and the third sees fewer rows."""

    def __init__(self) -> None:
        self.refreshed, self.counts = 0, iter([10, None, 5, *range(100, 1000)])

    def write(self, rows: pa.Table) -> None:
        del rows

    def commit_status(self, error: Exception) -> CommitStatus:
        return CommitStatus.CONFLICT if "overtaken" in str(error) else CommitStatus.UNKNOWN

    def refresh(self) -> None:
        self.refreshed += 1

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        def expire() -> None:
            raise RuntimeError("overtaken")

        return {"merge": lambda: time.sleep(0.25), "expire": expire}

    def count(self) -> int:
        found = next(self.counts)
        if found is None:
            raise OSError("gone")
        return found


def test_rounds_begin_when_they_are_due_and_errors_are_kept() -> None:
    client, start = Client(), time.perf_counter_ns()
    calls = list(rounds(client, start, start + SECOND, 0.2))
    assert [each.operation for each in calls] == ["merge", "expire"] * (len(calls) // 2)
    begins = [each.moment_s for each in calls if each.operation == "merge"]
    assert begins[0] >= 0.2 and all(begin < 1 for begin in begins)
    assert 2 <= len(begins) <= 4  # one that is due during another begins after it
    assert {(each.operation, each.outcome, each.said) for each in calls} == {
        ("merge", DONE, ""), ("expire", str(CommitStatus.CONFLICT), "RuntimeError: overtaken"),
    }  # fmt: skip
    assert client.refreshed == len(begins) and min(each.peak_bytes for each in calls) > 1 << 20
    counts = watch(Client(), time.perf_counter_ns(), time.perf_counter_ns() + SECOND // 2)
    assert counts.rows[:3] == (10, None, 5) and counts.said == ("OSError: gone",)


# For a separate process: in one that ran many tests, a library may release more in between than this allocates.
PEAKS = """
import numpy as np
from tidemark.machine.processes import forget_peak, peak_bytes
held = np.ones(80_000_000, np.int8)
del held
before = peak_bytes()
forget_peak()
low = peak_bytes()
more = np.ones(40_000_000, np.int8)
print(before, low, peak_bytes())
"""


def test_peak_memory_is_that_of_one_call() -> None:
    said = subprocess.run([sys.executable, "-c", PEAKS], check=True, capture_output=True, text=True).stdout
    before, low, after = (int(each) for each in said.split())
    if low == before:
        pytest.skip("the kernel does not let a process forget its peak")
    assert before - low > 60_000_000 and 30_000_000 < after - low < 60_000_000


# A client whose compaction first deletes the row with the smallest id of the first writer, however often the writers
# beside it make the deletion conflict.
DROPS = """
import time
from contextlib import suppress
from dataclasses import dataclass
from tidemark.systems.writers import ClientFactory

@dataclass(frozen=True)
class DroppingClientFactory(ClientFactory):
    inner: ClientFactory

    def open(self):
        client = self.inner.open()
        offered = client.maintenance()

        def is_dropped():
            with suppress(Exception):
                client.refresh()
                return client.table.delete(f"id = {1 << 40}")["num_deleted_rows"] == 1
            return False

        def compact():
            for _ in range(1000):
                if dropped or is_dropped():
                    dropped.append(True)
                    break
                time.sleep(0.01)
            offered["compact"]()

        dropped = []
        client.maintenance = lambda: {**offered, "compact": compact}
        return client
"""


@pytest.fixture
def table(tmp_path: Path) -> Iterator[DeltaRs]:
    folder = tmp_path / "table"
    folder.mkdir()
    trips = pa.table({"id": pa.array(range(40), pa.int64()), "fare": [float(n) for n in range(40)]})
    pq.write_table(trips, tmp_path / "trips.parquet")
    system = DeltaRs(Context(folder, {}, ROWS), DeltaRs.Options())
    system.create(trips.schema)
    yield system
    system.close()


@pytest.mark.parametrize("drops", [False, True])
def test_maintenance_that_drops_rows_is_detected(
    drops: bool, table: DeltaRs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep: ClientFactory = table.client_factory()
    if drops:
        (tmp_path / "planted_drops.py").write_text(DROPS)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(
            "tidemark.studies.ingest.load.crew.server_environment",
            lambda **given: {**given, "PYTHONPATH": f"{given['PYTHONPATH']}:{tmp_path}"},
        )
        import planted_drops  # type: ignore[import-not-found]

        upkeep = planted_drops.DroppingClientFactory(upkeep)
    trips = tmp_path / "trips.parquet"

    def order(n: int) -> WorkerConfig:
        return WorkerConfig(table.client_factory(), n, trips, ROWS, 50, 2, 1, tmp_path / f"records-{n}", 100_000)

    growth = Growth(table, 0.2)
    with MaintainedPool(order, 2, table.client_factory(), Upkeep(upkeep, 0.5), tmp_path) as crew:
        crew.warm()
        with growth.watched():
            start = crew.write(1.5)
        noted = crew.records()
        assert not crew.has_failed() and start is not None
    finding: Finding = look(table.ids(), {number: states(each) for number, each in enumerate(noted, 1)}, ROWS)
    assert (finding.lost, finding.is_exact) == ((1, False) if drops else (0, True)), finding.words
    found = record(start, table, crew, growth)
    assert {each.operation for each in found.calls} == {"compact", "vacuum", "checkpoint"}
    assert all(each.moment_s > 0.49 for each in found.calls), found.calls
    counted = [count for count in found.reads.rows if count is not None]
    assert counted and max(counted) <= sum(len(each) for each in noted) * ROWS
    assert len(found.sizes) >= 2 and found.left_undone is None


def planned(*overrides: str) -> list[Any]:
    every = make_plan(load(SHIPPED, ["studies=[ingest]", "protocol=quick", *overrides])).series
    return [each for each in every if part_name(each) == MAINTENANCE]


def test_each_system_is_measured_with_maintenance_and_without() -> None:
    systems = ("ducklake", "ducklake-inlined-postgres", "delta-rs")
    series = planned()
    assert {(each.name, each.mode) for each in series} == {
        (name, mode) for name in systems for mode in ("maintained-3", "left-3")
    }
    for each in series:
        settings = settings_of(each)
        assert isinstance(settings, MaintenanceSettings) and (settings.rows, each.runs) == (5, 1)
        assert settings.every_seconds == (2 if each.mode == "maintained-3" else 0)
    assert {each.name for each in planned("ingest.systems={null: {}, delta-rs: {}}")} == {"delta-rs"}


def test_system_without_maintenance_has_a_control_and_a_reason() -> None:
    sizes = "ingest.protocols.quick={writers: [1], runs: 1, window_seconds: 1, maintenance: {systems: [%s]}}"
    for name, reason in (("iceberg-duckdb", "no call that maintains"), ("delta-rs", None), ("null", None)):
        said = {each.mode: Ingest.unavailable(each, variant_of(each)) for each in planned(sizes % f'"{name}"')}
        if name == "null":
            assert said == {}
            continue
        assert said["left-3"] is None
        assert (reason is None and said["maintained-3"] is None) or (reason and reason in (said["maintained-3"] or ""))


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("ingest.maintenance={every_seconds: 0}", r"maintenance\.every_seconds.*more than 0"),
        (
            "ingest.protocols.quick={writers: [1], runs: 1, window_seconds: 1, maintenance: {systems: [delta]}}",
            r"maintenance\.systems.*found 'delta'; allowed: .*did you mean 'delta-rs'",
        ),
    ],
)
def test_invalid_setting_is_named(override: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        planned(override)
