"""The study on LHBench from the configuration to the paper, on the real engine: all parts, one system a format."""

from __future__ import annotations

import csv
import json

import pytest

from .conftest import MakeSandbox
from .sandbox import Sandbox

REFRESH = {
    "scale": 0.01, "queries": [3, 42], "merged": ["store_sales", "inventory"], "refreshes": 2, "share": 0.03,
    "updates": 0.5, "iterations": 2,
}  # fmt: skip
LOAD = {"scales": [0.01], "tables": "asked", "queries": [3, 9, 34, 42, 59], "iterations": 2}
SIZES = {
    "load": LOAD,
    "refresh": REFRESH,
    "merge": {"rows": 200_000, "files": 20, "updates": [4, 35], "iterations": 2},
    "repeats": 1,
    "runs": 1,
    "window_seconds": 600,
}


def made(make_sandbox: MakeSandbox, systems: dict[str, dict[str, str]], parts: list[str]) -> Sandbox:
    lhbench = {"systems": systems, "protocols": {"smoke": SIZES}, "parts": parts}
    sandbox = make_sandbox({"studies": ["lhbench"], "protocol": "smoke", "lhbench": lhbench})
    done = sandbox.run("all", timeout_s=1_500)
    assert done.returncode == 0, done.stdout
    assert not list(sandbox.work.iterdir()) and not sandbox.left_running()
    return sandbox


def rows(sandbox: Sandbox, table: str) -> list[dict[str, str]]:
    with (sandbox.results / "tables/lhbench" / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def small(make_sandbox: MakeSandbox) -> Sandbox:
    """One system and one part, in which tables are loaded, queried, merged into and made compact: some 80 s."""
    return made(make_sandbox, {"delta-on-spark": {}}, ["refresh"])


def test_every_table_and_every_answer_is_what_it_must_be(small: Sandbox) -> None:
    (run,) = small.runs().values()
    told = run["found"]
    assert run["oracle"]["verdict"] and run["oracle"]["expected"] == run["oracle"]["found"] > 0
    assert told["words"] == "exact" and not told["failed"]
    assert set(told["tables"]) == {"load", "merge 1", "merge 2", "compact"}
    assert set(told["answers"]) == {"queries before", "queries after", "queries compacted"}
    assert set(told["tables"]["merge 1"]) == {"store_sales", "inventory"}
    assert all(0 < each["updates"] <= each["inserts"] + 1 for each in told["data"]["sets"].values())


def test_times_stand_in_tables_figures_and_chapter(small: Sandbox) -> None:
    (row,) = rows(small, "lhb-refresh")
    assert row["verdict"] == "exact"
    assert all(float(row[f"{name} [s]"]) > 0 for name in ("load", "queries", "merge", "queries_after", "compaction"))
    (verdict,) = rows(small, "lhb-oracle")
    # What two queries read and one refresh set changes: store_sales, inventory, item and date_dim.
    assert int(verdict["tables"]) == 4 + 2 * 2 + 2 and int(verdict["answers"]) == 2 * 3
    said = json.loads((small.results / "paper/values.json").read_text())["sentences"]
    assert "all are what they must be" in said["lhbench-oracle"] and "by more than 8" in said["lhbench-axis"]
    assert (small.results / "figures/lhbench/lhb-refresh.svg").stat().st_size > 0
    assert (small.results / "paper.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.long
def test_all_parts_with_one_system_a_format(make_sandbox: MakeSandbox) -> None:
    systems = {name: {} for name in ("parquet-on-spark", "delta-on-spark", "iceberg-on-spark", "hudi-on-spark")}
    sandbox = made(make_sandbox, systems, ["load", "refresh", "merge"])
    runs = sandbox.runs()
    assert len(runs) == 3 * 3 + 1  # rows cannot be merged into files alone
    assert all(run["oracle"]["verdict"] and not run["found"]["failed"] for run in runs.values())
    assert {row["verdict"] for row in rows(sandbox, "lhb-load")} == {"exact"}
    for row in rows(sandbox, "lhb-merges"):
        if row["updates"]:
            assert float(row["merge_of_4 [s]" if "merge_of_4 [s]" in row else "merge [s]"]) > 0
    assert len(rows(sandbox, "lhb-query-medians")) == 5
