"""Tests of tables: planted values appear in three formats, and missing values have a reason."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.results.places import made
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, INLINED, STANDARD, batched, write_run_set

from tidemark.analysis.formatting import MissingCell, number, shown
from tidemark.analysis.statistics import Estimate
from tidemark.errors import AnalysisError
from tidemark.pipeline.build import build_tables, parts
from tidemark.results.report.answer import read_first
from tidemark.results.tables.setup import same_version
from tidemark.results.tables.table import Column, Table
from tidemark.runs.runset import RunSet

THESIS = [f"table-{number}" for number in ("4.1", "4.2", "5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "6.1")]
BEYOND = [
    "systems", "type-mappings", "cold-proof", "interference", "attempts", "oracle", "throughput", "latency", "growth",
    "ratios", "cold-effect", "time-budget", "footprint", "disk", "flush-vs-merge",
]  # fmt: skip


SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def tables(results: Path) -> Path:
    build_tables(results)
    return results / "tables"


def read(tables: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(made(tables, f"{name}.csv").read_text())))


def row(tables: Path, name: str, **wanted: str) -> Mapping[str, str]:
    found = [each for each in read(tables, name) if all(each[key] == value for key, value in wanted.items())]
    assert len(found) == 1, (name, wanted, found)
    return found[0]


def test_all_tables_are_made_and_listed(tables: Path) -> None:
    index = json.loads((tables / "index.json").read_text())
    assert [entry["name"] for entry in index["tables"]] == [
        *THESIS[:2], *BEYOND[:6], "planning", "matrix", *THESIS[2:], *BEYOND[6:],
    ]  # fmt: skip
    for entry in index["tables"]:
        assert entry["title"]
        assert entry["sources"], entry["name"]
        assert "SYNTHETIC" in entry["dataset"]
        for name in entry["files"]:
            assert (tables / name).stat().st_size > 0


@pytest.mark.parametrize("name", [*THESIS, *BEYOND])
def test_three_formats_of_a_table_agree(tables: Path, name: str) -> None:
    whole = json.loads(made(tables, f"{name}.json").read_text())
    lines = [line for line in made(tables, f"{name}.md").read_text().splitlines() if line.startswith("| ")]
    assert len(whole["rows"]) == len(read(tables, name)) == len(lines) - 2
    assert {len(cells) for cells in whole["rows"]} == {len(whole["columns"])}
    markdown = made(tables, f"{name}.md").read_text()
    assert "SYNTHETIC dataset" in markdown
    assert whole["sources"][0] in markdown


@pytest.mark.parametrize(("name", "mode"), [("table-5.2", "single"), ("table-5.5", "batch")])
def test_write_times_are_found_within_their_intervals(tables: Path, name: str, mode: str) -> None:
    for model in (model for model in STANDARD if model.mode == mode and model.factors and model.format != "none"):
        if model.slope_ms:
            continue
        found = row(tables, name, system=model.title)
        assert float(found["median_hot_low"]) <= model.median_ms <= float(found["median_hot_high"])
        assert float(found["median [ms]"]) == pytest.approx(model.median_ms, rel=0.03)
        assert (found["hot_runs"], int(found["n"]) > 300) == ("2", True)


def test_the_first_hot_run_is_the_one_in_the_table(results: Path, tables: Path) -> None:
    series = RunSet.load(results).find("ducklake", "single")
    assert series is not None
    assert row(tables, "table-5.2", system="DuckLake")["n"] == str(series.runs[1].manifest.operations)


def test_thesis_values_are_shown_as_those_of_another_machine(tables: Path) -> None:
    assert row(tables, "table-5.2", system="DuckLake")["thesis_median [ms]"] == "9.889"
    assert row(tables, "table-5.5", system="Iceberg (PyIceberg)")["thesis_iqr [ms]"] == "84.695"
    assert row(tables, "table-5.3", system="DuckLake + inlining", run="2")["thesis_flush [ms]"] == "193.615"
    assert row(tables, "table-6.1", system="Iceberg (DuckDB)", mode="batch of 1,000")["thesis_data_files"] == "1242"
    assert "another machine" in made(tables, "table-5.2.md").read_text()


def test_cell_that_never_succeeded_states_the_reason(tables: Path) -> None:
    found = row(tables, "table-5.2", system="Delta Lake (delta-rs)")
    assert found["median [ms]"] == ""
    assert "Airport_fee" in found["median_missing"]
    assert "missing: delta-rs refused" in made(tables, "table-5.2.md").read_text()
    assert "not installed" in row(tables, "systems", system="Delta Lake (DuckDB)")["format_missing"]


def test_flush_times_are_those_of_the_runs(tables: Path) -> None:
    assert [float(each["flush [ms]"]) for each in read(tables, "table-5.3")] == pytest.approx([210, 200, 190])
    assert [float(each["flush [s]"]) for each in read(tables, "table-5.6")] == pytest.approx([2.2, 2.0, 1.9])
    merge = row(tables, "flush-vs-merge", system="DuckLake", mode="single", what="merge of small files")
    assert float(merge["seconds [s]"]) == pytest.approx(1.3)


def test_growth_and_no_growth_are_distinguished(tables: Path) -> None:
    assert row(tables, "growth", system="Iceberg (PyIceberg)", mode="single")["verdict"] == "grows"
    assert row(tables, "growth", system="DuckLake", mode="single")["verdict"] == "not resolved"


def test_pairs_are_compared_by_their_intervals(tables: Path) -> None:
    found = row(tables, "ratios", a="DuckLake", b="DuckLake + inlining", mode="single")
    assert float(found["write_ratio_low"]) <= 1.25 <= float(found["write_ratio_high"])
    assert found["verdict"].startswith("slower by at least ")


def test_cold_start_is_given_in_seconds_of_the_first_commits(tmp_path: Path) -> None:
    """Plant a run 0 whose commits of 10 ms take 30 % longer: 3 ms more each, in windows of about 200 commits."""
    slow = replace(DUCKLAKE, factors=(1.3, 1.0, 1.0), outliers=0.0, sigma=0.02)
    results = write_run_set(tmp_path, (slow, replace(ICEBERG_DUCKDB, outliers=0.0, sigma=0.02)), window_s=2.0)
    build_tables(results)
    found = row(results / "tables", "cold-effect", system="DuckLake", mode="single")
    for commits in (1, 20, 100):
        cost = float(found[f"cost_{commits} [s]"])
        assert cost == pytest.approx(0.003 * commits, abs=0.001 + 0.0003 * commits)
        assert float(found[f"cost_{commits}_low"]) < cost < float(found[f"cost_{commits}_high"])
    short = row(results / "tables", "cold-effect", system="Iceberg (DuckDB)", mode="single")
    assert short["cost_20 [s]"] and "needs 100 commits" in short["cost_100_missing"]


def test_one_system_under_two_names_gives_a_noise_floor(tables: Path, tmp_path: Path) -> None:
    """Plant a twin that is 8 % slower, which no system is: the floor is beyond that, in each row of the mode."""
    twin = replace(DUCKLAKE, system="twin", title="Twin", median_ms=1.08 * DUCKLAKE.median_ms, like="ducklake")
    models = (DUCKLAKE, twin, ICEBERG_DUCKDB, batched(DUCKLAKE), batched(ICEBERG_DUCKDB))
    results = write_run_set(tmp_path, models, window_s=4.0)
    build_tables(results)
    found = read(results / "tables", "ratios")
    floors = {(each["mode"], each["write_floor [%]"]) for each in found}
    assert len(found) == 3 + 1 and len(floors) == 2
    assert 8 < float(dict(floors)["single"]) < 20
    assert {each["write_floor_missing"] for each in found if each["mode"] != "single"} == {
        "no system was measured under two names"
    }
    (entry,) = [each for each in read_first_of(results) if each["label"] == "Noise floor"]
    assert entry["text"].startswith("One system under two names (single) differs by at most, at 95 %: median write")
    without = read(tables, "ratios")
    assert without and not any("floor" in name for each in without for name in each)


def read_first_of(results: Path) -> list[dict[str, Any]]:
    run_set = RunSet.load(results)
    return read_first(run_set, [part.measures for part in parts(run_set)])


def test_the_time_budget_adds_up(tables: Path) -> None:
    for found in read(tables, "time-budget"):
        parts = ("poll", "decode", "assemble", "write", "bookkeeping", "wait_for_producer", "rest")
        assert sum(float(found[f"{part} [%]"]) for part in parts) == pytest.approx(100)


def test_tables_of_hot_runs_are_made_from_hot_runs(tables: Path) -> None:
    for name in ("growth", "ratios", "table-5.1", "table-5.2", "table-5.4", "table-5.5"):
        sources = json.loads(made(tables, f"{name}.json").read_text())["sources"]
        assert {label[-1] for label in sources} == {"1", "2"}, name


def test_csv_has_every_digit(results: Path, tables: Path) -> None:
    run = RunSet.load(results).runs[0]
    found = row(tables, "latency", system=run.manifest.system.title, mode="single", run="0")
    assert float(found["write_maximum [ms]"]) == pytest.approx(run.column("write_ns").max() / 1e6, rel=1e-12)


def test_set_with_one_hot_run_gives_reasons_for_missing_runs(tmp_path: Path) -> None:
    models = [replace(DUCKLAKE, factors=(1.0, 1.0), merge_s=None), batched(INLINED, factors=(1.0,), flush_s=(1.0,))]
    results = write_run_set(tmp_path, models, window_s=2, protocol="smoke", synthetic=False)
    build_tables(results)
    folder = results / "tables"
    assert row(folder, "table-5.2", system="DuckLake")["hot_runs"] == "1"
    assert "'smoke' has no run 1" in row(folder, "table-5.5", system="DuckLake + inlining")["median_missing"]
    assert "'smoke' has no run 2" in row(folder, "table-5.6", system="DuckLake + inlining", run="2")["flush_missing"]
    assert "SYNTHETIC" not in made(folder, "table-5.2.md").read_text()


def test_sweep_has_a_table_while_the_plan_has_its_series(tmp_path: Path) -> None:
    sweep = [
        replace(DUCKLAKE, sweep="threads", threads=count, factors=(1.0,), config=(("threads", count),))
        for count in (1, 2)
    ]
    config = {"threads": 1, "sweep": {"threads": {"axis": "threads", "values": [1, 2]}}}
    results = write_run_set(tmp_path / "a", [DUCKLAKE, *sweep], window_s=2, config=config)
    build_tables(results)
    assert [found["value"] for found in read(results / "tables", "sweep-threads")] == ["1", "2"]
    plan = json.loads((results / "plan.json").read_text())
    (results / "plan.json").write_text(json.dumps(plan | {"notes": ["16 threads were asked for, this machine has 2"]}))
    build_tables(results)
    assert "16 threads were asked for" in made(results / "tables", "sweep-threads.md").read_text()
    plan["series"] = [item for item in plan["series"] if item["sweep"] == "main"]
    (results / "plan.json").write_text(json.dumps(plan))
    build_tables(results)
    assert not made(results / "tables", "sweep-threads.csv").exists()


def lock(results: Path, content: str, name: str = "envs/thesis.lock", **others: str) -> None:
    """Make `content` the lock `name` that all runs were measured with; `others` are digests of other locks."""
    path = results.parent / name
    path.parent.mkdir(parents=True)
    path.write_text(content)
    for manifest in results.glob("runs/*/*/*/run-*/run.json"):
        values: dict[str, Any] = json.loads(manifest.read_text())
        values["lock_digests"] = {name: hashlib.sha256(content.encode()).hexdigest(), **others}
        manifest.write_text(json.dumps(values))


def test_software_is_what_the_lock_pins(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, [DUCKLAKE], window_s=1)
    lock(results, "duckdb==1.4.4 --hash=sha256:aa  # x\npyarrow==22.0.0 --hash=sha256:bb  # y\n")
    build_tables(results)
    found = row(results / "tables", "table-4.2", software="duckdb")
    assert (found["locked"], found["asked"], found["thesis"]) == ("1.4.4", "1.4.4", "1.4.4")


def test_software_that_contradicts_its_lock_ends_the_analysis(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, [DUCKLAKE], window_s=1)
    lock(results, "duckdb==1.5.5 --hash=sha256:aa  # x\n")
    with pytest.raises(AnalysisError, match=r"duckdb.*pins 1\.5\.5.*calls itself 1\.4\.4"):
        build_tables(results)


def test_unavailable_lock_is_reported_as_missing(tables: Path) -> None:
    assert "not available" in row(tables, "table-4.2", software="duckdb")["locked_missing"]


def test_a_tools_lock_is_not_taken_for_that_of_a_stack_that_is_not_available(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, [DUCKLAKE], window_s=1)
    lock(results, "duckdb==9.9.9 --hash=sha256:aa  # x\n", "envs/tools/t.lock", **{"envs/thesis.lock": "0" * 64})
    build_tables(results)
    assert "not available" in row(results / "tables", "table-4.2", software="duckdb")["locked_missing"]


def test_two_versions_in_one_stack_end_the_analysis(tmp_path: Path) -> None:
    newer = replace(ICEBERG_DUCKDB, versions={"duckdb": "1.5.5"})
    with pytest.raises(AnalysisError, match="several versions"):
        build_tables(write_run_set(tmp_path, [DUCKLAKE, newer], window_s=1))


@pytest.mark.parametrize(
    ("locked", "asked", "same"),
    [("18.0.0", "18.0", True), ("4.1.0", "4.1.0", True), ("1.4.4", "1.4.40", False), ("22.0.0", "22.0.1", False)],
)
def test_versions_are_compared_as_releases(locked: str, asked: str, same: bool) -> None:
    assert same_version(locked, asked) is same


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Estimate(9.8887, 9.61, 10.234, 5, "ms"), "9.889 [9.610, 10.234]"),
        (Estimate(0.0, -0.5, 0.5, 5, "ms"), "0 [-0.5000, 0.5000]"),
        (Estimate(123456.7, None, None, 1, "ms"), "123,500"),
        (MissingCell("the disk is full"), "missing: the disk is full"),
        (None, ""),
        (4181444, "4,181,444"),
        ("words", "words"),
    ],
)
def test_cells_are_formatted(cell: Any, text: str) -> None:
    assert shown(cell) == text


def test_tiny_percentage_is_shown_as_less_than_a_limit() -> None:
    assert [shown(share, "%") for share in (0.00000761, 0.0, 0.0123, 99.12345)] == ["<0.001", "0", "0.01230", "99.12"]
    assert shown(0.00000761, "ms") == "0.000007610"


def test_numbers_keep_their_significant_digits() -> None:
    assert [number(value) for value in (0.00012345, 1.0, 12.3456, 1234.56, 98765.4)] == [
        "0.0001234", "1.000", "12.35", "1,235", "98,770",
    ]  # fmt: skip


def test_pipe_in_a_reason_does_not_break_the_markdown() -> None:
    table = Table("t", "T", (Column("a", "A"),), ((MissingCell("x | y\nz"),),), (), "d")
    assert r"| missing: x \| y z |" in table.markdown()


def test_html_is_escaped_in_markdown() -> None:
    odd = "<script>x</script> <!-- <img src=x> 1 < 2 <3"
    text = Table("t", "T", (Column("a", "A"),), ((odd,), (MissingCell(odd),)), (odd,), odd, (odd,)).markdown()
    assert text.count("&lt;script>x&lt;/script> &lt;!-- &lt;img src=x> 1 < 2 <3") == 5
    assert not re.search(r"<[A-Za-z/!?]", text)


@pytest.mark.parametrize("notes", sorted(SOURCES.rglob("notes.yaml")), ids=lambda path: path.parent.name)
def test_each_note_belongs_to_a_table_of_its_folder(notes: Path) -> None:
    sources = "".join(path.read_text() for path in notes.parent.glob("*.py"))
    used = [re.sub(r"{.+?}", "[a-z-]+", name) for name in re.findall(r'NOTES\(f?"([^"]+)"', sources)]
    names = re.findall(r"^([a-z][^:\n]*):", notes.read_text(), re.MULTILINE)
    assert names
    assert [name for name in names if not any(re.fullmatch(pattern, name) for pattern in used)] == []
