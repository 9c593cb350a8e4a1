"""The study of many writers runs from the configuration to the paper, on real servers, and shows which lose rows."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from tidemark.machine import power
from tidemark.results.reference.run_files import meanings
from tidemark.studies.ingest.record import FLUSHED
from tidemark.studies.ingest.window.ambiguity import Attempted
from tidemark.studies.ingest.window.one_client import Added, AtAge
from tidemark.systems.base import FULL

from .conftest import MakeSandbox
from .sandbox import Sandbox, finish, words_of

SNAKEMAKE = "tidemark.pipeline.launch"
WRITERS = 4
COUNTED = ("plan", "read", "commit")  # operations at each age
SYSTEMS = {"delta-rs": {}, "iceberg-duckdb": {}, "ducklake-inlined": {}}
GROUP = {"systems": ["delta-rs"], "shapes": ["20x8"], "policies": ["direct", "staged", "bundled"]}
TAIL = {"systems": ["delta-rs"], "targets": ["one", "staged"], "closed_seconds": 1, "window_seconds": 2}
RTTS = (0, 15)
PACED = {"systems": ["delta-rs"], "writers": [WRITERS], "every_seconds": [1], "commits": 3}
SMOKE = {
    "writers": [WRITERS],
    "own": [WRITERS],
    "rtts": list(RTTS),
    "pruned": [10],
    "added": [2],
    "runs": 2,
    "window_seconds": 1,
    "paced": PACED,
}
SMOKE |= {"kills": 1, "group": GROUP, "tail": TAIL, "maintenance": {"systems": ["delta-rs"], "window_seconds": 3}}
SMOKE |= {"cut": {"systems": ["delta-rs"], "window_seconds": 2}}
SMOKE |= {"ambiguity": {"systems": ["iceberg-duckdb"], "faults": ["before"], "retries": ["check"], "hits": 2}}
SMOKE |= {"ages": {"systems": ["delta-rs", "ducklake-inlined"], "ages": [5, 20], "window_seconds": 60}}
CUTS = 0 if power.why_not() else 2  # with the default durability, and with everything on the disk


@pytest.fixture(scope="module")
def made(make_sandbox: MakeSandbox) -> tuple[Sandbox, int]:
    """Return the sandbox when everything is made, and the most threads that Snakemake had by then."""
    ingest = {"systems": SYSTEMS, "protocols": {"smoke": SMOKE}, "rows": 20, "uncounted": 2}
    sandbox = make_sandbox({"studies": ["ingest"], "protocol": "smoke", "ingest": ingest})
    process, most = sandbox.start("all"), 0
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(finish, process)
        while not ended.done():
            with suppress(psutil.Error):  # it ended
                threads = [each.num_threads() for each in sandbox.processes() if SNAKEMAKE in words_of(each)]
                most = max(most, *threads, 0)
            time.sleep(1)
    assert process.returncode == 0, ended.result().stdout
    return sandbox, most


@pytest.fixture(scope="module")
def done(made: tuple[Sandbox, int]) -> Sandbox:
    return made[0]


def test_snakemake_waits_while_a_series_is_measured(made: tuple[Sandbox, int]) -> None:
    """Count its threads: if it limits jobs a second, each job that ended leaves one that looks at all waiting jobs."""
    sandbox, most = made
    assert 1 <= most < len(sandbox.outcomes()) / 2


def test_every_run_is_checked_and_lossless_runs_are_exact(done: Sandbox) -> None:
    runs = done.runs()
    assert len(runs) == 2 * 2 * (2 + len(RTTS) + 1) + 2 + 2 + 3 * 2 + 2 * 2 + 2 + 2 + 1 + 1 + 2 + CUTS
    for name, run in runs.items():
        others = (
            "20x8",
            "/prune-",
            "/evolve-",
            "/tail-staged",
            "/maintained-",
            "/left-",
            "/cut-",
            "/front-",
            "/answers-",
            "/ages-",
        )
        if any(mode in name for mode in others):
            continue
        oracle, tables = run["found"]["oracle"], WRITERS if "/own-" in name else 1
        assert run["oracle"]["applicable"] and run["oracle"]["verdict"] is (oracle["words"] == "exact")
        assert oracle["expected"] == 20 * (run["found"]["commits"] + tables)
        assert oracle["found"] == oracle["expected"] - oracle["lost"] + 20 * oracle["done"]
        if "iceberg-duckdb/one-" not in name and "iceberg-duckdb/faults-" not in name:
            assert oracle["words"] == "exact", (name, oracle)
    assert not list(done.work.iterdir()) and not done.left_running()


def test_writers_with_an_interval_begin_the_commits_that_are_due_and_no_others(done: Sandbox) -> None:
    runs = {run["run"]: run["found"] for name, run in done.runs().items() if f"/paced-{WRITERS}-1/" in name}
    for number, found in runs.items():
        assert found["schedule"]["scheduled"] == 3 * WRITERS and found["schedule"]["not_begun"] == 0
        assert not found["schedule"]["overloaded"]
        assert found["commits"] == 3 * WRITERS + (2 * WRITERS if number else 0), "with the uncounted ones"
    (row,) = done.table("ingest", "ingest-paced")
    assert (row["verdict"], row["due"], row["not_begun"]) == ("exact", str(3 * WRITERS), "0")
    assert float(row["paced_p50 [ms]"]) > 0 <= float(row["conflicts [%]"]) < 100
    assert row["predicted_missing"] == "the fewest writers, which predict the others"
    assert (done.results / "figures/ingest/ingest-paced.svg").stat().st_size > 0


def test_losses_of_the_reference_catalog_are_found_and_have_no_speed(done: Sandbox) -> None:
    """Expect losses of DuckDB's commits to the endpoint for several tables, which acknowledges two on one snapshot."""
    runs = [run for name, run in done.runs().items() if f"iceberg-duckdb/one-{WRITERS}" in name]
    assert any(run["found"]["oracle"]["lost"] for run in runs), [run["found"] for run in runs]
    hot = next(run for run in runs if run["run"] == 1)
    speeds = {(row["system"], row["tables"]): row for row in done.table("ingest", "ingest-writers")}
    shown = speeds["Iceberg (DuckDB)", "one"]
    assert (shown["verdict"] == "exact") == bool(shown["commits [commits/s]"]) == hot["oracle"]["verdict"]
    for system in ("Delta (delta-rs)", "Iceberg (DuckDB)"):
        assert float(speeds[system, "one each"]["commits [commits/s]"]) > 0


