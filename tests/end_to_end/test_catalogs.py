"""The study on catalogs runs from the configuration to the paper, on real servers, and survives a killed one."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tidemark.analysis.text_blocks import NOT_SHOWN

from .conftest import MakeSandbox
from .sandbox import MEASURE_ONLY, Sandbox, finish, wait_for

SYSTEMS: dict[str, dict[str, Any]] = {
    "null-catalog": {},
    "rest-jdbc-postgres": {},
    "rest-jdbc-sqlite": {},
    "rest-memory": {},
    "far": {"like": "rest-jdbc-postgres", "title": "Far", "database_rtt_ms": 1},
}
SIZES = {"depth": 3, "users": [1, 4], "runs": 2, "window_seconds": 60, "mixed_requests": 30, "open_seconds": 0.5}
SIZES |= {"churns": 8, "kills": 1}
SMOKE = {**SIZES, "sequential_rate": 20, "concurrent_rate": 40, "hot_updates": 12, "appends": 6, "races": 2}


def configured(systems: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    catalogs = {"systems": systems, "protocols": {"smoke": sizes}}
    # Measured once, whatever else is running: no test here looks at times.
    once = {"retries": 0}
    return {"studies": ["catalogs"], "protocol": "smoke", "disturbance": once, "catalogs": catalogs}


@pytest.fixture(scope="module")
def done(make_sandbox: MakeSandbox) -> Sandbox:
    sandbox = make_sandbox(configured(SYSTEMS, SMOKE))
    made = sandbox.run("all")
    assert made.returncode == 0, made.stdout
    return sandbox


def test_every_run_has_a_verdict_and_uses_no_dataset(done: Sandbox) -> None:
    runs = done.runs()
    assert len(runs) == len(SYSTEMS) * 2 * 2
    for name, run in runs.items():
        oracle = run["oracle"]
        assert oracle["applicable"] is ("null" not in name) and oracle["verdict"] is True, (
            name,
            run["found"]["oracle"],
        )
        assert run["dataset"] is None and run["config"]["dataset_directory"] == ""
        assert oracle["found"] == oracle["expected"] > 0 or not oracle["applicable"]
        assert "envs/tools/locust.lock" in run["lock_digests"] and run["found"]["in_flight"] <= 50
        assert [step["requests"] for step in run["found"]["steps"]][:3] == [7, 8, 8]
    assert not (done.root / "data").exists()
    assert not list(done.work.iterdir()) and not done.left_running()


def test_tables_distinguish_outcomes(done: Sandbox) -> None:
    outcomes = done.table("catalogs", "catalog-outcomes")
    assert {row["system"] for row in outcomes if row["oracle"] == "holds"} >= {
        "Reference server, PostgreSQL",
        "Reference server, SQLite",
    }
    for row in outcomes:
        assert row["failed"] == row["cascaded"] == "0", row
        assert row["oracle"] == ("keeps nothing" if row["system"].startswith("Null") else "holds"), row
    raced = [
        row
        for row in done.table("catalogs", "catalog-contention")
        if row["users"] == "4" and not row["system"].startswith("Null")
    ]
    assert raced and all(row["winners"] == row["names"] == "2" for row in raced)
    sequential = done.table("catalogs", "catalog-sequential")
    assert {"EclipseLink-PG (the report's)", "Reference server, SQLite"} <= {row["system"] for row in sequential}
    cost = [row for row in done.table("catalogs", "catalog-cost") if row["system"] == "Reference server, PostgreSQL"]
    created = next(row for row in cost if row["step"] == "create table")
    assert float(created["transactions"]) >= 1 and float(created["wal_bytes [bytes]"]) > 0
    assert float(created["statements"]) >= 1, "counted by the database itself"
    in_file = next(row for row in done.table("catalogs", "catalog-cost") if row["system"] == "Reference server, SQLite")
    assert in_file["statements"] == "" and "no server that counts" in in_file["statements_missing"]
    promised = {row["system"]: row["settings"] for row in done.table("catalogs", "catalog-durability")}
    assert "synchronous_commit = on" in promised["Reference server, PostgreSQL"]
    assert "journal_mode = delete" in promised["Reference server, SQLite"]


def test_killed_servers_and_databases_keep_acknowledged_changes(done: Sandbox) -> None:
    """Check the kills of the one series that has any; they follow its windows, whose numbers are recorded by then."""
    crashes = {name: run["found"]["crash"] for name, run in done.runs().items() if run["found"]["crash"]}
    assert len(crashes) == len(SYSTEMS) and all("users-4" in name and name.endswith("run-1") for name in crashes)
    found = {(row["system"], row["killed"]): row for row in done.table("catalogs", "catalog-crash")}
    killed = {key: row for key, row in found.items() if row["kills"]}
    postgres, sqlite = "Reference server, PostgreSQL", "Reference server, SQLite"
    assert set(killed) == {
        (postgres, "PostgreSQL"),
        (postgres, "Iceberg REST catalog over PostgreSQL"),
        (sqlite, "Iceberg REST catalog over SQLite"),
        ("Far", "PostgreSQL"),
        ("Far", "Iceberg REST catalog over PostgreSQL"),
    }
    for row in killed.values():
        assert row["verdict"] == "holds" and row["lost"] == row["lost_before"] == "0", row
        assert int(row["acknowledged"]) + int(row["unknown"]) > 0 and float(row["answered [s]"]) > 0
        assert float(row["at_most"]) == pytest.approx(0.95) and row["telling"] == "1"
    # Its start over an existing database leaves a connection reading permanently: others' writes find it locked.
    stuck = killed[sqlite, "Iceberg REST catalog over SQLite"]
    assert int(stuck["again"]) == 8 > 2 * int(stuck["again_acked"])
    assert killed[postgres, "PostgreSQL"]["again"] == "8"
    excused = {system for (system, _), row in found.items() if row["killed_missing"]}
    assert len(excused) == 1 and "in memory" in excused.pop()


def test_database_round_trips_add_to_the_latency(done: Sandbox) -> None:
    """Check that each statement waits for a round trip; how much longer all of it takes depends on other processes."""
    found = {row["request"]: row for row in done.table("catalogs", "catalog-distance") if row["users"] == "1"}
    created = found["Create table"]
    assert created["near_rtt [ms]"] == "0" and created["far_rtt [ms]"] == "1"
    near, far_ms, statements = (float(created[name]) for name in ("near [ms]", "far [ms]", "statements"))
    assert statements >= 2 and far_ms > statements
    assert float(created["round_trips"]) == pytest.approx(far_ms - near)
    (far, *_) = [run for name, run in done.runs().items() if "far" in name]
    settings = dict(far["system"]["settings"])
    assert settings["default_transaction_isolation"] == "read committed"
    assert any("1 ms of a round trip" in note for note in far["system"]["notes"])


def test_churned_tables_are_created_renamed_and_dropped(done: Sandbox) -> None:
    churned = done.table("catalogs", "catalog-churn")
    assert "Reference server, PostgreSQL" in {row["system"] for row in churned}
    for row in churned:
        assert row["created"] == row["renamed"] == "8" and row["dropped"] == "4", row
        assert row["twice"] == "0" and row["undead"] in ("", "0") and row["unknown"] == row["refused"] == "0"


def test_report_is_compared_with_its_own_appendix(done: Sandbox) -> None:
    claims = {each["id"]: each for each in json.loads((done.results / "claims.json").read_text())["claims"]}
    assert {claim["study"] for claim in claims.values()} == {"catalogs"}
    assert claims["printed-write-50"]["verdict"] == claims["printed-write-99"]["verdict"] == "not reproduced"
    assert claims["row-sequential-old-table"]["verdict"] == "not testable here"
    assert "for comparison, not judged: rest-jdbc-postgres" in claims["row-sequential-old-table"]["why"]
    for name, claim in claims.items():
        untested = claim["verdict"] in ("not tested yet", "not testable here")
        assert (claim["ours"] is None) == untested and bool(claim["why"]) >= untested, name


def test_study_has_a_separate_paper(done: Sandbox) -> None:
    values = json.loads((done.results / "paper/values.json").read_text())
    assert [each["study"] for each in values["chapters"]] == ["catalogs"]
    said = {name: text for name, text in values["sentences"].items() if name.startswith("catalogs-")}
    assert len(said) == 6 and not any(NOT_SHOWN in text for text in said.values()), said
    assert (done.results / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert values["synthetic"] is False
    assert '"study":"catalogs"' in (done.results / "report.html").read_text()


def test_database_has_one_row_per_request(done: Sandbox) -> None:
    import duckdb

    with duckdb.connect(done.results / "metrics.duckdb", read_only=True) as connection:
        query = "SELECT count(*), count(DISTINCT kind), min(response_ns) FROM operations"
        count, kinds, least = connection.execute(query).fetchone() or (0, 0, 0)
    assert count == sum(run["operations"] for run in done.runs().values()) and kinds == 18 and least > 0


@pytest.mark.long(reason="tests/end_to_end/test_faults.py kills a catalog in a window, and repeats series that failed")
def test_killed_server_gives_one_message_and_its_series_is_measured_again(make_sandbox: MakeSandbox) -> None:
    """Kill it in the middle of a window; the next command measures that series, and only it, once more."""
    long = {**SMOKE, "users": [2], "runs": 1, "open_seconds": 30, "sequential_rate": 20, "concurrent_rate": 20}
    sandbox = make_sandbox(configured({"rest-jdbc-sqlite": {}}, long))
    process = sandbox.start("all", *MEASURE_ONLY)
    wait_for("an open window", lambda: list(sandbox.work.glob("*/run-0/order.json")) and in_play(sandbox), process)
    os.kill(sandbox.server("LoopbackCatalogServer").pid, signal.SIGKILL)
    ended = finish(process)
    assert ended.returncode != 0
    (outcome,) = sandbox.outcomes().values()
    assert outcome["status"] == "failed" and "killed by SIGKILL" in outcome["reason"]
    assert ended.stdout.count("killed by SIGKILL") <= 3
    assert not sandbox.left_running()
    sandbox.configure(configured({"rest-jdbc-sqlite": {}}, {**long, "open_seconds": 1}))
    again = sandbox.run("all", *MEASURE_ONLY)
    assert again.returncode == 0, again.stdout
    assert [each["status"] for each in sandbox.outcomes().values()] == ["complete"]


def in_play(sandbox: Sandbox) -> bool:
    """Return True if metadata files are being written: the window has been open for some requests."""
    return len(list(sandbox.work.glob("*/iceberg-rest-sqlite/warehouse/**/*.metadata.json"))) > 4


def test_general_code_does_not_mention_the_study() -> None:
    repository = Path(__file__).parents[2]
    general = [
        *(repository / "src/tidemark/measure").rglob("*.py"),
        *(repository / "src/tidemark/results").rglob("*.py"),
    ]
    assert not [path for path in general if "catalogs" in path.read_text()]
