"""Tests of sweep tables: known values and known ratios to the main configuration, and no table without series."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.results.places import made
from tests.runs.runset import DELTA, DUCKLAKE, ICEBERG_DUCKDB, Model, batched, write_run_set

from tidemark.pipeline.build import build_tables

SWEEP = {
    "encoded": {"axis": "encoding", "values": ["record", "stream"]},
    "together": {"axis": "overlap", "values": [True]},
    "beside-it": {"axis": "producer", "values": ["beside"]},
}
CONFIG = {"encoding": "record", "producer": "ahead", "overlap": False, "sweep": SWEEP}


def set_to(model: Model, sweep: str = "main", **values: Any) -> Model:
    """Return `model` as a series of `sweep`, with `values` in place of the main configuration's."""
    usual = {"encoding": "record", "producer": "ahead", "overlap": False, "batch_size": model.batch_size}
    return replace(model, sweep=sweep, config=tuple({**usual, **values}.items()))


def tables(root: Path, models: list[Model], window_s: float = 8.0) -> Path:
    results = write_run_set(root, models, window_s=window_s, config=CONFIG)
    build_tables(results)
    return results / "tables"


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(made(folder, f"{name}.csv").read_text())))


def test_ratios_to_the_main_configuration_are_found(tmp_path: Path) -> None:
    slower = replace(DUCKLAKE, median_ms=2 * DUCKLAKE.median_ms)
    models = [set_to(DUCKLAKE), set_to(ICEBERG_DUCKDB), set_to(batched(DUCKLAKE, median_ms=40.0))]
    models += [set_to(slower, "encoded", encoding="stream"), set_to(ICEBERG_DUCKDB, "encoded", encoding="stream")]
    models.append(set_to(batched(DUCKLAKE, median_ms=20.0), "together", overlap=True))
    folder = tables(tmp_path, models)
    doubled, same = rows(folder, "sweep-encoded")
    assert (doubled["value"], doubled["main"], doubled["compared"]) == ("stream", "record", "hot runs")
    assert float(doubled["write_ratio_low"]) <= 2.0 <= float(doubled["write_ratio_high"])
    assert float(doubled["write_ratio"]) == pytest.approx(2.0, rel=0.05)
    assert float(doubled["rate_ratio"]) == pytest.approx(0.5, rel=0.05)
    assert float(doubled["write [ms]"]) == pytest.approx(2 * DUCKLAKE.median_ms, rel=0.05)
    assert float(doubled["write_low"]) < float(doubled["write [ms]"]) < float(doubled["write_high"])
    assert doubled["write_verdict"].startswith("slower by at least") and doubled["rate_verdict"].startswith("lower by")
    assert float(same["write_ratio_low"]) <= 1.0 <= float(same["write_ratio_high"])
    assert same["write_verdict"] in ("the same within 10 %", "not distinguishable")
    (halved,) = rows(folder, "sweep-together")
    assert (halved["value"], halved["main"], halved["mode"]) == ("true", "false", "batch of 1,000")
    assert float(halved["write_ratio_low"]) <= 0.5 <= float(halved["write_ratio_high"])
    assert halved["write_verdict"].startswith("faster by at least") and halved["rate_verdict"].startswith("higher by")
    assert not made(folder, "sweep-beside-it.csv").exists(), "it has no series"


def test_single_runs_are_compared_with_single_runs(tmp_path: Path) -> None:
    once = replace(DUCKLAKE, factors=(1.0,), median_ms=3 * DUCKLAKE.median_ms)
    cold = replace(DUCKLAKE, factors=(1.5, 1.0, 1.0))
    (found,) = rows(tables(tmp_path, [set_to(cold), set_to(once, "beside-it", producer="beside")]), "sweep-beside-it")
    assert (found["runs"], found["compared"]) == ("run 0", "run 0")
    assert float(found["write_ratio_low"]) <= 2.0 <= float(found["write_ratio_high"])


def test_sweeps_own_series_is_the_baseline_without_a_main_series(tmp_path: Path) -> None:
    models = [set_to(replace(DUCKLAKE, median_ms=5.0), "encoded", encoding="stream"), set_to(DUCKLAKE, "encoded")]
    models.append(set_to(replace(ICEBERG_DUCKDB, median_ms=5.0), "encoded", encoding="stream"))
    models.append(set_to(DELTA, "encoded", encoding="stream"))
    found = {(row["system"], row["value"]): row for row in rows(tables(tmp_path, models), "sweep-encoded")}
    assert float(found["DuckLake", "stream"]["write_ratio"]) == pytest.approx(0.5, rel=0.05)
    itself = found["DuckLake", "record"]
    assert (itself["compared"], itself["write_ratio"]) == ("the baseline", "")
    assert "main configuration has no run" in found["Iceberg (DuckDB)", "stream"]["write_ratio_missing"]
    assert "Airport_fee" in found["Delta Lake (delta-rs)", ""]["value_missing"]


def test_configuration_without_sweeps_has_no_sweep_tables(tables_of_standard: Path) -> None:
    assert not list(tables_of_standard.rglob("sweep-*"))


@pytest.fixture
def tables_of_standard(tmp_path: Path) -> Path:
    return tables(tmp_path, [set_to(DUCKLAKE)], window_s=1.0)
