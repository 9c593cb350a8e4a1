"""Tests of then and now: a planted ratio between two stacks is found, and a single stack gives no such result."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.results.places import made
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, batched, write_run_set

from tidemark.pipeline.build import build_figures, build_tables, parts
from tidemark.results.figures import draw
from tidemark.results.figures.context import FigureContext
from tidemark.runs.runset import RunSet

# The software table checks versions against the locks that runs name; these runs name none.
NOW = {"stack": "current"}
MODELS = (
    DUCKLAKE,
    replace(DUCKLAKE, median_ms=DUCKLAKE.median_ms / 2, **NOW),
    batched(ICEBERG_DUCKDB),
    batched(ICEBERG_DUCKDB, **NOW),
    replace(ICEBERG_DUCKDB, status="failed", reason="the catalog died", factors=(), **NOW),
    ICEBERG_DUCKDB,
)


def rows(results: Path) -> dict[tuple[str, str], dict[str, str]]:
    with made(results / "tables", "then-and-now.csv").open() as file:
        return {(row["system"], row["mode"]): row for row in csv.DictReader(file)}


def test_a_halved_write_time_is_found_and_an_unchanged_one_is_no_difference(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, MODELS)
    build_tables(results)
    found = rows(results)
    halved = found["DuckLake", "single"]
    assert float(halved["write_ratio_low"]) <= 0.5 <= float(halved["write_ratio_high"])
    assert halved["verdict"].startswith("faster by at least")
    same = found["Iceberg (DuckDB)", "batch of 1,000"]
    assert float(same["write_ratio_low"]) <= 1.0 <= float(same["write_ratio_high"])
    assert same["verdict"] == "the same within 10 %"
    assert "the catalog died" in "".join(found["Iceberg (DuckDB)", "single"].values())
    build_figures(results)
    assert made(results / "figures", "then-and-now.svg").stat().st_size > 5_000


def test_the_other_tables_are_those_of_the_first_stack(tmp_path: Path) -> None:
    both = write_run_set(tmp_path / "both", MODELS)
    alone = write_run_set(tmp_path / "alone", [model for model in MODELS if model.stack == "thesis"])
    for results in (both, alone):
        build_tables(results)
    assert "Software stack" not in made(both / "tables", "then-and-now.md").read_text()
    first = made(both / "tables", "table-5.2.csv").read_text()
    assert first == made(alone / "tables", "table-5.2.csv").read_text()
    assert not made(alone / "tables", "then-and-now.csv").exists()
    names = {entry["name"] for entry in json.loads((alone / "tables" / "index.json").read_text())["tables"]}
    assert "then-and-now" not in names


def test_series_of_a_single_run_are_compared_by_that_run(tmp_path: Path) -> None:
    once = replace(DUCKLAKE, factors=(1.0,), outliers=0.0)
    results = write_run_set(tmp_path, (once, replace(once, median_ms=once.median_ms / 2, **NOW)))
    build_tables(results)
    found = rows(results)["DuckLake", "single"]
    assert float(found["write_ratio_low"]) <= 0.5 <= float(found["write_ratio_high"]) < 1


def test_figure_of_many_modes_draws_the_one_that_most_systems_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = [each for model in (DUCKLAKE, ICEBERG_DUCKDB) for each in (model, replace(model, **NOW))]
    models = (*shared, batched(ICEBERG_DUCKDB), batched(ICEBERG_DUCKDB, **NOW))
    (part,) = parts(RunSet.load(write_run_set(tmp_path, models)))
    monkeypatch.setattr(draw, "MOST_MODES", 1)
    drawn = draw.then_and_now(FigureContext.of(part.measures))
    assert "Only series 'single' are drawn" in drawn.notes[0]
    assert not any("batch" in source for source in drawn.sources)
