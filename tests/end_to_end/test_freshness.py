"""The study on freshness from the configuration to the paper: Tidemark's consumer and Kafka Connect, both killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidemark.pipeline.commit_costs import POLICIES, keep_costs, read_costs
from tidemark.studies.freshness.capacity import UNKNOWN

from .conftest import MakeSandbox
from .sandbox import Sandbox

RATE, KILLS = 200, 2
SYSTEMS = {"delta-rs": {}, "connect": {"like": "kafka-connect-iceberg", "prompt": True}}
SMOKE = {
    "policies": [],
    "intervals": [],
    "rate": RATE,
    "rates": [RATE],
    "policy": "1s",
    "kills": KILLS,
    "kill_rate": RATE,
    "kill_seconds": 6,  # events arrive until both kills are done, however long that takes
    "window_seconds": 3,
    "drain_seconds": 120,
    "ramp": {"rate": RATE, "steps": 2, "step_seconds": 7},
    "upkeep": {
        "systems": ["delta-rs"],
        "policies": ["100ms merge 10 beside"],
        "rates": [RATE],
        "window_seconds": 3,
    },
}


@pytest.fixture(scope="module")
def done(make_sandbox: MakeSandbox) -> Sandbox:
    freshness = {"systems": SYSTEMS, "protocols": {"smoke": SMOKE}, "warm": 50}
    sandbox = make_sandbox({"studies": ["freshness"], "protocol": "smoke", "freshness": freshness})
    made = sandbox.run("all")
    assert made.returncode == 0, made.stdout
    return sandbox


def rows(sandbox: Sandbox, table: str) -> dict[str, dict[str, str]]:
    return {row["system"]: row for row in sandbox.table("freshness", table)}


def test_each_event_is_stored_once_even_after_kills(done: Sandbox) -> None:
    runs = done.runs()
    assert len(runs) == 2 * 3 + 1
    for name, run in runs.items():
        kills, oracle = "kills" in name, run["oracle"]
        assert oracle["verdict"] and oracle["expected"] == 50 + run["operations"] == oracle["found"], (name, oracle)
        if "ramp" in name:
            rates = [step["rate"] for step in run["found"]["ramp"]["steps"]]
            assert rates == [RATE, 2 * RATE][: len(rates)] and run["operations"] == sum(rates) * 7
        else:
            assert run["operations"] >= RATE * (3 + 6 * KILLS) if kills else run["operations"] == RATE * 3
        assert len(run["found"]["kills"]) == (KILLS if kills else 0), name
        assert run["found"]["encoding"] == "json"
        assert "connect" not in name or 0 < run["found"]["look_cpu_s"] < 0.5, "the catalog's server answers the reader"
    told = rows(done, "freshness-kills")
    assert {row["verdict"] for row in told.values()} == {"each event once"}
    assert {row["kills"] for row in told.values()} == {str(KILLS)}
    assert not list(done.work.iterdir()) and not done.left_running()


def test_ages_and_costs_are_reported_for_consumer_and_pipeline_alike(done: Sandbox) -> None:
    told = rows(done, "freshness")
    assert set(told) == {"Delta (delta-rs)", "connect"}
    for row in told.values():
        median, oldest = float(row["seen_p50 [s]"]), float(row["seen_max [s]"])
        assert 0 < median <= float(row["seen_p99 [s]"]) <= oldest
        assert float(row["committed_p50 [s]"]) <= oldest and float(row["commits [commits/s]"]) > 0
        assert float(row["cpu [CPU-s]"]) > 0 and float(row["files [files]"]) > 0
    for figure in ("cost", "lag"):
        assert (done.results / f"figures/freshness/freshness-{figure}.svg").stat().st_size > 0
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert "each event is in the table once" in said["freshness-killed"]
    assert (done.results / "paper.pdf").read_bytes().startswith(b"%PDF")


def test_rate_is_doubled_while_the_lag_does_not_grow(done: Sandbox) -> None:
    found = done.table("freshness", "freshness-steps")
    steps = [(row["system"], float(row["rate [events/s]"]), row) for row in found]
    assert {(system, RATE) for system in ("Delta (delta-rs)", "connect")} <= {step[:2] for step in steps}
    for _, rate, row in steps:
        assert float(row["events"]) == rate * 7 and row["verdict"]
        assert float(row["cpu [CPU-s]"]) > 0 and float(row["files [files]"]) > 0
    told = rows(done, "freshness-capacity")
    assert set(told) == {"Delta (delta-rs)", "connect"}
    for row in told.values():
        missing = row.get("capacity_missing", "")
        assert (
            "the lag grows" in missing
            or UNKNOWN in missing
            or (round(float(row["capacity [events/s]"])) in (RATE, 2 * RATE))
        )
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert "doubled step by step" in said["freshness-capacity"]


def test_tables_are_read_as_streamed_and_after_maintenance(done: Sandbox) -> None:
    told = [(row["system"], row["state"], row) for row in done.table("freshness", "freshness-reads")]
    assert sorted((system, state) for system, state, _ in told) == [
        ("Delta (delta-rs)", "after compact, vacuum and checkpoint"),
        ("Delta (delta-rs)", "as streamed"),
        ("connect", "after expire"),
        ("connect", "as streamed"),
    ]
    for _, _, row in told:
        assert int(row["commits"]) > 0 and int(row["files"]) > 0
        assert min(float(row[f"{what}_{which} [s]"]) for what in ("count", "sum") for which in ("first", "again")) > 0


def test_upkeep_beside_the_consumer_is_part_of_what_a_policy_costs(done: Sandbox) -> None:
    (row,) = done.table("freshness", "freshness-upkeep")
    assert row["upkeep"] == "merge after 10 commits by a process beside the writer"
    assert (row["verdict"], row["beaten"], row["operations"]) == ("each event once", "no other", "compact")
    assert int(row["calls"]) >= 1 and row["failed"] == "0" and int(row["refused"]) >= 0 and int(row["files"]) > 0
    for key in ("seen_p50 [s]", "seen_p99 [s]", "stall [s]", "longest_call [s]", "cpu [CPU-s]", "cpu_upkeep [%]",
                "peak [MB]", "peak_upkeep [MB]"):  # fmt: skip
        assert float(row[key]) > 0, key
    figures = json.loads((done.results / "figures/index.json").read_text())["figures"]
    (notes,) = (figure["notes"] for figure in figures if figure["name"] == "freshness-frontier")
    assert any("Hollow: pipelines" in note and "connect every 1 s" in note for note in notes), notes
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert "1 of 1 policies are not beaten" in said["freshness-upkeep"]


def test_policies_that_are_kept_are_those_of_the_results(done: Sandbox, tmp_path: Path) -> None:
    (kept,) = keep_costs(done.results, tmp_path)
    assert kept == tmp_path / POLICIES
    found, place = read_costs(tmp_path, upkeep=True)
    (policy,) = found.policies
    (row,) = done.table("freshness", "freshness-upkeep")
    assert place == kept and not found.costs and not found.ages
    assert policy.stall_s == pytest.approx(float(row["stall [s]"]), rel=1e-3)


def test_worker_listens_on_loopback_only_and_reports_its_version(done: Sandbox) -> None:
    (run,) = (
        run for name, run in done.runs().items() if "/connect/" in name and not {"kills", "ramp"} & set(name.split("-"))
    )
    assert run["versions"]["Kafka Connect (prompt)"] == "4.1.0"
    logs = list(done.results.glob("runs/freshness/connect/*/*/logs/kafka-connect-prompt.log"))
    assert logs and all("HTTP://127.0.0.1:" in path.read_text().upper() for path in logs)
