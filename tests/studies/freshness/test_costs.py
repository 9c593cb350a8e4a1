"""Tests of the event ages that a prediction may be compared with, and of the stack that a claim is judged by."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.studies.freshness.records import RECORD

from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import known
from tidemark.planner.cost_model import Age
from tidemark.studies.freshness.metrics import CPU, MADE_P50, ROWS, costs
from tidemark.studies.freshness.results import not_once_after_kills


def test_ages_come_from_sound_runs_without_kills() -> None:
    modes = ("1s-1000-record", "1s-1000-json-kills-2", "event-100-record")
    all_series = [
        SimpleNamespace(
            mode=mode, settings=(), system="ducklake", stack="thesis", runs=[1], hot_runs=[1], is_null_baseline=False
        )
        for mode in modes
    ]

    def value(quantity: object, series: Any) -> Any:
        if series.mode.startswith("event"):
            raise NotAvailable("the table does not hold each event once")
        return known({ROWS: 1010.0, MADE_P50: 0.6}[cast(Any, quantity)])

    (found,) = costs(cast(Any, SimpleNamespace(run_set=SimpleNamespace(series=all_series), value=value)))
    assert (found.system, found.rate) == ("ducklake", 1000)
    assert isinstance(found, Age) and (found.rows, found.age_s) == (pytest.approx(1010), pytest.approx(0.6))


def test_claim_on_kills_is_judged_by_the_series_of_its_stack() -> None:
    lost = {"thesis": 0.5, "current": 0.25}
    found = {
        stack: [SimpleNamespace(mode="1s-1000-json-kills-2", settings=(), system="ducklake", stack=stack)]
        for stack in lost
    }
    measures = SimpleNamespace(
        run_set=SimpleNamespace(select=lambda *, stack=None: found[stack or "thesis"]),
        value=lambda _quantity, series: known(lost[series.stack]),
    )
    for stack, share in lost.items():
        claim_data = SimpleNamespace(measures=measures, stack=stack, require_runs=lambda own, _which: own[0])
        assert not_once_after_kills(cast(Any, claim_data), "ducklake")[0].value == pytest.approx(100 * share)


def test_answers_to_the_reader_are_no_cost_of_the_table() -> None:
    """Plant ten looks a second, each of which costs the catalog's server as much as in the reference results."""
    spent = (("pipeline", 3.0), ("postgres", 11.0))
    record = replace(RECORD, cpu_s=spent, looks=1000, look_cpu_s=0.008)
    manifest = SimpleNamespace(events=1_000_000, oracle=SimpleNamespace(verdict=True))
    run = SimpleNamespace(record=lambda _kind: record, manifest=manifest)
    assert CPU.how(cast(Any, run)).value == pytest.approx(6.0)
    record = replace(RECORD, cpu_s=spent, looks=1000)
    assert CPU.how(cast(Any, run)).value == pytest.approx(14.0), "earlier runs did not measure it"
