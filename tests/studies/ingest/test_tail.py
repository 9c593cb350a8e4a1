"""Tests of scheduled (open-loop) requests: a planted stall, overload, and what a closed loop shows of the same."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.config import load
from tidemark.errors import ConfigError, SystemFailure
from tidemark.pipeline.plan import make_plan
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.serde import Fields
from tidemark.runs.serde import read as decoded
from tidemark.studies.ingest import metrics
from tidemark.studies.ingest.gateway.group_commit import STAGED, GroupCommit
from tidemark.studies.ingest.gateway.protocol import new_token
from tidemark.studies.ingest.gateway.server import GatewayConfig
from tidemark.studies.ingest.load.crew import GatewayPool, Pool, WorkerPool
from tidemark.studies.ingest.load.records import ACKED, CONFLICT, NUMBERS, WIDTH, Records
from tidemark.studies.ingest.load.schedule import CONSTANT, POISSON, Due, Notes, intended, read_notes, work_off
from tidemark.studies.ingest.load.writer import WorkerConfig, WriterLoop
from tidemark.studies.ingest.parts import part_name, settings_of
from tidemark.studies.ingest.settings import ONE, TAIL, TailSettings
from tidemark.studies.ingest.tables import requests as results
from tidemark.studies.ingest.window.open_loop import Pace, TailWindow, closed
from tidemark.studies.ingest.window.runner import look, states
from tidemark.systems.base import Context
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.null import NullClientFactory
from tidemark.systems.writers import CommitStatus, TableWriter

SHIPPED = Path(__file__).parents[3] / "config.yaml"
MS, SECOND = 1_000_000, 1_000_000_000


def recorded(found: dict[str, Any]) -> Callable[[type[Any]], Any]:
    """Return a run's `record` for what its window found."""
    return lambda kind: decoded(kind, Fields("run.json", found, "found."))


class Served:
    """Client with a simulated clock: each request takes 10 ms, and one of them a second more."""

    def __init__(self, stalls_at: int | None = None) -> None:
        self.now, self.services = 0, list[tuple[int, int]]()
        self._stalls_at = stalls_at

    def clock(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)

    def ask(self) -> None:
        took = 10 * MS + (SECOND if len(self.services) == self._stalls_at else 0)
        self.services.append((self.now, self.now + took))
        self.now += took

    def responses(self, meant: list[int]) -> np.ndarray:
        return np.array([end - start for start, (_, end) in zip(meant, self.services, strict=True)])


def due(starts: np.ndarray, longest_s: float = 10.0, most: int = 100_000) -> Due:
    return Due(starts.tolist(), round(1e9 * longest_s), most)


def test_stall_delays_one_request_of_a_closed_loop_and_all_due_of_an_open_one() -> None:
    closed_loop = Served(stalls_at=50)
    while closed_loop.now < 4 * SECOND:
        closed_loop.ask()
    raw = np.array([end - start for start, end in closed_loop.services])
    assert (raw > 100 * MS).sum() == 1 and np.quantile(raw, 0.99) == 10 * MS

    asked = Served(stalls_at=50)
    meant = work_off(due(intended(CONSTANT, 50, 4, ())), asked.ask, asked.clock, asked.sleep)
    responses = asked.responses(meant)
    assert len(responses) == 199 and all(start >= own for own, (start, _) in zip(meant, asked.services, strict=True))
    # A request every 20 ms, served in 10 ms: after the stall, each response is 10 ms shorter than the one before.
    ramp = responses[50:]
    waiting = ramp[ramp > 10 * MS]
    assert len(waiting) == 100 and waiting.max() == 1010 * MS
    assert set(np.diff(waiting).tolist()) == {-10 * MS}
    assert (responses[:50] == 10 * MS).all() and np.quantile(responses, 0.99) > 50 * np.quantile(raw, 0.99)


