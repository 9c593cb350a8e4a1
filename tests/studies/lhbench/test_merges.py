"""Tests of merges by number and by size: one part refreshes tables repeatedly, another has a table per size."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.studies.lhbench.records import record_of

from tidemark.analysis.metrics import NotAvailable
from tidemark.runs.run import Run
from tidemark.studies.lhbench import metrics
from tidemark.studies.lhbench.metrics import GROWTH, LONGEST, MERGING, merge_s, merging

WEIGHED = {
    "sales": {"data_files": 1, "data_bytes": 100, "metadata_files": 0, "metadata_bytes": 0, "catalog_bytes": None}
}


def merged(phases: dict[str, float], iterations: list[int], footprints: list[str]) -> Run:
    """Return a run with a merge of given seconds per phase, and a table of 100 bytes per stage, of 200 in the last."""
    words = {"kind": np.array(["merge"] * len(phases)), "phase": np.array(list(phases))}
    words["subject"] = np.array(["sales"] * len(phases))
    columns = {"iteration": np.array(iterations), "elapsed_ns": np.array([1e9 * each for each in phases.values()])}
    stages = dict.fromkeys(footprints, WEIGHED)
    stages[footprints[-1]] = {"sales": {**WEIGHED["sales"], "data_bytes": 150, "metadata_bytes": 50}}
    made = SimpleNamespace(words=words.__getitem__, column=columns.__getitem__, record=record_of(footprints=stages))
    return cast(Run, made)


@pytest.fixture(autouse=True)
def believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "sound", lambda run: run)


def test_refreshes_have_a_median_and_growth_but_no_size() -> None:
    run = merged({"merge 1": 2.0, "merge 2": 4.0}, [1, 2], ["load", "merge 1", "merge 2"])
    assert cast(Any, MERGING.how)(run).value == pytest.approx(3.0)
    assert cast(Any, GROWTH.how)(run).value == pytest.approx(2.0)
    with pytest.raises(NotAvailable, match="are refreshes"):
        merge_s(run, 2)


def test_a_refresh_that_compacts_shows_as_the_longest_over_the_median() -> None:
    seconds = {f"merge {number}": 3.0 for number in range(1, 10)} | {"merge 10": 6.0}
    run = merged(seconds, list(range(1, 11)), ["load", *seconds])
    assert cast(Any, LONGEST.how)(run).value == pytest.approx(2.0)


def test_merges_by_size_have_a_time_each_but_no_median() -> None:
    run = merged({"merge 35": 2.0, "merge 4": 4.0}, [1, 1], ["load 35", "merge 35", "load 4", "merge 4"])
    with pytest.raises(NotAvailable, match="no refreshes"):
        cast(Any, MERGING.how)(run)
    with pytest.raises(NotAvailable, match="no refreshes"):
        cast(Any, GROWTH.how)(run)
    assert [cast(Any, merging(size).how)(run).value for size in (4, 35)] == pytest.approx([4.0, 2.0])
