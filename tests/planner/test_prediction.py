"""Tests of the commit cost law: recovered from cells that follow it, and rejected if one of them does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.planner.cost_model import Age, Cell, Cost, Law, fit, held_out, relative_error
from tidemark.planner.prediction import (
    NOT_PREDICTED,
    ROOM,
    WOULD_DO,
    WOULD_NOT,
    Answer,
    Load,
    answers,
)

LAW = Law(fixed_ms=20.0, row_ms=0.05, growth_ms=0.002, offset_ms=-5.0, trips=4.0, waiting=0.6)
PLAIN = [Cell(rows) for rows in (1, 10, 100, 1000)]
FAR = [Cell(500, 1, rtt_ms) for rtt_ms in (0.0, 5.0, 20.0, 60.0)]
MANY = [Cell(500, writers) for writers in (2, 4, 8)]
NOISE = (1.04, 0.97, 1.02, 0.95, 1.01)  # factors, used in rotation
BOUND = 0.3


def measured(cells: Sequence[Cell], law: Law = LAW, system: str = "ducklake", commits: float = 400) -> list[Cost]:
    """Return the costs of a system that follows `law` within a few percent."""
    return [
        Cost(
            system=system,
            title=system,
            stack="thesis",
            promise="on the disk",
            cell=cell,
            commit_ms=law.commit_ms(cell, commits) * NOISE[place % len(NOISE)],
            commits=commits,
            growth_ms=1000 * law.growth_ms,
            files=3.0,
        )
        for place, cell in enumerate(cells)
    ]


def one(load: Load, costs: Sequence[Cost | Age], bound: float = BOUND) -> Answer:
    (found,) = answers(load, costs, bound)
    return found


def with_times(costs: Sequence[Cost], cell: Cell, factor: float) -> list[Cost]:
    return [replace(each, commit_ms=each.commit_ms * factor) if each.cell == cell else each for each in costs]


def test_law_is_recovered_with_small_errors_on_held_out_cells() -> None:
    costs = measured([*PLAIN, *FAR, *MANY])
    law = fit(costs)
    assert law.fixed_ms == pytest.approx(LAW.fixed_ms, rel=0.1)
    assert law.row_ms == pytest.approx(LAW.row_ms, rel=0.15)
    assert law.trips == pytest.approx(LAW.trips, rel=0.1)
    assert law.waiting == pytest.approx(LAW.waiting, rel=0.15)
    assert law.growth_ms == pytest.approx(LAW.growth_ms)
    errors = held_out(costs)
    assert list(errors) == [*PLAIN, *FAR, *MANY]
    assert all(error is not None and error < 0.2 for error in errors.values())
    # Unmeasured conditions, also in unmeasured combinations.
    for cell in (Cell(3000), Cell(50, 6), Cell(200, 1, 40.0), Cell(2000, 3, 30.0)):
        assert relative_error(law.commit_ms(cell, 5000), LAW.commit_ms(cell, 5000)) < 0.15


def test_growth_is_that_of_the_cell_with_most_commits_and_off_the_fixed_time() -> None:
    costs = [replace(each, growth_ms=50.0) for each in measured(PLAIN, commits=400)]
    costs[0] = replace(costs[0], commits=8000, commit_ms=LAW.commit_ms(PLAIN[0], 8000), growth_ms=2.0)
    law = fit(costs)
    assert law.growth_ms == pytest.approx(0.002)
    assert law.fixed_ms == pytest.approx(LAW.fixed_ms, rel=0.1)
    assert fit([replace(each, growth_ms=-3.0) for each in costs]).growth_ms == 0


def test_outlier_cell_does_not_change_the_fit_and_prevents_predictions() -> None:
    costs = measured([*PLAIN, Cell(10_000)])
    broken = with_times(costs, Cell(100), 5.0)
    assert fit(broken).fixed_ms == pytest.approx(LAW.fixed_ms, rel=0.1)
    errors = held_out(broken)
    assert errors[Cell(100)] is not None and errors[Cell(100)] > 3
    others = [error for cell, error in errors.items() if cell != Cell(100)]
    assert len(others) == len(PLAIN) and all(error is not None and error < 0.2 for error in others)
    load = Load(rate=5000, fresh_s=10)
    assert one(load, costs).verdict == WOULD_DO
    refused = one(load, broken)
    assert refused.verdict == NOT_PREDICTED and refused.prediction is None
    assert "the bound 30 %" in refused.reason and refused.errors is not None and refused.errors.worst > 3
    assert one(load, broken, bound=10.0).prediction is not None


def test_end_cell_off_the_law_prevents_predictions_beyond_and_near_it() -> None:
    cells = [*PLAIN, Cell(10_000)]
    costs = exact(cells, Law(fixed_ms=100.0, row_ms=0.0001))
    # No inner cell shows that the largest takes 40 % longer: predictions inside hold, those beyond are refused.
    bent = with_times(costs, Cell(10_000), 1.4)
    inside, beyond = (one(Load(rate=2000, fresh_s=60, batch=batch), bent) for batch in (5000, 20_000))
    assert inside.prediction is not None and inside.errors is not None and inside.errors.cells == 3
    assert beyond.verdict == NOT_PREDICTED and beyond.errors is not None and beyond.errors.cells == 5
    for batch in (50, 20_000):
        assert one(Load(rate=2000, fresh_s=60, batch=batch), costs).prediction is not None
    # With more cells that contradict it, the end cell is excluded from the fit, and its residual counts.
    broken = with_times(costs, Cell(1), 5.0)
    assert "worst error of the law" in one(Load(rate=2000, fresh_s=60, batch=50), broken).reason


def test_cells_of_one_condition_are_held_out_together() -> None:
    costs = with_times(measured(PLAIN), Cell(10), 4.0)
    twice = [*costs, replace(costs[1])]
    assert held_out(twice)[Cell(10)] == pytest.approx(held_out(costs)[Cell(10)])


@pytest.mark.parametrize(
    ("load", "cells", "reason"),
    [
        (Load(100, 10), PLAIN[:2], "batch sizes: measured 2, needed 3"),
        (Load(100, 10, rtt_ms=20.0), [*PLAIN, *FAR[:2]], "distances of a store: measured 2, needed 3"),
        (Load(100, 10, writers=2), [*PLAIN, MANY[0]], "numbers of writers above 1: measured 1, needed 2"),
        (Load(100, 10, writers=2), PLAIN, "numbers of writers above 1: measured 0"),
        (Load(100, 10, writers=33), [*PLAIN, *MANY], "out of reach: 33 writers, measured up to 8"),
        (Load(100, 10, rtt_ms=300.0), [*PLAIN, *FAR], "out of reach: 300 ms to the store, measured up to 60"),
        (Load(100, 10, commits=4000), PLAIN, "4,000 commits of the table, measured up to 800; maintain"),
        (Load(100, 10, batch=5000), PLAIN, "out of reach: batches of 5,000; reached are 1 to 4,000"),
    ],
)
def test_too_few_cells_and_loads_out_of_range_give_a_reason_and_no_prediction(
    load: Load, cells: list[Cell], reason: str
) -> None:
    found = one(load, measured(cells))
    assert (found.verdict, found.prediction) == (NOT_PREDICTED, None)
    assert reason in found.reason


def test_rows_lost_by_many_writers_do_not_affect_predictions_for_one() -> None:
    costs = measured([*PLAIN, *MANY])
    costs[-1] = replace(costs[-1], commit_ms=float("nan"), flaw="rows were lost")
    assert one(Load(100, 10, writers=2), costs).reason == "rows were lost"
    assert one(Load(100, 10), costs).verdict == WOULD_DO


def exact(cells: Sequence[Cell], law: Law) -> list[Cost]:
    return [replace(each, commit_ms=law.commit_ms(each.cell)) for each in measured(cells, law)]


def test_batch_range_is_bounded_by_freshness_and_writer_throughput() -> None:
    costs = exact(PLAIN, Law(fixed_ms=100.0, row_ms=0.0))
    found = one(Load(rate=1000, fresh_s=1.2), costs)
    # 100 ms per commit: batches of 143 keep a writer 70 % busy; 1,000 rows take 1 s to collect, 2,000 take 2 s.
    assert (found.verdict, found.batches) == (WOULD_DO, (200, 1000))
    made = found.prediction
    assert made is not None
    assert made.commit_ms == pytest.approx(100)
    assert made.rows_per_s == pytest.approx(10_000)
    assert made.utilisation == pytest.approx(0.1)
    assert made.age_s == pytest.approx(0.999 + 0.1)
    assert made.files == pytest.approx(3000)
    at_150 = one(Load(rate=1000, fresh_s=1.2, batch=150), costs).prediction
    assert at_150 is not None and at_150.utilisation == pytest.approx(0.1 * 1000 / 150) and at_150.utilisation < ROOM


def test_insufficient_system_states_its_shortfall() -> None:
    costs = exact(PLAIN, Law(fixed_ms=100.0, row_ms=0.05))
    slow = one(Load(rate=50_000, fresh_s=10), costs)
    assert slow.verdict == WOULD_NOT and slow.reason.startswith("too slow") and slow.batches is None
    assert slow.prediction is not None and slow.prediction.utilisation > ROOM
    old = one(Load(rate=1000, fresh_s=0.05), costs)
    assert old.verdict == WOULD_NOT and old.reason.startswith("too old")


def test_batch_size_must_suffice_with_the_worst_error_added() -> None:
    costs = measured([*PLAIN, Cell(10_000)], Law(fixed_ms=100.0, row_ms=0.0))
    load = Load(rate=1000, fresh_s=10, batch=147)
    found = one(load, costs)
    assert found.prediction is not None and found.errors is not None
    assert found.prediction.utilisation < ROOM < found.prediction.utilisation * (1 + found.errors.worst)
    assert found.verdict == WOULD_NOT


def test_writers_share_the_rate_and_collect_batches_longer() -> None:
    costs = exact([*PLAIN, *MANY], Law(fixed_ms=100.0, row_ms=0.0, waiting=0.5))
    found = one(Load(rate=1000, fresh_s=100, writers=3, batch=500, commits=0), costs).prediction
    assert found is not None
    assert found.commit_ms == pytest.approx(200)
    assert found.rows_per_s == pytest.approx(3 * 500 / 0.2)
    assert found.age_s == pytest.approx(499 * 3 / 1000 + 0.2)


def test_measured_ages_are_compared_with_the_law_and_can_reject_it() -> None:
    costs = exact(PLAIN, Law(fixed_ms=100.0, row_ms=0.0))
    near = [Age("ducklake", "thesis", 1000, 1000, 0.61), Age("ducklake", "thesis", 100, 100, 0.58)]
    others = [
        Age("delta-rs", "thesis", 1000, 1000, 9.0),
        Age("ducklake", "current", 1000, 1000, 9.0),
        Age("ducklake", "thesis", 1000, 10, 9.0),  # a writer that falls behind
        Age("ducklake", "thesis", 1000, 100_000, 9.0),  # outside the law's range
    ]
    found = one(Load(rate=1000, fresh_s=5), [*costs, *near, *others])
    assert found.verdict == WOULD_DO and found.errors is not None
    assert found.errors.ages == 2 and found.errors.age_median is not None and found.errors.age_median < 0.05
    refused = one(Load(rate=1000, fresh_s=5), [*costs, *(replace(age, age_s=2 * age.age_s) for age in near)])
    assert refused.verdict == NOT_PREDICTED and "median error of ages" in refused.reason


def test_sufficient_systems_come_first_and_stacks_are_kept_separate() -> None:
    good, slow = Law(fixed_ms=20.0, row_ms=0.01), Law(fixed_ms=20.0, row_ms=5.0)
    costs = [*measured(PLAIN[:2], good, "b"), *measured(PLAIN, slow, "a"), *measured(PLAIN, good, "c")]
    costs += [replace(each, stack="current") for each in measured(PLAIN, good, "c")]
    found = [(each.system, each.stack, each.verdict) for each in answers(Load(1000, 10), costs, BOUND)]
    assert found == [
        ("c", "current", WOULD_DO),
        ("c", "thesis", WOULD_DO),
        ("a", "thesis", WOULD_NOT),
        ("b", "thesis", NOT_PREDICTED),
    ]


def test_a_law_needs_two_batch_sizes() -> None:
    with pytest.raises(NotAvailable, match="two settings"):
        fit(measured(PLAIN[:1]))
