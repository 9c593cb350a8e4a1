"""Tests of a table's lag over a window, from the times when events were due and when a reader first saw them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from tests.studies.freshness.records import RECORD

from tidemark.analysis.metrics import NotAvailable
from tidemark.runs.proofs import Oracle
from tidemark.runs.run import Run
from tidemark.studies.freshness.metrics import lag
from tidemark.studies.freshness.record import FreshnessRecord

SECOND = 1_000_000_000


def run(late_s: float, missing: int = 0) -> Run:
    """Return a run of 10 events/s for 5 s; each second's are seen 0.5 s after it, those of the third `late_s` later."""
    due = np.arange(50) * SECOND // 10
    seen = (due // SECOND + 1) * SECOND + SECOND // 2
    seen[20:] = np.maximum(seen[20:], round((3.5 + late_s) * SECOND))
    oracle = Oracle(not missing, True, 50, 50 - missing, missing, 0, 0, "another client", 0.1)
    manifest, record = SimpleNamespace(oracle=oracle), {FreshnessRecord: RECORD}.get
    columns = {"start_ns": due, "seen_ns": seen - due}
    return cast(Run, SimpleNamespace(label="one", column=columns.__getitem__, manifest=manifest, record=record))


def test_lag_is_taken_right_before_more_events_are_seen() -> None:
    found = lag(run(0))
    assert found.at_s == pytest.approx([1.5, 2.5, 3.5, 4.5, 5.5])
    assert found.oldest_s == pytest.approx([1.5] * 5)
    assert found.events.tolist() == [16, 16, 16, 16, 10]  # the event due at this moment waits as well


def test_late_commit_shows_in_seconds_and_in_events() -> None:
    found = lag(run(1.25))
    assert found.at_s == pytest.approx([1.5, 2.5, 4.75, 5.5])
    assert found.oldest_s == pytest.approx([1.5, 1.5, 2.75, 1.5])
    assert found.events.tolist() == [16, 16, 28, 10]


def test_long_window_keeps_the_maximum_of_each_stretch() -> None:
    found = lag(run(1.25), stretches=2)
    assert found.oldest_s == pytest.approx([1.5, 2.75]) and found.events.tolist() == [16, 28]


def test_a_table_that_lost_events_has_no_lag() -> None:
    with pytest.raises(NotAvailable, match="each event once"):
        lag(run(0, missing=1))
