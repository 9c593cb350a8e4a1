"""Tests of event ages, computed from a table's history and a reader's looks, also with faulty input."""

from __future__ import annotations

import numpy as np
import pytest

from tidemark.runs.proofs import Oracle
from tidemark.studies.freshness.record import is_unfinished
from tidemark.studies.freshness.samples import FreshnessWindow, Look, Step
from tidemark.systems.tables import Committed

BEGIN_NS = 1_000_000_000_000
MS = 1_000_000


def window() -> FreshnessWindow:
    """Return a window of ten events per second, with two earlier rows and ten events due in the first second."""
    return FreshnessWindow(warm=2, begin_ns=BEGIN_NS, steps=[Step(0, 10, 10)], elapsed_ns=3_000 * MS)


def committed(at_ms: float, rows: int) -> Committed:
    return Committed(BEGIN_NS / 1e6 + at_ms, rows)


def test_event_age_follows_from_its_commit_and_its_first_look() -> None:
    made = window()
    made.looks = [Look(BEGIN_NS + at * MS, rows) for at, rows in ((0, 2), (600, 2), (650, 7), (1_900, 7), (2_000, 12))]
    made.take([committed(-500, 2), committed(600, 5), committed(1_500, 5)])
    assert made.columns["commit"].tolist() == [1] * 5 + [2] * 5
    assert (made.columns["elapsed_ns"] // MS).tolist() == [600, 500, 400, 300, 200, 1000, 900, 800, 700, 600]
    assert (made.columns["seen_ns"] // MS).tolist() == [650, 550, 450, 350, 250, 1500, 1400, 1300, 1200, 1100]
    assert made.rows == made.operations == 10
    assert made.budget() == {"arriving": 1_000 * MS, "draining": 2_000 * MS}


def test_missing_event_ages_until_the_end_of_the_window() -> None:
    made = window()
    made.looks = [Look(BEGIN_NS + 650 * MS, 7)]
    made.take([committed(-500, 2), committed(600, 5)])
    assert (made.columns["seen_ns"][5:] // MS).tolist() == [2500, 2400, 2300, 2200, 2100]
    assert (made.columns["elapsed_ns"][5:] // MS).tolist() == [2500, 2400, 2300, 2200, 2100]
    assert (made.columns["seen_ns"][:5] // MS).tolist() == [650, 550, 450, 350, 250]


def test_later_look_with_fewer_rows_does_not_change_seen_events() -> None:
    made = window()
    made.looks = [Look(BEGIN_NS + at * MS, rows) for at, rows in ((1_700, 12), (1_800, 7), (1_900, 12))]
    made.take([committed(1_600, 12)])
    assert int(np.max(made.columns["seen_ns"] + made.columns["start_ns"])) == 1_700 * MS


@pytest.mark.parametrize("history", [[], [committed(100, 1)]])
def test_ages_exist_without_commits(history: list[Committed]) -> None:
    made = window()
    made.take(history)
    assert (made.columns["elapsed_ns"] > 0).all() and len(made.columns["seen_ns"]) == 10


def test_doubled_rate_continues_where_the_previous_one_ended() -> None:
    made = window()
    made.steps = [Step(0, 10, 10), Step(1_000 * MS, 20, 4)]
    made.take([committed(-500, 2), committed(1_500, 14)])
    assert (made.columns["start_ns"][8:] // MS).tolist() == [800, 900, 1_000, 1_050, 1_100, 1_150]
    assert (made.columns["elapsed_ns"][8:] // MS).tolist() == [700, 600, 500, 450, 400, 350]
    assert made.budget() == {"arriving": 1_200 * MS, "draining": 1_800 * MS}


def test_late_events_are_not_lost() -> None:
    def oracle(missing: int, doubled: int = 0) -> Oracle:
        return Oracle(missing + doubled == 0, True, 10, 10 - missing, missing, doubled, 0, "another client", 0.1)

    assert is_unfinished(oracle(3), gave_up=True)
    assert not is_unfinished(oracle(3), gave_up=False)  # all were counted, and some are missing
    assert not is_unfinished(oracle(3, doubled=1), gave_up=True)
    assert not is_unfinished(oracle(0), gave_up=True)
    assert is_unfinished(oracle(3), gave_up=True, acknowledged=7)
    assert not is_unfinished(oracle(3), gave_up=True, acknowledged=8), "a row that was acknowledged is lost, not late"
