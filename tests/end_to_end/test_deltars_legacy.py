"""The legacy path of the study on complete tables, on all its servers: from rows to the figure of its time's parts."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from .conftest import MakeSandbox
from .sandbox import Sandbox

pytestmark = pytest.mark.long(reason="seven systems on HDFS, Kafka and Spark; test_deltars.py has the study")

CAP = 6_000
SYSTEMS = {
    "legacy": {},
    "legacy-capped": {"like": "legacy", "limit": CAP},
    "spark-delta-hdfs": {},
    "arrow-kafka-delta": {},
    "delta-rs-hdfs": {},
    "duckdb-delta-hdfs": {},
    "parquet-hdfs": {},
}
SMOKE = {"tables": {"supplier_sf1": 3}, "slow": {"supplier_sf1": 1}, "cores": [1], "repeats": 1}


@pytest.fixture(scope="module")
def done(make_sandbox: MakeSandbox) -> Sandbox:
    deltars = {"systems": SYSTEMS, "protocols": {"smoke": SMOKE}}
    sandbox = make_sandbox({"studies": ["deltars"], "protocol": "smoke", "deltars": deltars})
    made = sandbox.run("all")
    assert made.returncode == 0, made.stdout
    return sandbox


def test_each_sent_row_is_in_the_table_and_read_back(done: Sandbox) -> None:
    runs = {name.split("/")[2]: run for name, run in done.runs().items()}
    legacy = runs["legacy"]
    assert legacy["oracle"]["verdict"] and legacy["oracle"]["found"] == 20_000, "the table, and what was read of it"
    assert legacy["versions"]["Spark applications (Hudi)"] == "3.5.7" and legacy["versions"]["HDFS NameNode"] == "3.4.2"
    for name in ("duckdb-delta-hdfs", "parquet-hdfs"):
        assert runs[name]["oracle"]["verdict"] and runs[name]["oracle"]["found"] == 40_000
    # Systems that only write are compared by the table only.
    for name in ("spark-delta-hdfs", "arrow-kafka-delta"):
        assert runs[name]["oracle"]["verdict"] and runs[name]["oracle"]["found"] == 10_000
    assert not list(done.work.iterdir()) and not done.left_running()


def test_application_with_a_message_limit_is_refused_by_the_oracle(done: Sandbox) -> None:
    (row,) = [row for row in done.table("deltars", "deltars-oracle") if row["system"] == "legacy-capped"]
    assert f"of 10,000 rows {10_000 - CAP:,} are missing, 0 are others" in row["verdict"]
    (times,) = [row for row in done.table("deltars", "deltars-writes") if row["system"] == "legacy-capped"]
    assert times["mean [s]"] == ""
    told = {row["system"]: row for row in done.table("deltars", "deltars-limit") if row["data"] == "supplier_sf1"}
    assert (told["legacy-capped"]["sent"], told["legacy-capped"]["there"]) == ("10000", str(CAP))
    whole, capped = (told[name] for name in ("Legacy path (Kafka, Spark, Hudi), HDFS", "legacy-capped"))
    assert whole["there"] == whole["sent"] == "10000" and whole["limit"] == "none"
    assert float(capped["read [s]"]) * 1e6 / CAP == pytest.approx(float(capped["read_there [µs]"]))


def test_parts_of_a_legacy_write_sum_to_its_total(done: Sandbox) -> None:
    told = {row["system"]: row for row in done.table("deltars", "deltars-steps") if row["cores"] == "1"}
    (legacy,) = [row for title, row in told.items() if title.startswith("Legacy path")]
    parts = {
        step: float(legacy[f"{step} [s]"]) for step in ("upload", "application", "kafka", "tasks", "driver", "hdfs")
    }
    (whole,) = [
        float(row["mean [s]"]) for row in done.table("deltars", "deltars-writes") if row["system"] == legacy["system"]
    ]
    assert all(seconds > 0 for seconds in parts.values())
    assert sum(parts.values()) + float(legacy["rest [s]"]) == pytest.approx(whole, rel=0.01)
    assert (done.results / "figures/deltars/deltars-divided.svg").stat().st_size > 0
    printed = told["Legacy (the thesis's)"]
    assert float(printed["uploaded [s]"]) == pytest.approx(2.4865, rel=0.01)


def test_claims_about_the_legacy_path_are_judged(done: Sandbox) -> None:
    claims = {each["id"]: each for each in json.loads((done.results / "claims.json").read_text())["claims"]}
    for name in ("deltars-write-small-forty", "deltars-read-small-fifteen", "deltars-upload-small"):
        assert claims[name]["verdict"] != "not tested yet", claims[name]


def test_rows_that_a_limit_left_are_stated(done: Sandbox) -> None:
    said = json.loads((done.results / "paper/values.json").read_text())["sentences"]
    assert f"of 10,000 rows sent, {CAP:,} are in the table" in said["deltars-limit"]
    # A write of one file closes one; a commit of Delta closes a file of its log as well.
    closed = {}
    for name in done.runs():
        told = pq.read_table(done.results / name / "operations.parquet", columns=["call", "closed"]).to_pylist()
        closed[name.split("/")[2]] = {each["closed"] for each in told if each["call"] == "write"}
    assert closed["parquet-hdfs"] == {1} and closed["delta-rs-hdfs"] == closed["duckdb-delta-hdfs"] == {2}
