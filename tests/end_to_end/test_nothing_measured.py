"""Pipelines in which no series has a run: earlier results stay, and the series' reason is the last line."""

from __future__ import annotations

from .conftest import MakeSandbox

NAMES = ("plan.json", "metrics.duckdb", "resampled.arrow", "claims.json", "report.html")
EARLIER = {name: f"earlier {name}" for name in NAMES} | {"tables/index.json": '{"tables": []}'}


def test_earlier_results_are_kept_if_every_series_fails(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(
        {
            "protocol": "faults",
            "protocols": {"faults": {"window_seconds": 1, "runs": 1}},
            "systems": {"null": {}},
            "modes": ["single"],
            "cold": "none",
            "services": {"kafka_address": "127.0.0.1:9"},  # nothing listens there
        }
    )
    for name, text in EARLIER.items():
        (sandbox.results / name).parent.mkdir(parents=True, exist_ok=True)
        (sandbox.results / name).write_text(text)
    result = sandbox.run("all")
    outcome = sandbox.outcomes()["null/single"]
    assert (outcome["status"], outcome["runs"]) == ("failed", [])
    assert result.returncode == outcome["exit_code"] != 0
    assert "no series has a run" in result.stdout and "Traceback" not in result.stdout
    assert result.stdout.splitlines()[-1].startswith("tidemark: null single: failed: Kafka cannot be reached")
    assert {name: (sandbox.results / name).read_text() for name in EARLIER} == EARLIER