def test_a_schedule_has_its_rate_and_is_the_same_for_the_same_seed() -> None:
    poisson = intended(POISSON, 1000, 30, (7, 1))
    assert len(poisson) == pytest.approx(30_000, rel=0.03) and poisson[0] > 0 and poisson[-1] < 30 * SECOND
    gaps = np.diff(poisson)
    assert (gaps >= 0).all() and gaps.std() == pytest.approx(MS, rel=0.05)  # exponential: equal to the mean
    assert (intended(POISSON, 1000, 30, (7, 1)) == poisson).all()
    assert intended(POISSON, 1000, 30, (7, 2))[0] != poisson[0]
    even = intended(CONSTANT, 8, 1, ())
    assert even.tolist() == [125 * MS * place for place in range(1, 8)]


@pytest.mark.parametrize(("longest_s", "most", "begun"), [(0.5, 100_000, 101), (60.0, 40, 40)])
def test_overloaded_schedule_is_given_up(longest_s: float, most: int, begun: int) -> None:
    """With a request every 5 ms that takes 10 ms, request n waits 5 n ms, with n more due behind it."""
    asked = Served()
    schedule = due(intended(CONSTANT, 200, 10, ()), longest_s, most)
    meant = work_off(schedule, asked.ask, asked.clock, asked.sleep)
    assert schedule.overloaded and len(meant) == schedule.taken == pytest.approx(begun, abs=2)
    assert schedule.take(asked.now) is None
    light = Served()
    enough = due(intended(CONSTANT, 50, 10, ()), longest_s, most)
    assert len(work_off(enough, light.ask, light.clock, light.sleep)) == 499 and not enough.overloaded


class Stalling(TableWriter):
    """Client whose third scheduled write takes longer."""

    def __init__(self, calls: int) -> None:
        self._left = calls

    def write(self, rows: pa.Table) -> None:
        del rows
        self._left -= 1
        time.sleep(0.4 if self._left == 0 else 0.001)

    def commit_status(self, error: Exception) -> CommitStatus:
        del error
        return CommitStatus.UNKNOWN


def test_window_has_the_waits_that_the_writers_loop_does_not_see(tmp_path: Path) -> None:
    trips = tmp_path / "trips.parquet"
    pq.write_table(pa.table({"id": pa.array(range(7), pa.int64())}), trips)
    order = WorkerConfig(NullClientFactory(), 1, trips, 5, 3, 2, 1, tmp_path / "records", 1000)
    writer = WriterLoop(order, Stalling(10 + 3), Records(order.records, order.most))
    writer.in_closed_loop(time.perf_counter_ns() + SECOND, 10)
    start = time.perf_counter_ns()
    schedule = Due((start + intended(CONSTANT, 100, 0.8, ())).tolist(), 10 * SECOND)
    meant = writer.by_schedule(schedule)
    whole = np.fromfile(order.records, np.int64).reshape(-1, WIDTH)
    noted = whole[1 : whole[0, 0] + 1]
    before = closed([noted[:10]], 0)
    assert len(before.response_ns) == 10 and max(before.response_ns) < 0.4 * SECOND
    window = TailWindow(5, elapsed_ns=800 * MS, notes=Notes((np.array(meant[0]),), 79, False))
    window.take([noted], start)
    response, wait = window.columns["response_ns"], window.columns["wait_ns"]
    assert len(response) == 79 and (wait >= 0).all()
    service = response - wait
    assert (service > 350 * MS).sum() == 1  # what the loop itself sees
    assert (response > 100 * MS).sum() >= 25 and response.max() > 400 * MS  # one was due every 10 ms meanwhile
    assert (np.diff(response[2:30]) < 0).mean() > 0.8