def test_acknowledged_rows_are_checked_after_kills_of_writers_and_servers(done: Sandbox) -> None:
    found = {name.split("/")[2]: run["found"] for name, run in done.runs().items() if "/faults-2/" in name}
    assert set(found) == {"delta-rs", "iceberg-duckdb"}
    titles = {name: [kill["title"] for kill in each["faults"]["kills"]] for name, each in found.items()}
    assert titles["delta-rs"] == ["a writer"]
    assert titles["iceberg-duckdb"] == ["a writer", "Iceberg REST catalog", "PostgreSQL"]
    for kill in (kill for each in found.values() for kill in each["faults"]["kills"]):
        assert kill["acked"] > 0 and 0 < kill["started_s"] < kill["down_s"], kill
        assert kill["unknown"] == kill["done"] + kill["not_done"] and kill["said"] == ""
    told = {(row["system"], row["victim"]): row for row in done.table("ingest", "ingest-faults") if row["kills"]}
    delta = told["Delta (delta-rs)", "a writer"]
    assert delta["verdict"] == "holds" and float(delta["at_most"]) == pytest.approx(0.95)
    assert delta["lost"] == delta["lost_before"] == delta["doubled"] == delta["partial"] == "0"
    assert len(told) == 5 and all(float(row["down [s]"]) > 0 for row in told.values())
    assert (done.results / "figures/ingest/ingest-faults.svg").stat().st_size > 0


def test_buffer_process_is_killed_with_requests_waiting(done: Sandbox) -> None:
    (run,) = [run for name, run in done.runs().items() if "/front-" in name]
    found = run["found"]
    (kill,) = found["faults"]["kills"]
    assert found["oracle"]["words"] == "exact" and found["oracle"]["expected"] == 50 * found["requests"] + 50
    assert 0 < found["commits"] < found["requests"] and kill["unknown"] == kill["done"] + kill["not_done"] == 32
    told = {(row["system"], row["victim"]): row for row in done.table("ingest", "ingest-faults")}
    row = told["Delta (delta-rs)", "the buffer's process"]
    assert row["verdict"] == "holds" and row["lost"] == row["doubled"] == "0" and float(row["down [s]"]) > 0


