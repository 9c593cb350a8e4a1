"""The study on LHBench from the configuration to the paper, on the real engine: all parts, one system per format."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from .conftest import MakeSandbox
from .sandbox import Sandbox, wait_for

REFRESH = {
    "scale": 0.01, "queries": [3, 42], "merged": ["store_sales", "inventory"], "refreshes": 2, "share": 0.03,
    "updates": 0.5, "iterations": 1,
}  # fmt: skip
LOAD = {"scales": [0.01], "tables": "asked", "queries": [3, 9, 34, 42, 59], "iterations": 1}
SIZES = {
    "load": LOAD,
    "refresh": REFRESH,
    "merge": {"rows": 200_000, "files": 20, "updates": [4, 35], "iterations": 1},
    "files": {"counts": [120], "rows": 20, "iterations": 2},
    "repeats": 1,
    "runs": 1,
    "window_seconds": 600,
}


LOG = "*/run-0/tables/store_sales/_delta_log"  # below the folder of running series


def made(
    make_sandbox: MakeSandbox, systems: dict[str, dict[str, str]], parts: list[str], load: dict[str, Any] = LOAD
) -> Sandbox:
    lhbench = {"systems": systems, "protocols": {"smoke": {**SIZES, "load": load}}, "parts": parts}
    sandbox = make_sandbox({"studies": ["lhbench"], "protocol": "smoke", "lhbench": lhbench})
    done = sandbox.run("all")
    assert done.returncode == 0, done.stdout
    assert not list(sandbox.work.iterdir()) and not sandbox.left_running()
    return sandbox


@pytest.fixture(scope="module")
def small(make_sandbox: MakeSandbox) -> Sandbox:
    """Run one system: its tables are loaded, queried, merged into and compacted, and one has many files: 3 min."""
    return made(make_sandbox, {"delta-on-spark": {}}, ["load", "refresh", "files"], {**LOAD, "queries": [42]})


def of_part(sandbox: Sandbox, part: str) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the only run of a part, and the content of its run.json."""
    ((name, run),) = ((name, run) for name, run in sandbox.runs().items() if f"/{part}-" in name)
    return sandbox.results / name, run


def test_every_table_and_every_answer_is_exact(small: Sandbox) -> None:
    _, run = of_part(small, "refresh")
    told = run["found"]
    assert run["oracle"]["verdict"] and run["oracle"]["expected"] == run["oracle"]["found"] > 0
    assert told["words"] == "exact" and not told["failed"]
    assert set(told["tables"]) == {"load", "merge 1", "merge 2", "compact"}
    assert set(told["answers"]) == {"queries before", "queries after", "queries compacted"}
    assert set(told["tables"]["merge 1"]) == {"store_sales", "inventory"}
    sets = told["data"]["sets"].values()
    assert sets and all(0 < each["updates"] <= each["inserts"] + 1 for each in sets)


def test_times_are_in_tables_figures_and_chapter(small: Sandbox) -> None:
    (row,) = small.table("lhbench", "lhb-refresh")
    assert row["verdict"] == "exact"
    assert all(float(row[f"{name} [s]"]) > 0 for name in ("load", "queries", "merge", "queries_after", "compaction"))
    verdict = next(row for row in small.table("lhbench", "lhb-oracle") if row["mode"].startswith("refresh"))
    # Tables that two queries read and one refresh set changes: store_sales, inventory, item and date_dim.
    assert int(verdict["tables"]) == 4 + 2 * 2 + 2 and int(verdict["answers"]) == 2 * 3
    said = json.loads((small.results / "paper/values.json").read_text())["sentences"]
    assert "all are what they must be" in said["lhbench-oracle"] and "by more than 8" in said["lhbench-axis"]
    assert (small.results / "figures/lhbench/lhb-refresh.svg").stat().st_size > 0
    assert (small.results / "paper.pdf").read_bytes().startswith(b"%PDF")


def test_another_engine_is_timed_on_the_same_tables(small: Sandbox) -> None:
    _, run = of_part(small, "load")
    (told,) = run["found"]["second"]["queries before"]["ways"].values()
    assert not told["tables"] and len(told["queries"]["q42"]["ns"]) == LOAD["iterations"]
    rows = {(row["state"], row["query"]): row for row in small.table("lhbench", "lhb-second-engine")}
    loaded, merged = "as loaded", "after all refreshes"
    assert set(rows) == {(loaded, "all"), (loaded, "q42"), (merged, "all"), (merged, "q3"), (merged, "q42")}
    for row in rows.values():
        spark, other, ratio = (float(row[name]) for name in ("spark [s]", "duckdb [s]", "ratio [x]"))
        assert spark > 0 and other > 0 and ratio == pytest.approx(spark / other) and row["read"] == "delta_scan"
    said = json.loads((small.results / "paper/values.json").read_text())["sentences"]
    assert "(Delta (Spark))" in said["lhbench-second"] and "without a time" not in said["lhbench-second"]
    assert (small.results / "figures/lhbench/lhb-second-engine.svg").stat().st_size > 0