def test_window_counts_late_requests_and_has_the_length_of_an_overloaded_run() -> None:
    acked, refused = NUMBERS[ACKED], NUMBERS[CONFLICT]
    before = (10, 5, 0, 1, acked, -1)
    noted = np.array([before, (1000, 20, 1, 1, refused, -1), (1030, 10, 1, 2, acked, 1), (1110, 40, 2, 1, acked, 1)])
    notes = Notes((np.array([990, 1050]),), 5, overloaded=False)
    window = TailWindow(5, elapsed_ns=100, notes=notes)
    window.take([noted], 1000)
    columns = {name: values.tolist() for name, values in window.columns.items()}
    assert columns["response_ns"] == [30, 50, 100] and columns["wait_ns"] == [10, 10, 60]
    assert columns["outcome"] == [CONFLICT, ACKED, ACKED] and window.elapsed_ns == 100 and notes.not_begun == 3
    given_up = TailWindow(5, elapsed_ns=1000, notes=Notes(notes.meant, 5, overloaded=True))
    given_up.take([noted], 1000)
    assert given_up.elapsed_ns == 150


def test_the_capacity_is_what_a_closed_loop_acknowledges() -> None:
    acked, refused = NUMBERS[ACKED], NUMBERS[CONFLICT]
    again = (SECOND + 100 * MS, 50 * MS, 1, 2, acked, 1)
    last = (SECOND + 200 * MS, 800 * MS, 2, 1, acked, 1)
    one = np.array([(0, 1, 0, 1, acked, 1), (SECOND, 90 * MS, 1, 1, refused, 1), again, last])
    two = np.array([(SECOND + 50 * MS, 100 * MS, 0, 1, acked, 1), (SECOND + 250 * MS, 10 * MS, 1, 1, refused, 1)])
    found = closed([one, two], SECOND)
    assert found.response_ns == (150 * MS, 100 * MS, 800 * MS)
    assert found.seconds == 1 and found.requests_per_s == 3 and found.cycle_ns == 200 * MS
    with pytest.raises(SystemFailure, match="no rate is a share of it"):
        closed([one[:1]], 0)


def test_correction_adds_the_samples_that_hdrhistogram_adds() -> None:
    made = metrics.with_omitted(np.array([10, 35, 20, 5]), 10)
    assert made.tolist() == [10, 35, 25, 15, 20, 10, 5]


@pytest.mark.parametrize("target", [ONE, STAGED])
def test_processes_load_a_real_table_at_a_share_of_their_capacity(target: str, tmp_path: Path) -> None:
    trips = tmp_path / "trips.parquet"
    pq.write_table(pa.table({"id": pa.array(range(70), pa.int64())}), trips)
    (tmp_path / "table").mkdir()
    table = DeltaRs(Context(tmp_path / "table", {}, 5), DeltaRs.Options())
    table.create(schema := pq.read_schema(trips))
    settings = TailSettings(
        TAIL, 5, 2, target, 50, POISSON, 0.5, 10.0, 4 if target == STAGED else 1, 3, 8000, 1 << 20, 20
    )
    crew: Pool
    if settings.has_front:
        front = GatewayConfig(table.client_factory(), schema, settings.rules, new_token(), 1, 3)
        crew = GatewayPool(front, trips, 5, settings.clients, settings.uncounted, 100_000, tmp_path)
    else:
        order = WorkerConfig(table.client_factory(), 1, trips, 5, 3, 2, 1, tmp_path / ".records-1", 100_000)
        crew = WorkerPool(lambda _number: order, 1, tmp_path)
    pace = Pace(settings, 2.0, (1,))
    with crew:
        pace.set(crew)
        start = crew.write(2.0)
        records = crew.records()
    assert start is not None and pace.closed is not None and pace.rate == pytest.approx(pace.closed.requests_per_s / 2)
    window = TailWindow(5, elapsed_ns=2 * SECOND, notes=read_notes(tmp_path))
    window.take(records, start)
    notes = read_notes(tmp_path)
    assert not notes.overloaded and 0 < window.operations == notes.scheduled < 10 + 4 * pace.rate  # a Poisson count
    meant = window.columns["start_ns"] - window.columns["wait_ns"]
    assert meant.min() >= 0 and meant.max() < 2 * SECOND and window.columns["wait_ns"].min() >= 0
    assert (window.columns["response_ns"] >= window.columns["elapsed_ns"]).all()
    finding = look(table.ids(), {number: states(each) for number, each in enumerate(records, 1)}, 5)
    table.close()
    uncounted = settings.clients * settings.uncounted
    assert finding.is_exact and finding.expected == 5 * (len(pace.closed.response_ns) + window.operations + uncounted)


