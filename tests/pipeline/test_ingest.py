"""The study of many writers goes from the configuration to the paper, on real servers, and shows who loses rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from .conftest import MakeSandbox
from .sandbox import Sandbox

WRITERS = 4
SYSTEMS = {"delta-rs": {}, "iceberg-duckdb": {}, "ducklake-inlined": {}}
GROUP = {"systems": ["delta-rs"], "shapes": ["20x8"], "policies": ["direct", "staged", "bundled"]}
SMOKE = {"writers": [WRITERS], "own": [WRITERS], "runs": 2, "window_seconds": 1, "kills": 1, "group": GROUP}


@pytest.fixture(scope="module")
def done(make_sandbox: MakeSandbox) -> Sandbox:
    ingest = {"systems": SYSTEMS, "protocols": {"smoke": SMOKE}, "rows": 20, "uncounted": 2}
    sandbox = make_sandbox({"studies": ["ingest"], "protocol": "smoke", "ingest": ingest})
    made = sandbox.run("all", timeout_s=900)
    assert made.returncode == 0, made.stdout
    return sandbox


def rows(sandbox: Sandbox, table: str) -> list[dict[str, str]]:
    with (sandbox.results / "tables/ingest" / f"ingest-{table}.csv").open() as file:
        return list(csv.DictReader(file))


def test_every_run_was_checked_and_those_that_lost_nothing_are_exact(done: Sandbox) -> None:
    runs = done.runs()
    assert len(runs) == 2 * 2 * 2 + 2 + 3 * 2
    for name, run in runs.items():
        if "20x8" in name:
            continue
        oracle, tables = run["found"]["oracle"], WRITERS if "/own-" in name else 1
        assert run["oracle"]["applicable"] and run["oracle"]["verdict"] is (oracle["words"] == "exact")
        assert oracle["expected"] == 20 * (run["found"]["commits"] + tables)
        assert oracle["found"] == oracle["expected"] - oracle["lost"] + 20 * oracle["done"]
        if "iceberg-duckdb/one-" not in name and "iceberg-duckdb/faults-" not in name:
            assert oracle["words"] == "exact", (name, oracle)
    assert not list(done.work.iterdir()) and not done.left_running()


def test_what_the_reference_catalog_loses_is_found_and_has_no_speed(done: Sandbox) -> None:
    """DuckDB's commits through the endpoint for several tables: two of them on one snapshot, both acknowledged."""
    runs = [run for name, run in done.runs().items() if f"iceberg-duckdb/one-{WRITERS}" in name]
    assert any(run["found"]["oracle"]["lost"] for run in runs), [run["found"] for run in runs]
    hot = next(run for run in runs if run["run"] == 1)
    speeds = {(row["system"], row["tables"]): row for row in rows(done, "writers")}
    shown = speeds["Iceberg (DuckDB)", "one"]
    assert (shown["verdict"] == "exact") == bool(shown["commits [commits/s]"]) == hot["oracle"]["verdict"]
    for system in ("Delta (delta-rs)", "Iceberg (DuckDB)"):
        assert float(speeds[system, "one each"]["commits [commits/s]"]) > 0


def test_writers_and_servers_are_killed_and_what_was_acknowledged_is_looked_for(done: Sandbox) -> None:
    found = {name.split("/")[2]: run["found"] for name, run in done.runs().items() if "/faults-2/" in name}
    assert set(found) == {"delta-rs", "iceberg-duckdb"}
    titles = {name: [kill["title"] for kill in each["faults"]["kills"]] for name, each in found.items()}
    assert titles["delta-rs"] == ["a writer"]
    assert titles["iceberg-duckdb"] == ["a writer", "Iceberg REST catalog", "PostgreSQL"]
    for kill in (kill for each in found.values() for kill in each["faults"]["kills"]):
        assert kill["acked"] > 0 and 0 < kill["started_s"] < kill["down_s"] < 60, kill
        assert kill["unknown"] == kill["done"] + kill["not_done"] and kill["said"] == ""
    told = {(row["system"], row["victim"]): row for row in rows(done, "faults") if row["kills"]}
    delta = told["Delta (delta-rs)", "a writer"]
    assert delta["verdict"] == "holds" and float(delta["at_most"]) == pytest.approx(0.95)
    assert delta["lost"] == delta["lost_before"] == delta["doubled"] == delta["partial"] == "0"
    assert len(told) == 4 and all(float(row["down [s]"]) > 0 for row in told.values())
    assert (done.results / "figures/ingest/ingest-faults.svg").stat().st_size > 0


