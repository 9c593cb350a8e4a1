"""The study on complete tables from the configuration to the paper, on a real HDFS."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from .conftest import MakeSandbox
from .sandbox import MEASURE_ONLY, Sandbox, finish, wait_for

REPETITIONS = 3
SYSTEMS = {"delta-rs-hdfs": {}, "delta-rs-local": {}, "delta-rs-local-before": {}, "null-tables": {}}
SMOKE = {"tables": {"supplier_sf1": REPETITIONS}, "cores": [1], "repeats": 1}


@pytest.fixture(scope="module")
def done(make_sandbox: MakeSandbox) -> Sandbox:
    deltars = {"systems": SYSTEMS, "protocols": {"smoke": SMOKE}}
    sandbox = make_sandbox({"studies": ["deltars"], "protocol": "smoke", "deltars": deltars})
    made = sandbox.run("all")
    assert made.returncode == 0, made.stdout
    return sandbox


def test_each_table_holds_the_written_rows(done: Sandbox) -> None:
    runs = done.runs()
    assert len(runs) == len(SYSTEMS)
    for name, run in runs.items():
        assert run["operations"] == 2 * REPETITIONS, name
        assert run["found"]["data"]["rows"] == 10_000 and run["found"]["data"]["name"] == "supplier_sf1"
        oracle = run["oracle"]
        assert oracle["verdict"]
        # Each table, and the last result that the client read.
        assert oracle["expected"] == oracle["found"] == (0 if "null" in name else (REPETITIONS + 1) * 10_000)
    (hdfs,) = (run for name, run in runs.items() if "hdfs" in name)
    assert hdfs["versions"]["HDFS NameNode"] == "3.4.2" and "WebHDFS" in hdfs["oracle"]["reader"]
    (before,) = (run for name, run in runs.items() if "before" in name)
    assert before["versions"]["deltalake (deltalake-before)"] == "0.18.2" and "deltalake" not in before["versions"]
    assert not list(done.work.iterdir()) and not done.left_running()


def test_times_are_shown_next_to_those_of_the_thesis(done: Sandbox) -> None:
    told = done.table("deltars", "deltars-writes")
    ours = {row["system"]: float(row["mean [s]"]) for row in told if "thesis" not in row["system"]}
    assert 0 < ours["Null"] < ours["delta-rs, local disk"] < ours["delta-rs, HDFS"]
    printed = [row for row in told if row["system"] == "delta-rs HopsFS (the thesis's)" and row["cores"] == "1"]
    assert [float(row["mean [s]"]) for row in printed] == [1.25088]
    # HDFS makes a client retry, and the client sleeps before it does: that is most of the time that HDFS adds.
    closes = done.table("deltars", "deltars-closes")
    assert sum(int(row["n"]) for row in closes) == REPETITIONS
    (sixty,) = [row for row in done.table("deltars", "deltars-limit") if row["data"] == "lineitem_sf10"]
    assert float(sixty["read_there [µs]"]) == pytest.approx(33.69772 / 5)
    assert {row["verdict"] for row in done.table("deltars", "deltars-oracle")} == {"holds", "nothing is kept"}


def test_results_reach_the_paper(done: Sandbox) -> None:
    for name in ("deltars-write", "deltars-read", "deltars-closes"):
        assert (done.results / f"figures/deltars/{name}.svg").stat().st_size > 0
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert "each table held what was written" in said["deltars-oracle"]
    claims = {each["id"]: each for each in json.loads((done.results / "claims.json").read_text())["claims"]}
    assert claims["deltars-printed-read-60m"]["verdict"] == "not reproduced"
    assert claims["deltars-legacy-minute"]["verdict"] == "not tested yet"
    assert (done.results / "paper.pdf").read_bytes().startswith(b"%PDF")


def configured(repetitions: int) -> dict[str, Any]:
    sizes = {"tables": {"supplier_sf1": repetitions}, "cores": [1], "repeats": 1}
    deltars = {"systems": {"delta-rs-hdfs": {}}, "protocols": {"mine": sizes}}
    return {"studies": ["deltars"], "protocol": "mine", "deltars": deltars}


@pytest.mark.long(reason="tests/end_to_end/test_faults.py kills servers, tests/services/slow/test_hdfs.py a datanode")
def test_killed_datanode_ends_its_series_and_the_next_one_is_measured(done: Sandbox) -> None:
    done.configure(configured(repetitions=40))
    process = done.start("all", *MEASURE_ONLY)
    wait_for("the client", lambda: list(done.work.glob("*/run-0/client.log")), process)
    time.sleep(4)  # of about fifty seconds
    done.server("datanode.DataNode").kill()
    result = finish(process)
    (outcome,) = done.outcomes().values()
    assert result.returncode == outcome["exit_code"] == 5, result.stdout
    assert outcome["status"] == "failed" and "HDFS DataNode ended on its own (killed by SIGKILL)" in outcome["reason"]
    assert not list(done.work.iterdir()) and not done.left_running()
    done.configure(configured(repetitions=2))
    again = done.run("all", *MEASURE_ONLY)
    assert again.returncode == 0, again.stdout