def test_data_on_the_disk_at_acknowledgement_is_measured(done: Sandbox) -> None:
    told = {row["system"]: row for row in done.table("ingest", "ingest-durability")}
    delta, iceberg = told["Delta (delta-rs)"], told["Iceberg (DuckDB)"]
    if "not measurable here" in delta["level_missing"]:
        pytest.skip(delta["level_missing"])
    assert (delta["level"], iceberg["level"]) == ("D0", "D1")
    # The kernel may have written a part by itself before the check; a client that syncs leaves nothing.
    for row, files in ((delta, "data"), (delta, "other"), (iceberg, "data")):
        assert float(row[f"dirty_{files} [%]"]) >= 50
    assert delta["dirty_log [%]"] == "" and float(iceberg["dirty_log [%]"]) < 100
    assert int(delta["data_files"]) == int(iceberg["data_files"]) == 10


def test_power_cut_loses_acknowledged_rows_unless_everything_is_flushed(done: Sandbox) -> None:
    told = {row["asked"]: row for row in done.table("ingest", "ingest-power-cut")}
    reasons = {each["reason"] for name, each in done.outcomes().items() if "/cut-2" in name and each["reason"]}
    if not CUTS:
        assert len(reasons) == 1 and "no power can be cut here" in reasons.pop()
        pytest.skip(f"{power.why_not()}")
    assert not reasons and set(told) == {"default", "full"}
    default, full = told["default"], told["full"]
    (run,) = [run for name, run in done.runs().items() if "/cut-2" in name and FULL not in name]
    flushed = FLUSHED in run["marks"]  # by the sync(2) of another test's pipeline
    assert int(default["acked"]) > 0 and (flushed or (int(default["lost"]) > 0 and default["verdict"] != "holds"))
    assert int(full["acked"]) > 0 and full["verdict"] == "holds"
    assert full["lost"] == full["synced_lost"] == full["doubled"] == full["partial"] == "0"
    assert str(done.work) not in Path("/proc/self/mountinfo").read_text()


def test_rows_are_there_once_after_their_commits_were_lost(done: Sandbox) -> None:
    ((name, run),) = [(name, run) for name, run in done.runs().items() if "/answers-" in name]
    operations = pq.read_table(done.results / name / "operations.parquet")
    assert set(operations.column_names) == set(meanings(Attempted)) and operations["copies"].to_pylist() == [1, 1]
    (cell,) = run["found"]["ambiguity"]["cells"]
    assert (cell["fault"], cell["retry"], cell["hits"], cell["acked_once"], cell["harmed"]) == (
        "before",
        "check",
        2,
        2,
        0,
    )
    (row,) = done.table("ingest", "ingest-ambiguity")
    assert (row["server"], row["verdict"], row["safe"]) == ("Iceberg REST catalog", "each row once", "check")
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert "has each row once in Iceberg (DuckDB)" in said["ingest-safe"]
    assert (done.results / "figures/ingest/ingest-ambiguity.svg").stat().st_size > 0


def test_acknowledged_requests_of_a_front_are_stored_and_grouped_ones_share_files(done: Sandbox) -> None:
    runs = {name: run for name, run in done.runs().items() if "20x8" in name}
    for name, run in runs.items():
        found = run["found"]
        assert found["oracle"]["words"] == "exact" and found["oracle"]["expected"] == 20 * (found["requests"] + 1), name
        files = found["referenced_files"] - 1  # the first is the table's own
        if "direct" in name:
            assert found["commits"] == files == found["requests"], name
        else:
            assert found["commits"] <= files < found["requests"] and ("bundled" in name or files == found["commits"])
    told = {row["policy"]: row for row in done.table("ingest", "ingest-group")}
    assert set(told) == {"direct", "staged", "bundled"} and {row["verdict"] for row in told.values()} == {"exact"}
    assert (
        float(told["direct"]["requests_a_file [requests]"]) == 1 < float(told["staged"]["requests_a_file [requests]"])
    )
    assert float(told["staged"]["rows_over_direct [x]"]) > 0 and not told["direct"]["rows_over_direct [x]"]


