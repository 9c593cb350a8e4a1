"""Tests of results of 600 runs: each is made, the page stays small enough to open, and the paper does not grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.results.page_data import data_of
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, INLINED, NULL, PYICEBERG, batched, write_run_set

from tidemark.paths import REPOSITORY
from tidemark.results.paper.paper_tables import without_runs
from tidemark.results.report import page as report
from tidemark.results.report.page import OVER_TIME, STEPS, thin

REPEATS = 20
SINGLE = (DUCKLAKE, INLINED, PYICEBERG, ICEBERG_DUCKDB, replace(NULL, median_ms=5.0))
SETTINGS = {f"setting {number}": "as the system comes" for number in range(80)}  # manifests as long as real ones
MODELS = [
    replace(model, repeats=tuple(1 + 0.005 * place for place in range(REPEATS)), settings=SETTINGS)
    for model in (*SINGLE, *(batched(each, median_ms=2 * each.median_ms) for each in SINGLE))
]
RUNS = 3 * REPEATS * len(MODELS)
MADE = {
    "database": "metrics.duckdb",
    "tables": "tables/index.json",
    "figures": "figures/index.json",
    "claims": "claims.json",
    "paper": "paper.pdf",
    "report": "report.html",
}
# Reads the process's own high-water mark: the one that its parent gets includes memory of the parent before exec.
COMMAND = """
import sys
from pathlib import Path
from tidemark.cli.main import main
code = main()
status = Path("/proc/self/status").read_text()
Path(sys.argv[-1], "peak").write_text(status.split("VmHWM:")[1].split()[0])
sys.exit(code)
"""
MOST_OF_PAPER = 1_000_000_000  # bytes of memory; with a row for each run it took twice as much

pytestmark = pytest.mark.long(reason="all results of 600 runs")


@pytest.fixture(scope="module")
def peaks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """Return the results of 600 runs, and the peak memory of each step in bytes."""
    results = write_run_set(tmp_path_factory.mktemp("scale"), MODELS, window_s=0.5)
    memory = {}
    for step, made in MADE.items():
        with (results / f"{step}.log").open("w") as log:
            command = [sys.executable, "-c", COMMAND, "analyse", step, "--results", str(results)]
            environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
            ended = subprocess.run(command, cwd=results.parent, env=environment, stdout=log, stderr=log, check=False)
        assert ended.returncode == 0, (results / f"{step}.log").read_text()
        assert (results / made).stat().st_size > 0
        memory[step] = int((results / "peak").read_text()) * 1024
    return results, memory


def test_every_result_of_600_runs_is_made(peaks: tuple[Path, dict[str, int]]) -> None:
    results, most = peaks
    assert RUNS == 600 and list(most) == list(MADE)
    page = (results / "report.html").read_text()
    assert len(page.encode()) <= report.MOST_BYTES
    data = data_of(page)
    assert sum(len(series["runs"]) for series in data["series"]) == RUNS
    left_out = [each["text"] for each in data["read_first"] if each["label"] == "Not in this page"]
    assert len(left_out) == 1 and "manifests of runs" in left_out[0]
    for run in (run for series in data["series"] for run in series["runs"]):
        assert run["manifest"] is None
        assert json.loads((results / run["place"] / "run.json").read_text())["run"] == run["number"]


def test_paper_has_no_rows_per_run(peaks: tuple[Path, dict[str, int]]) -> None:
    results, most = peaks
    assert most["paper"] < MOST_OF_PAPER
    printed = json.loads((results / "paper" / "values.json").read_text())["tables"]
    rows = {table["name"]: max((len(block["rows"]) for block in table["blocks"]), default=0) for table in printed}
    assert rows["latency"] == 2 * len(MODELS), "cold runs and hot runs of each"
    assert rows["table-5.3"] == 3, "each run of the thesis, over its repeats"
    assert max(rows.values()) <= 3 * len(MODELS)


def test_thinning_ends_with_no_runs(reported: Path) -> None:
    data = data_of((reported / "report.html").read_text())
    whole = json.dumps(data)
    sizes: list[int] = []

    def never(values: dict[str, object]) -> bool:
        sizes.append(len(json.dumps(values["series"])))
        return False

    thin(data, never)
    assert len(sizes) == len(STEPS) and sizes == sorted(sizes, reverse=True)
    assert all(series["runs"] == [] for series in data["series"])
    assert [each["label"] for each in data["read_first"]].count("Not in this page") == 1

    untouched = json.loads(whole)
    thin(untouched, lambda _: True)
    assert json.dumps(untouched) == whole


def test_later_repeats_lose_their_points_before_the_first(peaks: tuple[Path, dict[str, int]]) -> None:
    data = data_of((peaks[0] / "report.html").read_text())
    answers = iter([False, False, True])
    thin(data, lambda _: next(answers))
    for series in data["series"]:
        first, later = series["runs"][:3], series["runs"][3:]
        assert all(run["write"] for run in first) and later
        assert not any(run[name] for run in later for name in OVER_TIME)


def test_rows_of_several_runs_are_merged_into_one_row_with_their_range() -> None:
    columns = [
        {"key": key, "title": key, "unit": "", "interval": False} for key in ("system", "repeat", "run", "state")
    ]
    columns.append({"key": "median", "title": "Median", "unit": "ms", "interval": True})
    estimates = [
        {"value": value, "low": value, "high": value, "n": 9, "runs": 1, "unit": "ms"} for value in (9.0, 12.5)
    ]
    rows = [["a", 1, 0, "cold", estimates[1]], ["a", 1, 1, "hot", estimates[0]], ["a", 2, 1, "hot", estimates[1]]]
    rows.append(["b", None, None, None, {"missing": "it failed"}])
    table = {"name": "latency", "columns": columns, "rows": rows, "notes": []}
    merged = without_runs(table)
    assert [row[2:] for row in merged["rows"]] == [
        [1, "cold", estimates[1]],
        [2, "hot", "9.00 to 12.5"],
        [None, None, {"missing": "it failed"}],
    ]
    assert "latency.csv" in merged["notes"][0]
    assert without_runs({**table, "rows": rows[:2]})["rows"] == rows[:2], "nothing to put together"