def of(quantity: Metric, run: Run) -> float:
    how = quantity.how
    assert callable(how)
    found: BootstrapEstimate = how(run)
    return found.value


def run(count: int, *, exact: bool = True, part: str = TAIL, writers: int = 1, percent: int = 50) -> Run:
    """Return a run: requests waited 0, 1, 2, ... ms for 5 ms of service, after a closed loop of 200 with one stall."""
    waits = np.arange(count) * MS
    columns = {"response_ns": waits + 5 * MS, "wait_ns": waits, "outcome": np.array([ACKED] * count, object)}
    columns["writer"] = 1 + np.arange(count) % writers
    loop = [5 * MS] * 199 + [995 * MS]
    found = {
        "closed": {"requests_per_s": 100.0, "seconds": 1.0, "cycle_ns": 5 * MS, "response_ns": loop},
        "schedule": {"requests_per_s": 50.0, "overloaded": False, "not_begun": 0, "scheduled": count},
    }
    manifest = SimpleNamespace(
        oracle=SimpleNamespace(verdict=exact),
        found=found.items(),
        config={"part": part, "percent": percent}.items(),
    )
    read = columns.__getitem__
    made = SimpleNamespace(label="a/tail/c/run-1", manifest=manifest, column=read, words=read, record=recorded(found))
    made.has = columns.__contains__
    return cast(Run, made)


def test_quantiles_are_order_statistics_and_need_enough_requests() -> None:
    measured = run(1000)
    assert of(metrics.RESPONSE_P50, measured) == pytest.approx(505, abs=1)
    assert of(metrics.RESPONSE_P99, measured) == pytest.approx(995, abs=1)
    assert of(metrics.RESPONSE_MAX, measured) == pytest.approx(1004)
    assert of(metrics.SERVICE_P99, measured) == pytest.approx(5)
    assert of(metrics.WAIT_P99, measured) == pytest.approx(990, abs=1)
    assert of(metrics.CLOSED_P99, measured) == pytest.approx(5)
    assert of(metrics.CORRECTED_P99, measured) == pytest.approx(975, abs=6)  # 199 of 5 ms, and 5, 10, ... 995
    assert of(metrics.OFFERED, measured) / of(metrics.CAPACITY, measured) == pytest.approx(0.5)
    assert of(metrics.UTILISATION, measured) == pytest.approx(25)  # 50 per second, 5 ms each
    with pytest.raises(NotAvailable, match="share a commit"):
        of(metrics.UTILISATION, run(1000, writers=2))
    with pytest.raises(NotAvailable, match=r"needs 10,000 requests, the run has 1,000"):
        of(metrics.RESPONSE_P999, measured)
    with pytest.raises(NotAvailable, match="does not hold what was acknowledged"):
        of(metrics.RESPONSE_P99, run(1000, exact=False))
    with pytest.raises(NotAvailable, match="by no schedule"):
        of(metrics.RESPONSE_P99, run(1000, part="writers"))


@pytest.mark.parametrize(("percent", "spread"), [(50, 0.24), (90, 1.2)])
def test_interval_of_a_response_grows_with_the_load(percent: int, spread: float) -> None:
    how = metrics.RESPONSE_P50.how
    assert callable(how)
    found = how(run(20_000, percent=percent)).estimate("")
    assert found.low < found.value * math.exp(-2.2 * spread) and found.high > found.value * math.exp(2.2 * spread)
    assert found.high < found.value * math.exp(3.0 * spread)