def test_what_is_on_the_disk_at_the_acknowledgement_is_seen(done: Sandbox) -> None:
    told = {row["system"]: row for row in rows(done, "durability")}
    delta, iceberg = told["Delta (delta-rs)"], told["Iceberg (DuckDB)"]
    if "not measurable here" in delta["level_missing"]:
        pytest.skip(delta["level_missing"])
    assert (delta["level"], iceberg["level"]) == ("D0", "D1")
    assert float(delta["dirty_data [%]"]) == float(delta["dirty_other [%]"]) == float(iceberg["dirty_data [%]"]) == 100
    assert delta["dirty_log [%]"] == "" and float(iceberg["dirty_log [%]"]) < 100
    assert int(delta["data_files"]) == int(iceberg["data_files"]) == 10


def test_what_a_front_acknowledged_is_there_and_gathered_requests_share_files(done: Sandbox) -> None:
    runs = {name: run for name, run in done.runs().items() if "20x8" in name}
    for name, run in runs.items():
        found = run["found"]
        assert found["oracle"]["words"] == "exact" and found["oracle"]["expected"] == 20 * (found["requests"] + 1), name
        files = found["referenced_files"] - 1  # the first is the table's own
        if "direct" in name:
            assert found["commits"] == files == found["requests"], name
        else:
            assert found["commits"] <= files < found["requests"] and ("bundled" in name or files == found["commits"])
    told = {row["policy"]: row for row in rows(done, "group")}
    assert set(told) == {"direct", "staged", "bundled"} and {row["verdict"] for row in told.values()} == {"exact"}
    assert (
        float(told["direct"]["requests_a_file [requests]"]) == 1 < float(told["staged"]["requests_a_file [requests]"])
    )
    assert float(told["staged"]["rows_over_direct [x]"]) > 0 and not told["direct"]["rows_over_direct [x]"]


def test_a_catalog_in_a_file_is_a_cell_with_its_reason(done: Sandbox) -> None:
    refused = {name: each for name, each in done.outcomes().items() if "ducklake-inlined" in name}
    assert len(refused) == 2 + 1
    assert all(each["status"] == "not-run" and "one process" in each["reason"] for each in refused.values())
    told = [row for row in rows(done, "writers") if row["system"] == "DuckLake + inlining"]
    assert len(told) == 2 and all("one process" in row["verdict_missing"] for row in told)


def test_tables_figures_claims_and_chapter_are_there(done: Sandbox) -> None:
    outcomes = rows(done, "outcomes")
    assert {row["counted_by"].partition(":")[0] for row in outcomes if row["run"]} == {"the caller"}
    for name in ("ingest-commits", "ingest-conflicts", "ingest-group"):
        assert (done.results / "figures/ingest" / f"{name}.svg").stat().st_size > 0
    claims = {each["id"]: each for each in json.loads((done.results / "claims.json").read_text())["claims"]}
    assert claims["printed-store-is-saturated"]["verdict"] == "not reproduced"
    assert claims["row-industry-loki"]["verdict"] == "not testable here"
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert (
        "Delta (delta-rs)" in said["ingest-contention"] and "do not keep what they acknowledge" in said["ingest-lost"]
    )
    assert (done.results / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert '"study":"ingest"' in (done.results / "report.html").read_text()


def test_a_folder_of_its_own_is_all_that_the_study_has() -> None:
    package = Path(__file__).parents[2] / "src/tidemark"
    general = [path for room in ("measure", "results", "systems") for path in (package / room).rglob("*.py")]
    assert not [path for path in general if "studies.ingest" in path.read_text()]
