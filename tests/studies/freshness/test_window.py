"""From a table's history and a reader's looks to the age of each event; and what is wrong is seen."""

from __future__ import annotations

import numpy as np
import pytest

from tidemark.runs.proofs import Oracle
from tidemark.studies.freshness.window.samples import FreshnessWindow, Look, Step, is_unfinished
from tidemark.systems.tables import Committed

BEGIN_NS = 1_000_000_000_000
MS = 1_000_000


def window() -> FreshnessWindow:
    """Ten events a second; two rows were there before, and ten events were due in the first second."""
    return FreshnessWindow(warm=2, begin_ns=BEGIN_NS, steps=[Step(0, 10, 10)], elapsed_ns=3_000 * MS)


def committed(at_ms: float, rows: int) -> Committed:
    return Committed(BEGIN_NS / 1e6 + at_ms, rows)


def test_an_event_is_as_old_as_its_commit_and_its_first_sight_say() -> None:
    made = window()
    made.looks = [Look(BEGIN_NS + at * MS, rows) for at, rows in ((0, 2), (600, 2), (650, 7), (1_900, 7), (2_000, 12))]
    made.take([committed(-500, 2), committed(600, 5), committed(1_500, 5)])
    assert made.columns["commit"].tolist() == [1] * 5 + [2] * 5
    assert (made.columns["elapsed_ns"] // MS).tolist() == [600, 500, 400, 300, 200, 1000, 900, 800, 700, 600]
    assert (made.columns["seen_ns"] // MS).tolist() == [650, 550, 450, 350, 250, 1500, 1400, 1300, 1200, 1100]
    assert made.rows == made.operations == 10
    assert made.budget() == {"arriving": 1_000 * MS, "draining": 2_000 * MS}


def test_an_event_that_never_came_is_as_old_as_the_window_lasted() -> None:
    made = window()
    made.looks = [Look(BEGIN_NS + 650 * MS, 7)]
    made.take([committed(-500, 2), committed(600, 5)])
    assert (made.columns["seen_ns"][5:] // MS).tolist() == [2500, 2400, 2300, 2200, 2100]
    assert (made.columns["elapsed_ns"][5:] // MS).tolist() == [2500, 2400, 2300, 2200, 2100]
    assert (made.columns["seen_ns"][:5] // MS).tolist() == [650, 550, 450, 350, 250]


def test_a_look_that_finds_fewer_rows_than_one_before_makes_nothing_unseen() -> None:
    made = window()
    made.looks = [Look(BEGIN_NS + at * MS, rows) for at, rows in ((1_700, 12), (1_800, 7), (1_900, 12))]
    made.take([committed(1_600, 12)])
    assert int(np.max(made.columns["seen_ns"] + made.columns["start_ns"])) == 1_700 * MS


@pytest.mark.parametrize("history", [[], [committed(100, 1)]])
def test_without_commits_there_are_ages_all_the_same(history: list[Committed]) -> None:
    made = window()
    made.take(history)
    assert (made.columns["elapsed_ns"] > 0).all() and len(made.columns["seen_ns"]) == 10


def test_a_rate_that_is_doubled_goes_on_where_the_one_before_ended() -> None:
    made = window()
    made.steps = [Step(0, 10, 10), Step(1_000 * MS, 20, 4)]
    made.take([committed(-500, 2), committed(1_500, 14)])
    assert (made.columns["start_ns"][8:] // MS).tolist() == [800, 900, 1_000, 1_050, 1_100, 1_150]
    assert (made.columns["elapsed_ns"][8:] // MS).tolist() == [700, 600, 500, 450, 400, 350]
    assert made.budget() == {"arriving": 1_200 * MS, "draining": 1_800 * MS}


def test_what_is_late_is_not_lost() -> None:
    def oracle(missing: int, doubled: int = 0) -> Oracle:
        return Oracle(missing + doubled == 0, True, 10, 10 - missing, missing, doubled, 0, "another client", 0.1)

    assert is_unfinished(oracle(3), gave_up=True)
    assert not is_unfinished(oracle(3), gave_up=False)  # all were counted, and some are not there
    assert not is_unfinished(oracle(3, doubled=1), gave_up=True)
    assert not is_unfinished(oracle(0), gave_up=True)