def series(mode: str, *, overloaded: bool = False, harness: bool = False) -> Series:
    """Return a series with one hot run of a second: requests begin every 0.3 s, and three due ones never do."""
    begins = np.arange(5) * 300 * MS
    columns = {"start_ns": begins, "attempt": np.array([1, 1, 2, 1, 1])}
    found = {"schedule": {"overloaded": overloaded, "not_begun": 3, "requests_per_s": 5.0, "scheduled": 8}}
    manifest = SimpleNamespace(elapsed_ns=SECOND)
    hot = SimpleNamespace(manifest=manifest, column=columns.__getitem__, record=recorded(found))
    return cast(
        Series, SimpleNamespace(mode=mode, settings=(), is_null_baseline=harness, runs=(hot, hot), hot_runs=(hot,))
    )


def test_table_reports_overload_lateness_and_share_of_the_null_rate() -> None:
    rates = {metrics.OFFERED.name: 30.0, metrics.CAPACITY.name: 120.0}
    measures = cast(Any, SimpleNamespace(hot=lambda quantity, _series: SimpleNamespace(value=rates[quantity.name])))
    own, null, other = (
        series("tail-one-50"),
        series("tail-one-90", harness=True),
        series("tail-staged-50", harness=True),
    )
    assert results.offered_share(measures, [own, other, null], own) == 25  # % of null's closed loop that it offers
    assert results.offered_share(measures, [own, other], own) is None
    assert results.offered_share(measures, [null], null) is None
    assert results.offered_share(measures, [null, other], series("tail-staged-90")) is None
    assert results.late(own) == 4 and results.overload(own) == "no"  # one began at 1.2 s
    assert results.overload(series("tail-one-110", overloaded=True)) == "1 of 1 runs: lower bounds"


CELLS = "{systems: [%s], targets: [one, staged], percents: [50, 90], closed_seconds: 1%s}"
SIZES = "{writers: [1], runs: 2, window_seconds: 3, tail: %s}"


def planned(cells: str, *overrides: str) -> list[Any]:
    given = [f"ingest.protocols.smoke={SIZES % cells}", "protocol=smoke", *overrides]
    whole = make_plan(load(SHIPPED, ["studies=[ingest]", "ingest.systems={ducklake: {}, delta-rs: {}}", *given]))
    return [each for each in whole.series if part_name(each) == TAIL]


def test_cells_are_targets_rates_and_arrivals() -> None:
    series = planned(CELLS % ("delta-rs", ", arrivals: [poisson, constant], window_seconds: 7"))
    assert {each.name for each in series} == {"delta-rs"} and {each.window_seconds for each in series} == {7}
    modes = {f"tail-{target}-{percent}" for target in ("one", "staged") for percent in (50, 90)}
    assert {each.mode for each in series} == modes | {f"{mode}-constant" for mode in modes}
    found = {each.mode: settings_of(each) for each in series}
    staged, one = found["tail-staged-90"], found["tail-one-50"]
    assert (
        isinstance(staged, TailSettings)
        and staged.rules == GroupCommit()
        and (staged.clients, staged.tries) == (32, 20)
    )
    assert isinstance(one, TailSettings) and not one.has_front and (one.clients, one.tries) == (1, 50)
    assert {each.window_seconds for each in planned(CELLS % ("delta-rs", ""))} == {3}
    assert not planned("{}")


@pytest.mark.parametrize(
    ("cells", "override", "said"),
    [
        (CELLS % ("delta", ""), "seed=1", r"tail\.systems.*found 'delta'; allowed: .*did you mean 'delta-rs'"),
        (CELLS % ("delta-rs", ", arrivals: [bursts]"), "seed=1", r"tail\.arrivals.*bursts.*poisson"),
        ("{systems: [delta-rs], percents: [0]}", "seed=1", r"tail\.percents.*at least 1"),
        ("{systems: [delta-rs], targets: [direct]}", "seed=1", r"tail\.targets.*direct.*staged"),
        (CELLS % ("delta-rs", ""), "ingest.tail={longest_wait_seconds: 0}", r"longest_wait_seconds.*more than 0"),
    ],
)
def test_invalid_setting_of_a_schedule_is_named(cells: str, override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        planned(cells, override)
