"""Tests of the questions: systems are compared on one table, written with the same number of processors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.results.report.summary_table import SystemRuns
from tidemark.studies.deltars.results import QUESTIONS

# Only two systems wrote the largest table, and one was measured with more processors than the others.
MEASURED = {
    "delta-rs-hdfs": ("supplier_sf1-1", "supplier_sf100-1", "supplier_sf100-2", "lineitem_sf1-1"),
    "delta-rs-local": ("supplier_sf1-1", "supplier_sf100-1", "lineitem_sf1-1"),
    "legacy": ("supplier_sf1-1", "supplier_sf100-1", "supplier_sf100-2"),
    "delta-rs-hdfs-before": ("supplier_sf100-2",),
    "failed": (),
}


def series(system: str, mode: str, runs: tuple[str, ...] = ("run",)) -> Any:
    return SimpleNamespace(
        system=system, mode=mode, settings=(), stack="thesis", runs=runs, missing=lambda: "failed: no disk"
    )


@pytest.fixture
def asked() -> dict[str, SystemRuns]:
    of_all = {name: [series(name, mode) for mode in modes] for name, modes in MEASURED.items()}
    of_all["failed"] = [series("failed", "supplier_sf100-1", runs=())]
    all_series = [each for own in of_all.values() for each in own]

    def select(stack: str, harness: bool) -> list[Any]:
        assert not harness
        return [each for each in all_series if each.stack == stack]

    run_set = SimpleNamespace(select=select)
    measures = cast(Any, SimpleNamespace(run_set=run_set, value=lambda _quantity, chosen: chosen.mode))
    return {name: SystemRuns(measures, name, tuple(own)) for name, own in of_all.items()}


def test_systems_are_compared_on_the_largest_table_that_most_wrote(asked: dict[str, SystemRuns]) -> None:
    write = QUESTIONS[0]
    for name in ("delta-rs-hdfs", "delta-rs-local", "legacy"):
        assert cast(Any, write.of(asked[name], write.mode)) == "supplier_sf100-1"
        assert write.noted(asked[name]) == "supplier_sf100, 1 processor"


@pytest.mark.parametrize(
    ("name", "said"),
    [("delta-rs-hdfs-before", "not measured with supplier_sf100, 1 processor"), ("failed", "failed: no disk")],
)
def test_system_without_that_table_is_not_compared(asked: dict[str, SystemRuns], name: str, said: str) -> None:
    with pytest.raises(NotAvailable, match=said):
        QUESTIONS[0].of(asked[name], QUESTIONS[0].mode)
    assert QUESTIONS[0].noted(asked[name]) == ""