def test_startup_is_separated_from_execution_for_a_table_with_many_files(small: Sandbox) -> None:
    folder, run = of_part(small, "files")
    told = run["found"]
    assert run["oracle"]["verdict"] and run["oracle"]["expected"] == run["oracle"]["found"] == 120 * 20
    assert told["answers"]["queries"]["partition"] == {"rows": 1, "words": ""} and len(told["answers"]["queries"]) == 4
    cells = {row["query"]: row for row in small.table("lhbench", "lhb-files")}
    for query in ("limit", "partition", "value"):
        startup, execution, whole = (float(cells[query][f"{name} [s]"]) for name in ("startup", "execution", "whole"))
        assert 0 < startup < whole and startup + execution == pytest.approx(whole, rel=0.2)
    stages = pq.read_table(folder / "stages.parquet").to_pylist()
    operations = pq.read_table(folder / "operations.parquet").to_pylist()
    assert {operations[stage["operation"]]["subject"] for stage in stages} >= {"limit", "partition", "value"}
    assert sum(operation["tasks"] for operation in operations) == sum(stage["tasks"] for stage in stages) > 0
    engine = next(row for row in small.table("lhbench", "lhb-engine") if row["kind"] == "merge")
    assert float(engine["shuffle_bytes [B]"]) > 0 and float(engine["task [s]"]) > 0
    assert (small.results / "figures/lhbench/lhb-files.svg").stat().st_size > 0


@pytest.mark.long(reason="three starts of Spark; tests/end_to_end/test_faults.py kills other servers")
def test_killed_or_interrupted_engine_leaves_nothing(make_sandbox: MakeSandbox) -> None:
    lhbench = {"systems": {"delta-on-spark": {}}, "protocols": {"smoke": SIZES}, "parts": ["refresh"]}
    sandbox = make_sandbox({"studies": ["lhbench"], "protocol": "smoke", "lhbench": lhbench})
    for number, ended in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        process = sandbox.start("all", output=subprocess.DEVNULL)
        wait_for("a table of the engine's", lambda: list(sandbox.work.glob(LOG)), process, 600)
        assert sandbox.server("SparkServer").is_running()
        os.killpg(process.pid, number)
        assert process.wait(60) == ended
        assert not sandbox.left_running() and not sandbox.runs()
    done = sandbox.run("all")
    assert done.returncode == 0, done.stdout
    assert len(sandbox.runs()) == 1


@pytest.mark.long(reason="four systems in four parts: ten minutes")
def test_all_parts_with_one_system_per_format(make_sandbox: MakeSandbox) -> None:
    systems = {name: {} for name in ("parquet-on-spark", "delta-on-spark", "iceberg-on-spark", "hudi-on-spark")}
    sandbox = made(make_sandbox, systems, ["load", "refresh", "merge", "files"])
    runs = sandbox.runs()
    assert len(runs) == 3 * 3 + 1 + 3  # rows cannot be merged into plain files, nor can files be registered with Hudi
    assert {row["verdict"] for row in sandbox.table("lhbench", "lhb-files") if row["query"]} == {"exact"}
    assert all(run["oracle"]["verdict"] and not run["found"]["failed"] for run in runs.values())
    assert {row["verdict"] for row in sandbox.table("lhbench", "lhb-load")} == {"exact"}
    for row in sandbox.table("lhbench", "lhb-merges"):
        if row["updates"]:
            assert float(row["merge_of_4 [s]" if "merge_of_4 [s]" in row else "merge [s]"]) > 0
    assert len(sandbox.table("lhbench", "lhb-query-medians")) == 5
    second = [row for row in sandbox.table("lhbench", "lhb-second-engine") if row["state"] == "as loaded"]
    timed = [row for row in second if row["query"] != "load" and float(row["duckdb [s]"] or 0) > 0]
    assert len(timed) == 4 * (1 + 5)  # Parquet, Delta, Iceberg and DuckLake: all queries together, and each
    (without,) = (row for row in second if row not in timed and row["query"] != "load")
    assert without["duckdb_missing"] == "DuckDB has no reader of Hudi's tables"
