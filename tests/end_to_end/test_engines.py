"""An engine moves a topic into a table, is killed twice on the way, and the table holds each event once."""

from __future__ import annotations

import pytest

from .conftest import MakeSandbox

# Pipelines, and the servers that they run in.
ENGINES = {
    "flink-iceberg": "flink",
    "spark-iceberg": "spark-iceberg",
    "spark-delta": "spark-delta",
    "spark-hudi": "spark-hudi",
}
RATE, KILLS, SECONDS = 100, 2, 4
SMOKE = {
    "policies": ["1s"],
    "intervals": [],
    "rate": RATE,
    "rates": [],
    "policy": "1s",
    "kills": KILLS,
    "kill_rate": RATE,
    "kill_seconds": 3,
    "window_seconds": SECONDS,
    "drain_seconds": 600,
}


@pytest.mark.long(reason="a pipeline of two to three minutes for each engine")
@pytest.mark.parametrize("system", ENGINES)
def test_each_event_is_in_the_table_once_after_two_kills_of_the_engine(make_sandbox: MakeSandbox, system: str) -> None:
    freshness = {"systems": {system: {}}, "protocols": {"smoke": SMOKE}}
    sandbox = make_sandbox({"studies": ["freshness"], "protocol": "smoke", "freshness": freshness})
    made = sandbox.run("all")
    assert made.returncode == 0, made.stdout
    (run,) = sandbox.runs().values()
    assert run["oracle"]["verdict"] and run["oracle"]["expected"] == run["oracle"]["found"]
    assert run["oracle"]["expected"] > RATE * (SECONDS + KILLS * 3)
    assert len(run["found"]["kills"]) == KILLS and run["found"]["commits"] >= KILLS
    assert run["found"]["encoding"] == "json" and run["found"]["cpu_s"][ENGINES[system]] > 0
    assert not list(sandbox.work.iterdir()) and not sandbox.left_running()
