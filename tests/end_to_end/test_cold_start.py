"""The cost of a cold start is measured by its causes: evicted files, and new processes."""

from __future__ import annotations

import csv

import pytest

from .conftest import MakeSandbox


@pytest.mark.alone(reason="it looks at the page cache, which other pipelines fill and empty")
def test_files_and_processes_are_cold_each_alone(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(
        {
            "protocol": "smoke",
            "systems": {"delta-rs": {}},
            "protocols": {"smoke": {"window_seconds": 8, "commits": 20, "least_seconds": 1, "runs": 2}},
            "sweeps": ["cold-start"],
            "sweep": {"cold-start": {"axis": "evict", "values": ["each", "never"], "modes": ["single"], "repeats": 2}},
        }
    )
    made = sandbox.run("all", "--until", "tables")
    assert made.returncode == 0, made.stdout
    shares: dict[tuple[str, int], list[float]] = {}
    for run in sandbox.runs().values():
        files = run["opening"]["residency"].values()
        share = sum(each["resident_bytes"] for each in files) / sum(each["bytes"] for each in files)
        shares.setdefault((run["config"].get("evict", "first"), run["run"]), []).append(share)
    assert {state: len(each) for state, each in shares.items()} == dict.fromkeys(
        [("each", 0), ("each", 1), ("never", 0), ("never", 1)], 2
    )
    for state, found in shares.items():
        assert max(found) < 0.5 if state[0] == "each" else min(found) > 0.9, shares
    with (sandbox.results / "tables/streams/cold-parts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["commits"] for row in rows] == ["1", "20", "100"]
    assert all(row["files [s]"] and row["processes [s]"] and row["both [s]"] for row in rows[:2])
