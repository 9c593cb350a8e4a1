"""Tests of comparing result sets: incomparable ones are refused with a reason, else intervals hold the true ratio."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.results.compared import both
from tests.runs.runset import DELTA, DUCKLAKE, ICEBERG_DUCKDB, INLINED, Model, batched, write_run_set

from tidemark.analysis.statistics import Estimate
from tidemark.errors import AnalysisError, Incomparable
from tidemark.results.archive.compare import Comparison
from tidemark.results.archive.compare_plot import write_comparison
from tidemark.results.archive.pack import write_archive

MODELS = (DUCKLAKE, INLINED, replace(ICEBERG_DUCKDB, slope_ms=0.0), batched(DUCKLAKE, median_ms=20.0), DELTA)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run_set(tmp_path_factory.mktemp("before"), MODELS, window_s=6.0)


def measured(root: Path, models: tuple[Model, ...] = MODELS, **more: Any) -> Path:
    return write_run_set(root, models, window_s=6.0, seed=2, **more)


def ratios(comparison: Comparison) -> dict[tuple[str, str], Estimate]:
    found = {}
    for (one, _), ratio in zip(comparison.pairs, comparison.ratios, strict=True):
        assert isinstance(ratio, Estimate)
        found[one.system, one.mode] = ratio
    return found


def test_equal_sets_show_no_difference(before: Path, tmp_path: Path) -> None:
    comparison = both(before, measured(tmp_path))
    assert len(comparison.pairs) == 4
    assert sum(not ratio.contains(1.0) for ratio in ratios(comparison).values()) <= 1, "of intervals of 95 %"
    same = {"the same within 10 %", "faster by less than 10 %", "slower by less than 10 %"}
    assert {row[-1] for row in comparison.tables[0].rows} <= same


def test_slowdown_is_found_only_in_the_slower_system(before: Path, tmp_path: Path) -> None:
    slower = tuple(replace(m, median_ms=m.median_ms + 5) if m.system == "ducklake-inlined" else m for m in MODELS)
    comparison = both(before, measured(tmp_path, slower))
    found = ratios(comparison)
    assert found["ducklake-inlined", "single"].contains(13 / 8) and found["ducklake-inlined", "single"].is_above(1)
    assert all(0.95 < found["ducklake", mode].value < 1.05 for mode in ("single", "batch"))
    verdicts = {(row[0], row[1]): row[-1] for row in comparison.tables[0].rows}
    assert verdicts["DuckLake + inlining", "single"].startswith("slower by at least ")


def test_ratios_between_systems_agree_unless_one_system_changed(before: Path, tmp_path: Path) -> None:
    slower = tuple(replace(m, median_ms=m.median_ms + 5) if m.system == "ducklake-inlined" else m for m in MODELS)
    again, changed = both(before, measured(tmp_path / "a")), both(before, measured(tmp_path / "b", slower))
    rows = [{(row[0], row[1]): row for row in comparison.tables[1].rows} for comparison in (again, changed)]
    assert set(rows[0]) == {("DuckLake + inlining", "single"), ("Iceberg (DuckDB)", "single")}
    planted, other = (rows[1][name, "single"] for name in ("DuckLake + inlining", "Iceberg (DuckDB)"))
    assert isinstance(planted[5], Estimate) and planted[5].contains(13 / 8)
    assert str(planted[-1]).startswith("larger by at least ") and not str(other[-1]).startswith(
        ("larger", "smaller by at")
    )
    shares = [
        re.match(r"(\d+) of (\d+) ratios of headline metrics agree", table.notes[0])
        for table in (again.tables[1], changed.tables[1])
    ]
    counts = [(int(found[1]), int(found[2])) for found in shares if found]
    assert counts[0][0] == counts[0][1] > counts[1][0]


def test_sets_of_several_stacks_are_compared_by_the_first_that_both_have(before: Path, tmp_path: Path) -> None:
    newer = (replace(DUCKLAKE, stack="current", median_ms=3.0), *MODELS)
    comparison = both(before, measured(tmp_path, newer))
    assert all(0.9 < ratio.value < 1.1 for ratio in ratios(comparison).values())


def test_swapping_the_sets_inverts_the_ratio(before: Path, tmp_path: Path) -> None:
    after = measured(tmp_path, (replace(DUCKLAKE, median_ms=14.0), *MODELS[1:]))
    there, back = (ratios(pair)["ducklake", "single"].value for pair in (both(before, after), both(after, before)))
    assert there == pytest.approx(1 / back)


def edited(results: Path, change: Callable[[dict[str, Any]], None], pattern: str = "runs/*/*/*/run-*/run.json") -> Path:
    for path in results.glob(pattern):
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))
    return results


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["dataset"].update(sha256="cd" * 32), "the dataset differs"),
        (lambda m: m.update(window_s=60.0), "the protocol's window differs"),
        (
            lambda m: m["config"].update(commits=100, least_seconds=2),
            "windows end differently (by time against after 100 commits and 2 s)",
        ),
        (lambda m: m["producer"].update(mode="beside"), "the mode of the producer differs"),
        (lambda m: m["oracle"].update(applicable=False, reader="nobody"), "the oracle of DuckLake differs"),
        (lambda m: m["oracle"].update(verdict=False, missing=1), "does not hold what was acknowledged"),
    ],
)
def test_incomparable_sets_are_refused(
    before: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    after = edited(measured(tmp_path), change)
    with pytest.raises(Incomparable) as caught:
        both(before, after)
    assert message in str(caught.value) and str(after) in str(caught.value)
    assert caught.value.exit_code == 12


def test_protocols_modes_and_systems_must_agree(before: Path, tmp_path: Path) -> None:
    with pytest.raises(Incomparable, match="the protocol differs"):
        both(before, measured(tmp_path / "a", protocol="thesis"))
    with pytest.raises(Incomparable, match="the modes differ"):
        both(before, measured(tmp_path / "b", MODELS[:3]))
    one, other = measured(tmp_path / "c", MODELS[:1]), measured(tmp_path / "d", MODELS[1:2])
    with pytest.raises(Incomparable, match="no measured system in common"):
        both(one, other)


def test_every_reason_is_named_at_once(before: Path, tmp_path: Path) -> None:
    after = edited(measured(tmp_path, protocol="thesis"), lambda m: m["dataset"].update(sha256="cd" * 32))
    with pytest.raises(Incomparable, match=r"the dataset differs .*; the protocol differs"):
        both(before, after)


def test_machines_and_versions_may_differ_and_are_named(before: Path, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["machine"]["cpu_model"] = "Other CPU"
        manifest["versions"]["duckdb"] = "1.5.5"

    notes = " ".join(both(before, edited(measured(tmp_path), change)).tables[0].notes)
    assert "Other CPU" in notes and "duckdb 1.4.4 to 1.5.5" in notes


def test_archive_and_workspace_can_be_compared(before: Path, tmp_path: Path) -> None:
    archive = write_archive(before, tmp_path / "a.zip")
    comparison = both(archive, before.parent)
    assert {ratio.value for ratio in ratios(comparison).values()} == {1.0}
    with pytest.raises(AnalysisError, match=r"found no plan\.json"):
        both(archive, tmp_path)


def test_tables_and_plot_are_written_reproducibly(before: Path, tmp_path: Path) -> None:
    comparison = both(before, measured(tmp_path / "b"))
    paths = write_comparison(comparison, tmp_path / "out")
    tables = {f"{name}.{end}" for name in ("compare", "compare-ratios") for end in ("csv", "md", "json")}
    assert {path.name for path in paths} == tables | {f"compare.{end}" for end in ("svg", "pdf", "png")}
    first = {path: path.read_bytes() for path in paths}
    assert b"write_low" in first[tmp_path / "out" / "compare.csv"]
    write_comparison(comparison, tmp_path / "out")
    assert {path: path.read_bytes() for path in paths} == first