def test_commit_to_a_more_distant_store_takes_longer(done: Sandbox) -> None:
    far = {(row["system"], row["rtt [ms]"]): row for row in done.table("ingest", "ingest-storage") if row["rtt [ms]"]}
    assert len(far) == 2 * len(RTTS) and all(row["verdict"] == "exact" for row in far.values())
    assert (done.results / "figures/ingest/ingest-distance.svg").stat().st_size > 0
    # A commit takes about seven round trips; the other system has too few commits in such a window on a busy machine.
    rows = [far["Delta (delta-rs)", str(rtt)] for rtt in RTTS]
    missing = [row["commit_p50_missing"] for row in rows if not row["commit_p50 [ms]"]]
    assert all(why.startswith(("needs 2 commits", "no commit was acknowledged inside")) for why in missing), missing
    if missing:
        pytest.skip(f"this machine was too busy for a window of a second: {missing}")
    times = [float(row["commit_p50 [ms]"]) for row in rows]
    assert times[1] - times[0] > RTTS[1], times
    assert float(rows[1]["trips"]) == pytest.approx((times[1] - times[0]) / RTTS[1])


def test_files_that_a_filter_skips_are_counted(done: Sandbox) -> None:
    told = {row["system"]: row for row in done.table("ingest", "ingest-pruning")}
    delta, needed = told["Delta (delta-rs)"], told["(files with rows that fit)"]
    for name in ("all_rows", "region", "integer", "one_of_two", "region_and_time", "one_hour"):
        assert delta[name] == needed[name], name
    assert delta["text"] == "10" and needed["text"] == "1" and delta["verdict"] == "exact"


def test_columns_are_added_without_a_rewrite(done: Sandbox) -> None:
    told = {row["system"]: row for row in done.table("ingest", "ingest-evolution")}
    row = told["Delta (delta-rs)"]
    assert row["verdict"] == "exact" and float(row["files_rewritten_for_a_column [files]"]) == 0
    assert float(row["add_a_column [ms]"]) > 0 and "Metadata changed" in row["earlier_writer"]
    assert "cannot add a column" in told["Iceberg (DuckDB)"]["verdict_missing"]
    assert "one process" in told["DuckLake + inlining"]["verdict_missing"]
    (name, *_) = (name for name in done.runs() if "delta-rs/evolve-" in name)
    operations = pq.read_table(done.results / name / "operations.parquet")
    assert set(operations.column_names) == set(meanings(Added)) and operations["rewritten"].to_pylist() == [0, 0]


def test_tables_are_measured_at_each_age(done: Sandbox) -> None:
    runs = {name: run for name, run in done.runs().items() if "/ages-5-20/" in name}
    assert len(runs) == 2
    for name, run in runs.items():
        assert run["oracle"]["verdict"] and run["oracle"]["commits"] == 30, run["oracle"]
        assert run["found"]["oracle"]["words"] == "exact" and run["found"]["ended"] == ""
        operations = pq.read_table(done.results / name / "operations.parquet")
        assert set(operations.column_names) == set(meanings(AtAge))
        counted = Counter(zip(operations["age"].to_pylist(), operations["what"].to_pylist(), strict=True))
        assert counted == {(age, what): {"commit": 10}.get(what, 3) for age in (5, 20) for what in COUNTED}
    told = {(row["system"], row["age"]): row for row in done.table("ingest", "ingest-ages")}
    assert set(told) == {(system, age) for system in ("Delta (delta-rs)", "DuckLake + inlining") for age in ("5", "20")}
    for row in told.values():
        assert row["verdict"] == "exact" and min(float(row[f"{each} [ms]"]) for each in COUNTED) > 0
    old, new = told["Delta (delta-rs)", "20"], told["Delta (delta-rs)", "5"]
    assert "the format's files" in old["made"] and int(old["metadata_files"]) > int(new["metadata_files"]) > 5
    assert int(old["data_files"]) == 20 and told["DuckLake + inlining", "20"]["made"] == "its client"
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert "Delta (delta-rs)" in said["ingest-ages"] and "at 20" in said["ingest-ages"]


