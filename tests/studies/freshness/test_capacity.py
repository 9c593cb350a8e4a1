"""Tests of capacity, the last step of a doubling rate without growing lag, and of tables that fall behind."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.studies.freshness.records import RECORD

from tidemark.analysis.metrics import NotAvailable
from tidemark.runs.proofs import Oracle
from tidemark.runs.run import Run
from tidemark.stream.paced import Sent
from tidemark.studies.freshness.capacity import (
    AGE_P50,
    CAPACITY,
    GROWS,
    HOLDS,
    LATE,
    STEP_CPU,
    STEP_FILES,
    UNKNOWN,
    capacity,
    held,
    steps,
)
from tidemark.studies.freshness.record import End, FreshnessRecord, RampRecord, RampStep
from tidemark.studies.freshness.runner import Ramp, lag_seconds
from tidemark.studies.freshness.samples import FreshnessWindow, Look, Step
from tidemark.studies.freshness.settings import FreshnessSettings
from tidemark.studies.freshness.tables import LEAST, WITHIN, ending

SECOND = 1_000_000_000
FIRST_RATE, LONG_S = 10, 10.0


def climb(
    *growths: float, end: End = End.STEPS, interval_s: float = 1.0, missing: int = 0, few_in: int | None = None
) -> Run:
    """Return a run of 10, 20, ... events/s for 10 s each, with a commit per second, 2 CPU-seconds and 3 files per step.

    The youngest event of a commit is 0.1 s old, plus the step's growth for each second since the step began. The step
    `few_in` has a commit every 4 s, which are too few to judge it.
    """
    due, ages, told = [], [], []
    for number, growth in enumerate(growths):
        rate, begin_s = FIRST_RATE << number, number * LONG_S
        at = begin_s + np.arange(round(rate * LONG_S)) / rate
        every_s = 4.0 if number == few_in else interval_s
        ends = begin_s + (np.floor((at - begin_s) / every_s) + 1) * every_s
        due.append(at)
        ages.append(ends + 0.1 + growth * (ends - begin_s) - at)
        told.append(RampStep(rate, begin_s, LONG_S, len(at), latest_s=0.01, lag_s=1.0, cpu_s=2.0, files=3))
    start, age = np.concatenate(due), np.concatenate(ages)
    columns = {
        "start_ns": np.round(start * SECOND).astype(np.int64),
        "elapsed_ns": np.round(age * SECOND).astype(np.int64),
        "seen_ns": np.round(age * SECOND).astype(np.int64),
        "commit": np.unique(np.round(start + age, 6), return_inverse=True)[1],
    }
    oracle = Oracle(not missing, True, len(start), len(start) - missing, missing, 0, 0, "another client", 0.1)
    record = replace(RECORD, ramp=RampRecord(str(end), tuple(told)))
    manifest = SimpleNamespace(oracle=oracle)
    return cast(
        Run,
        SimpleNamespace(
            label=str(growths), column=columns.__getitem__, manifest=manifest, record={FreshnessRecord: record}.get
        ),
    )


def test_capacity_is_the_highest_rate_at_which_the_lag_does_not_grow() -> None:
    run = climb(0.0, 0.0, 0.5)
    assert [step.verdict for step in steps(run)] == [HOLDS, HOLDS, GROWS]
    growths = [step.slope.value for step in steps(run) if step.slope is not None]
    assert growths == pytest.approx([0, 0, 0.5 / 1.5], abs=0.01)  # per second of commit times, which are 1.5 s apart
    last, following = held(run)
    assert (last.rate, following and following.rate) == (20, 40)
    assert not capacity([run]).is_least and ending(capacity([run])) == (WITHIN, "40 events/s: grows")
    found = [cast(Any, each.how)(run).value for each in (CAPACITY, STEP_CPU.at(20), STEP_FILES.at(20), AGE_P50.at(20))]
    assert found[:3] == pytest.approx([20, 1e4, 1.5e4])
    assert found[3] == pytest.approx(0.6, abs=0.05)  # from 0.1 to 1.1 s
    assert cast(Any, STEP_CPU.at(10).how)(run).value == pytest.approx(2e4)
    with pytest.raises(NotAvailable, match="no step of 160 events/s"):
        cast(Any, STEP_CPU.at(160).how)(run)


def test_capacity_of_repeats_is_the_rate_that_all_sustain() -> None:
    lower, higher = climb(0.0, 0.0, 0.5), climb(0.0, 0.0, 0.0)
    for runs in ((lower, higher), (higher, lower)):
        found = capacity(runs)
        assert (found.rate, found.repeats, found.replicates.value) == (20, 2, pytest.approx(20))
        assert found.replicates.estimate("events/s").low is None
        assert ending(found) == (WITHIN, "40 events/s: grows")
    assert ending(capacity([climb(0.0, 0.0), lower])) == (WITHIN, "40 events/s: grows"), (
        "what ended a climb says more than its end"
    )
    with pytest.raises(NotAvailable, match="the lowest rate of the climb"):
        capacity([higher, climb(0.5, 0.5)])


def test_growing_lag_does_not_bound_a_table_that_keeps_up_with_a_higher_rate() -> None:
    run = climb(0.0, 0.1, 0.0, 0.5)
    assert [step.verdict for step in steps(run)] == [HOLDS, GROWS, HOLDS, GROWS]
    assert held(run)[0].rate == 40 and ending(capacity([run])) == (WITHIN, "80 events/s: grows")
    assert held(climb(0.5, 0.0))[0].rate == 20


def test_growth_of_milliseconds_a_second_is_no_overload() -> None:
    run = climb(0.0, 0.01, 0.005)
    assert all(step.growth and step.growth.is_above(0) for step in list(steps(run))[1:])
    assert ending(capacity([run])) == (LEAST, "there was none")


def test_undecided_step_does_not_end_a_climb_if_a_higher_rate_holds() -> None:
    run = climb(0.0, 0.0, 0.0, 0.5, few_in=1)
    assert [step.verdict for step in steps(run)] == [HOLDS, UNKNOWN, HOLDS, GROWS]
    assert held(run)[0].rate == 40 and ending(capacity([run])) == (WITHIN, "80 events/s: grows")
    assert held(climb(0.0, 0.0, 0.5, few_in=1))[0].rate == 10, "nor is it one that holds"
    assert held(climb(0.0, 0.0, few_in=0))[0].rate == 20


def test_climb_not_ended_by_the_table_gives_a_lower_bound() -> None:
    assert ending(capacity([climb(0.0, 0.0)])) == (LEAST, "there was none")
    by_producer = climb(0.0, 0.0, end=End.PRODUCER)
    assert [step.verdict for step in steps(by_producer)] == [HOLDS, LATE]
    assert held(by_producer)[0].rate == 10 and ending(capacity([by_producer]))[0] == LEAST
    slow = climb(0.0, 0.0, interval_s=4.0)  # only two commits lie in a step
    assert [step.verdict for step in steps(slow)] == [UNKNOWN, UNKNOWN]


def test_a_table_that_is_far_behind_grows_whatever_its_slope() -> None:
    assert [step.verdict for step in steps(climb(0.0, 0.0, end=End.LAG))] == [HOLDS, GROWS]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (climb(0.5, 0.5), "at 10 events/s, the lowest rate of the climb: the lag grows"),
        (climb(0.0, interval_s=4.0), "the lag was not judged: too few commits to tell"),
        (climb(0.0, 0.0, missing=1), "does not hold each event once"),
    ],
)
def test_without_a_step_that_holds_there_is_no_capacity(run: Run, said: str) -> None:
    with pytest.raises(NotAvailable, match=said):
        held(run)


def test_lag_is_the_age_of_the_oldest_unseen_event() -> None:
    window = FreshnessWindow(warm=2, steps=[Step(0, 10, 10), Step(SECOND, 20, 20)])
    assert lag_seconds(window, Look(0, 2 + 15), 2 * SECOND) == pytest.approx(2 - 1.25)
    assert lag_seconds(window, Look(0, 2 + 3), 2 * SECOND) == pytest.approx(2 - 0.3)
    assert lag_seconds(window, Look(0, 2 + 30), 2 * SECOND) == 0.0
    assert lag_seconds(window, None, 2 * SECOND) == 2.0


class Producer:
    """Fake producer that sends immediately and reports a given lateness."""

    def __init__(self, latest_s: float) -> None:
        self.latest_s = latest_s
        self.paced: list[tuple[int, float, int]] = []

    def pace(self, events: int, rate: float, begin_ns: int) -> None:
        self.paced.append((events, rate, begin_ns))

    def wait(self) -> Sent:
        return Sent(self.paced[-1][0], 0.5, self.latest_s)


@pytest.mark.parametrize(
    ("latest_s", "seen", "end", "count"),
    [(0.0, True, End.STEPS, 3), (0.6, True, End.PRODUCER, 1), (0.0, False, End.LAG, 1)],
)
def test_climb_ends_when_the_table_or_the_producer_falls_behind(
    latest_s: float, seen: bool, end: End, count: int
) -> None:
    settings = FreshnessSettings(
        policy="10ms", rate=100, encoding="json", kills=0, warm=2, look_ms=1, drain_seconds=1, steps=3, step_seconds=0.3
    )
    producer, footprint = Producer(latest_s), SimpleNamespace(data_files=1, metadata_files=1)
    reader = SimpleNamespace(looks=[Look(0, 10**6)] if seen else [])
    ramp = Ramp(
        settings, cast(Any, producer), cast(Any, SimpleNamespace(footprint=lambda: footprint)), cast(Any, reader),
        time.process_time, lambda: True,
    )  # fmt: skip
    window = FreshnessWindow(warm=2, begin_ns=time.time_ns())
    sent = ramp.climb(window)
    assert [rate for _, rate, _ in producer.paced] == [100, 200, 400][:count]
    begins = [begin_ns - window.begin_ns for _, _, begin_ns in producer.paced]
    assert begins == [0, 300_000_000, 600_000_000][:count]  # the schedule goes on, however late a step ends
    assert sent.events == window.events == sum([30, 60, 120][:count])
    found = ramp.record
    assert found.end == end and [step.files for step in found.steps] == [0] * count
    assert (found.steps[-1].lag_s > 0.11) == (not seen)
