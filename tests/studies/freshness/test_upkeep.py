"""Tests of policies of upkeep: what a consumer does between commits, its account, and the policies that none beats."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from tests.studies.freshness.records import RECORD

from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.measure.oracle import compare
from tidemark.planner.frontier import PolicyCost, beaten_by, cheapest_of_others, unbeaten
from tidemark.runs.manifest import Footprint
from tidemark.studies.freshness.frontier import frontier_sentence, policy_costs
from tidemark.studies.freshness.metrics import (
    CPU,
    LONGEST_CALL,
    PEAK,
    STALL,
    UPKEEP_CPU,
    UPKEEP_PEAK,
    UPKEEP_WRITTEN,
    WRITTEN,
)
from tidemark.studies.freshness.record import FreshnessRecord, UpkeepCall, UpkeepRecord
from tidemark.studies.freshness.upkeep import COMMIT, DONE, Account, Call, Upkeep, UpkeepOrder, UpkeepWriter, keep
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory, CommitStatus, TableWriter

SECOND, BEGIN_NS = 1_000_000_000, 1_000_000_000_000
EVENTS = 100
METRICS = (STALL, LONGEST_CALL, PEAK, UPKEEP_PEAK, WRITTEN, UPKEEP_CPU, UPKEEP_WRITTEN, CPU)


class Overtaken(Exception):
    """Another commit came first."""


@dataclass
class Writer(TableWriter):
    """Fake client that notes its calls: those named in `failing` raise, the first `refused` writes are overtaken, and
    the process ends in the merge number `merges`.
    """

    failing: tuple[str, ...] = ()
    refused: int = 0
    merges: int = 0
    called: list[str] = field(default_factory=list)

    def _note(self, name: str) -> None:
        self.called.append(name)
        if name in self.failing:
            raise ValueError(f"no {name}")
        if name == "merge" and self.called.count(name) == self.merges:
            raise SystemExit
        if name.startswith("write") and self.refused:
            self.refused -= 1
            raise Overtaken

    def write(self, rows: pa.Table) -> None:
        self._note(f"write {rows.num_rows}")

    def commit_status(self, error: Exception) -> CommitStatus:
        return CommitStatus.CONFLICT if isinstance(error, Overtaken) else CommitStatus.FAILED

    def refresh(self) -> None:
        self._note("refresh")

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        return {name: partial(self._note, name) for name in ("merge", "expire", "clean up")}


def rows(count: int) -> pa.Table:
    return pa.table({"id": list(range(count))})


def kept(place: Path, policy: str, commits: int, *failing: str) -> tuple[Writer, Account]:
    """Return the client and the account of a consumer after `commits` commits of 5 rows."""
    place.mkdir(exist_ok=True)
    client = Writer(failing)
    writer = UpkeepWriter(client, Upkeep.parse(policy), place / "calls")
    for _ in range(commits):
        writer.write(rows(5))
    return client, Account.read(place / "calls")


def test_policies_say_what_is_done_and_after_how_many_commits() -> None:
    assert Upkeep.parse("none") == Upkeep((), 0) and Upkeep.parse("none").words == "no upkeep"
    assert Upkeep.parse("merge-expire-50") == Upkeep(("merge", "expire"), 50)
    assert Upkeep.parse("merge-expire-1000").words == "merge and expire after 1,000 commits"
    assert Upkeep.parse("all-50-beside") == Upkeep(("all",), 50, beside=True)
    assert Upkeep.parse("all-50-beside").words == "all after 50 commits by a process beside the writer"
    offered = ("merge", "expire", "clean up")
    assert Upkeep.parse("expire-9").operations(offered) == ("expire", "clean up")
    assert Upkeep.parse("merge-9").operations(("compact", "vacuum", "checkpoint")) == ("compact",)
    assert Upkeep.parse("all-9").operations(offered) == offered and Upkeep.parse("none").operations(offered) == ()


@pytest.mark.parametrize(
    ("system", "policy", "said"),
    [
        ("ducklake", "merge-expire-5", None),
        ("ducklake", "flush-5", r"DuckLake: no flush is among its client's maintenance \(merge, expire, clean up\)"),
        ("ducklake-inlined-postgres", "flush-5", None),
        ("ducklake-inlined-postgres", "merge-5", r"no merge is among its client's maintenance \(flush\)"),
        ("iceberg-pyiceberg", "merge-5", r"Iceberg \(PyIceberg\): no merge is among its .* \(expire\)"),
        ("iceberg-pyiceberg", "all-5", None),
        ("iceberg-duckdb", "all-5", "DuckDB has no call that maintains it; PyIceberg's client can, beside"),
        ("iceberg-duckdb", "all-5-beside", None),
        ("iceberg-duckdb", "merge-5-beside", r"Iceberg \(PyIceberg\): no merge is among its .* \(expire\)"),
        ("ducklake-inlined", "all-5-beside", "no call that maintains a table"),
        ("iceberg-duckdb", "none", None),
        ("delta-rs", "merge-checkpoint-5", None),
    ],
)
def test_upkeep_that_a_client_lacks_is_refused_with_the_reason(system: str, policy: str, said: str | None) -> None:
    kind = of_kind(TableSystem)[system]
    found = Upkeep.parse(policy).refused_by(kind, kind.Options())
    assert (found is None) == (said is None)
    assert said is None or (found and re.search(said, found))


def test_upkeep_follows_every_so_many_commits(tmp_path: Path) -> None:
    client, account = kept(tmp_path / "merge", "merge-2", 5)
    assert client.called == ["write 5", "write 5", "merge", "write 5", "write 5", "merge", "write 5"]
    assert [call.commit for call in account.calls] == [1, 2, 2, 3, 4, 4, 5]
    assert [each.rows for each in account.history()] == [5] * 5
    assert all(call.peak_bytes > 0 and call.seconds >= 0 and call.outcome == DONE for call in account.calls)
    assert kept(tmp_path / "none", "none", 2)[0].called == ["write 5", "write 5"]


def test_failed_operation_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    client, account = kept(tmp_path, "all-1", 2, "expire")
    assert client.called == ["write 5", "merge", "expire", "refresh", "clean up"] * 2
    failed = [call for call in account.record(0, Upkeep.parse("all-1"), {}).calls if call.outcome != DONE]
    assert [(call.operation, call.outcome, call.said) for call in failed] == [
        ("expire", "failed", "ValueError: no expire")
    ] * 2
    with pytest.raises(ValueError, match="no write 5"):
        kept(tmp_path, "all-1", 1, "write 5")
    assert len(Account.read(tmp_path / "calls").history()) == 2, "a commit that was not acknowledged is none"


def test_consumer_has_ended_once_the_last_upkeep_has_returned(tmp_path: Path) -> None:
    _, account = kept(tmp_path, "all-2", 4)
    upkeep, operations = Upkeep.parse("all-2"), ("merge", "expire", "clean up")
    assert account.has_ended(20, upkeep, operations) and not account.has_ended(21, upkeep, operations)
    assert not Account(account.calls[:-1]).has_ended(20, upkeep, operations)
    assert Account(account.calls[:-4]).has_ended(15, upkeep, operations), "none is due after the third commit"
    assert Account(account.calls[:-1]).has_ended(20, Upkeep.parse("none"), ())
    path = tmp_path / "calls"
    path.write_text(path.read_text()[:-5])  # the process was killed in its last line
    assert Account.read(path).calls == account.calls[:-1]


def test_refused_commit_is_tried_again_and_counted(tmp_path: Path) -> None:
    client, path = Writer(refused=2), tmp_path / "calls"
    UpkeepWriter(client, Upkeep.parse("none"), path).write(rows(5))
    assert client.called == ["write 5", "refresh", "write 5", "refresh", "write 5"]
    found = Account.read(path)
    assert [call.outcome for call in found.calls] == ["conflict", "conflict", DONE]
    kept = found.record(0, Upkeep.parse("none"), {})
    assert (kept.commits, kept.refused, len(found.history())) == (1, 2, 1)


def test_process_beside_the_writer_does_what_commits_make_due(tmp_path: Path) -> None:
    path, upkeep = tmp_path / "calls", Upkeep.parse("merge-2-beside")
    path.touch()
    client, beside = Writer(), Writer(merges=2)
    order = UpkeepOrder(cast(ClientFactory, SimpleNamespace(open=lambda: beside)), upkeep, path)

    def run() -> None:
        with suppress(SystemExit):
            keep(order)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    writer = UpkeepWriter(client, upkeep, path)
    for _ in range(3):
        writer.write(rows(5))
    while not Account.read(path).has_ended(15, upkeep, ("merge",)):
        thread.join(0.02)
    assert beside.called == ["merge"] and client.called == ["write 5"] * 3
    writer.write(rows(5))
    assert not Account.read(path).has_ended(20, upkeep, ("merge",))
    thread.join(30)
    assert not thread.is_alive() and beside.called == ["merge", "merge"]


def call(at_s: float, seconds: float, operation: str, commit: int) -> Call:
    return Call(BEGIN_NS + round(at_s * SECOND), seconds, operation, commit, 5, 0.1, 1000, 10**6, DONE, "")


def test_stall_is_a_commit_with_the_upkeep_after_it() -> None:
    calls = (
        call(-1.0, 9.0, COMMIT, 1),  # before the window
        call(0.1, 0.2, COMMIT, 2),
        call(0.3, 0.5, "merge", 2),
        call(0.8, 0.1, "expire", 2),
        call(1.0, 0.3, COMMIT, 3),
    )
    found = Account(calls).record(BEGIN_NS, Upkeep.parse("all-2"), {"pipeline": 5000})
    assert (found.commits, found.longest_busy_s, found.peak_bytes) == (2, pytest.approx(0.8), 10**6)
    assert [(each.operation, each.moment_s) for each in found.calls] == [
        ("merge", pytest.approx(0.3)),
        ("expire", pytest.approx(0.8)),
    ]
    beside = Account(calls).record(BEGIN_NS, Upkeep.parse("all-2-beside"), {})
    assert beside.longest_busy_s == pytest.approx(0.3) and beside.calls == found.calls


def cost(policy: str, fresh_s: float, cpu_s: float, stall_s: float, rate: int = 1000) -> PolicyCost:
    return PolicyCost("ducklake", "DuckLake", "thesis", rate, policy, fresh_s, cpu_s, stall_s)


def test_planted_policy_that_another_one_beats_is_not_on_the_frontier() -> None:
    fresh, cheap, calm = cost("a", 0.2, 90, 0.5), cost("b", 2.0, 9, 0.6), cost("c", 2.1, 91, 0.1)
    beaten, same = cost("d", 2.0, 10, 0.6), cost("e", 0.2, 90, 0.5)
    alone = cost("f", 9.0, 99, 9.0, rate=10)
    every = [beaten, calm, cheap, fresh, same, alone]
    assert unbeaten(every) == [fresh, same, cheap, calm, alone], "equal policies do not beat one another"
    assert beaten_by(beaten, every) == cheap and beaten_by(fresh, every) is None
    assert unbeaten([cost("g", 1.0, 1, 1), cost("h", 1.0, 1, 2)]) == [cost("g", 1.0, 1, 1)]
    other = replace(cost("i", 1.0, 300, 9.0), system="delta-rs")
    dearer, late = replace(other, cpu_s=301.0), replace(other, cpu_s=1.0, fresh_s=3.0)
    assert cheapest_of_others([*every, late, dearer, other], [fresh], 2.5) == [other]
    said = frontier_sentence(every)
    assert "At 10 events/s, 1 of 1 policies" in said and "At 1,000 events/s, 4 of 5 policies" in said
    assert "DuckLake b: 2.0 s fresh, 9.0 CPU-s a million events, longest stall 0.60 s" in said
    assert "DuckLake d" not in said


def series(policy: str, upkeep: str, ids: Sequence[int], age_s: float = 1.0, cpu_s: float = 1.0) -> Any:
    """Return a series with one run of EVENTS events, whose table holds `ids` by the real oracle."""
    ages = np.full(EVENTS, round(age_s * SECOND))
    columns = {"seen_ns": ages, "elapsed_ns": ages}
    oracle = compare(pa.chunked_array([ids], pa.int64()), EVENTS)
    calls = (UpkeepCall(1.0, 0.5, "merge", 9, DONE, "", 0.25, 500, 2 * 10**6),)
    kept = UpkeepRecord(calls, 9, 0, 0.6, 10**6, (("pipeline", 5000),))
    record = replace(RECORD, cpu_s=(("pipeline", cpu_s),), upkeep=kept)
    marks = () if oracle.verdict else (f"{oracle.duplicated} are there more than once",)
    run = SimpleNamespace(
        label=f"{policy} {upkeep}", column=columns.__getitem__, footprint=Footprint(3, 30, 4, 40, 0),
        manifest=SimpleNamespace(oracle=oracle, events=EVENTS, marks=marks), record={FreshnessRecord: record}.get,
    )  # fmt: skip
    pairs = {"policy": policy, "rate": 1000, "upkeep": upkeep}
    return SimpleNamespace(
        system="ducklake", title="DuckLake", stack="thesis", mode=f"{policy}-{upkeep}", settings=tuple(pairs.items()),
        runs=[run], hot_runs=[run], counted_runs=[run], missing=lambda: "not measured",
    )  # fmt: skip


class Values:
    """Metrics of the first run of a series."""

    def __init__(self, *every: Any) -> None:
        self.run_set = SimpleNamespace(select=lambda: every)

    def value(self, metric: Metric, series: Any) -> Any:
        return cast(Any, metric.how)(series.runs[0])


def test_table_with_a_planted_duplicate_row_is_no_policy_to_choose() -> None:
    whole = list(range(EVENTS))
    right, wrong = series("1s", "none", whole), series("100ms", "merge-50", [*whole, 7], age_s=0.1, cpu_s=0.1)
    assert wrong.runs[0].manifest.oracle.duplicated == 1
    assert [found for found, _ in policy_costs(cast(Any, Values(right, wrong)))] == [right]
    fixed = series("100ms", "merge-50", whole, age_s=0.1, cpu_s=0.1)
    costs = policy_costs(cast(Any, Values(right, fixed)))
    assert [each.policy for each in unbeaten(each for _, each in costs)] == ["every 0.1 s, merge after 50 commits"]


def test_metrics_of_a_policy_are_of_events_bytes_and_calls() -> None:
    run = series("1s", "merge-50", list(range(EVENTS))).runs[0]
    found = [cast(Any, each.how)(run).value for each in METRICS]
    assert found == pytest.approx([0.6, 0.5, 1.0, 2.0, 50.0, 25.0, 10.0, 1e4])
    left = SimpleNamespace(manifest=run.manifest, record={FreshnessRecord: RECORD}.get)
    with pytest.raises(NotAvailable, match="no policy of upkeep"):
        cast(Any, STALL.how)(left)