def test_requests_follow_a_schedule_at_a_share_of_the_closed_loop_rate(done: Sandbox) -> None:
    runs = {name: run for name, run in done.runs().items() if "/tail-" in name}
    for name, run in runs.items():
        found, closed, schedule = run["found"], run["found"]["closed"], run["found"]["schedule"]
        assert found["oracle"]["words"] == "exact", (name, found["oracle"])
        assert found["oracle"]["expected"] == 20 * (found["requests"] + 1)
        assert closed["requests_per_s"] == pytest.approx(len(closed["response_ns"]) / closed["seconds"])
        assert schedule["requests_per_s"] == pytest.approx(closed["requests_per_s"] / 2)
        expected = 2 * schedule["requests_per_s"]
        assert schedule["scheduled"] == pytest.approx(expected, abs=5 * expected**0.5 + 1)
        assert run["operations"] == schedule["scheduled"] - schedule["not_begun"]
        assert found["requests"] > run["operations"] and (schedule["overloaded"] or not schedule["not_begun"])
        times = pq.read_table(done.results / name / "operations.parquet").to_pydict()
        assert min(times["wait_ns"]) >= 0 and all(map(int.__ge__, times["response_ns"], times["elapsed_ns"]))
    told = {row["target"]: row for row in done.table("ingest", "ingest-tail")}
    assert set(told) == {"one", "staged"} and {row["verdict"] for row in told.values()} == {"exact"}
    for row in told.values():
        assert float(row["response_max [ms]"]) >= float(row["response_p50 [ms]"]) > 0
    for name in ("ingest-tail", "ingest-quantiles"):
        assert (done.results / "figures/ingest" / f"{name}.svg").stat().st_size > 0


def test_table_is_maintained_while_writers_write_and_stays_exact(done: Sandbox) -> None:
    found = {name.split("/")[3]: run["found"] for name, run in done.runs().items() if "-3/" in name}
    maintained, left = found["maintained-3"], found["left-3"]
    assert {call["operation"] for call in maintained["maintenance"]["calls"]} == {"compact", "vacuum", "checkpoint"}
    assert not left["maintenance"]["calls"] and left["maintenance"]["reads"]["rows"]
    for each in (maintained, left):
        assert each["oracle"]["words"] == "exact" and each["oracle"]["expected"] == 5 * (each["commits"] + 1)
        assert len(each["maintenance"]["sizes"]) >= 2
    told = {row["operation"]: row for row in done.table("ingest", "ingest-maintenance")}
    assert set(told) == {"all of it", "compact", "vacuum", "checkpoint", "none"}
    assert int(told["all of it"]["files_last"]) < int(told["none"]["files_last"])
    assert float(told["compact"]["median [s]"]) > 0 and float(told["none"]["rate [commits/s]"]) > 0
    assert (done.results / "figures/ingest/ingest-maintenance.svg").stat().st_size > 0


def test_catalog_in_a_file_is_reported_as_not_run_with_its_reason(done: Sandbox) -> None:
    of_system = {name: each for name, each in done.outcomes().items() if "ducklake-inlined" in name}
    refused = {name: each for name, each in of_system.items() if "ages-5-20" not in name}
    assert len(refused) == 2 + 1 + 1
    assert all(each["status"] == "not-run" and "one process" in each["reason"] for each in refused.values())
    told = [row for row in done.table("ingest", "ingest-writers") if row["system"] == "DuckLake + inlining"]
    assert len(told) == 2 and all("one process" in row["verdict_missing"] for row in told)


def test_tables_figures_claims_and_chapter_exist(done: Sandbox) -> None:
    outcomes = done.table("ingest", "ingest-outcomes")
    assert {row["counted_by"].partition(":")[0] for row in outcomes if row["run"]} == {"the caller"}
    for name in ("ingest-commits", "ingest-conflicts", "ingest-group"):
        assert (done.results / "figures/ingest" / f"{name}.svg").stat().st_size > 0
    claims = {each["id"]: each for each in json.loads((done.results / "claims.json").read_text())["claims"]}
    assert claims["printed-store-is-saturated"]["verdict"] == "not reproduced"
    assert claims["row-industry-loki"]["verdict"] == "not testable here"
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert "Delta (delta-rs)" in said["ingest-group-staged"]
    assert "did not keep what was acknowledged" in said["ingest-lost"]
    assert said["ingest-open-closed"].startswith(("The 99th percentile by a schedule", "These runs do not show it"))
    assert (done.results / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert '"study":"ingest"' in (done.results / "report.html").read_text()


def test_general_code_does_not_mention_the_study() -> None:
    package = Path(__file__).parents[2] / "src/tidemark"
    general = [path for room in ("measure", "results", "systems") for path in (package / room).rglob("*.py")]
    assert not [path for path in general if "studies.ingest" in path.read_text()]
