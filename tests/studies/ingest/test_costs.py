"""Tests of commit costs from runs of many writers and of a distant store; runs that lost rows give none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import known
from tidemark.planner.cost_model import Cell
from tidemark.studies.ingest.metrics import COMMITS
from tidemark.studies.ingest.tables.storage import costs


def series(mode: str, writers: int, *, exact: bool = True, harness: bool = False, **options: Any) -> SimpleNamespace:
    manifest = SimpleNamespace(
        system=SimpleNamespace(options=options.items(), durability="on the disk"),
        oracle=SimpleNamespace(verdict=exact),
    )
    run = SimpleNamespace(manifest=manifest, elapsed_s=6.0)
    settings = {"rows": 500, "writers": writers, "tables": mode.partition("-")[0] if "own" in mode else "one"}.items()
    return SimpleNamespace(
        mode=mode,
        settings=settings,
        system="ducklake",
        title="DuckLake",
        stack="thesis",
        is_null_baseline=harness,
        hot_runs=[run],
    )


def test_commit_rates_become_times_by_writers_and_distance() -> None:
    rates = {"one-1": 40.0, "one-4": 50.0, "s3-20": 10.0}
    all_series = [
        series("one-1", 1),
        series("one-4", 4),
        series("s3-20", 1, storage="s3", rtt_ms=20),
        series("one-8", 8, exact=False),
        series("own-4", 4),
        series("faults-2", 2),
        series("one-1", 1, harness=True),
        series("one-2", 2),
    ]

    def hot(quantity: object, each: Any) -> Any:
        assert quantity is COMMITS
        if each.mode not in rates:
            raise NotAvailable("no commit was acknowledged inside the window")
        return known(rates[each.mode])

    found = list(costs(cast(Any, SimpleNamespace(run_set=SimpleNamespace(series=all_series), hot=hot))))
    assert [each.cell for each in found] == [
        Cell(500),
        Cell(500, 4),
        Cell(500, 1, 20.0),
        Cell(500, 8),
        Cell(500, 2),
    ]
    times = [round(each.commit_ms, 6) for each in found[:3]]
    assert times == [25, 80, 100]
    assert [round(each.commits) for each in found[:3]] == [120, 150, 30]
    assert not any(each.commit_ms for each in found[3:])
    assert found[3].flaw == "not comparable: the table does not hold what was acknowledged (8 writers)"
    assert found[4].flaw == "no commit was acknowledged inside the window (2 writers)"
