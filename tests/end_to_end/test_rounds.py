"""Results made between rounds by a real pipeline: a kill between rounds, and what later starts measure again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pyarrow.parquet as pq
import pytest

from tidemark.dataset.synthetic import write_replica
from tidemark.runs.plan import PlanFile, Round

from .conftest import MakeSandbox
from .sandbox import (
    MEASURE_ONLY,
    SNAKEMAKE_LOG,
    Sandbox,
    changed_since,
    complete,
    file_times,
    finish,
    kill_group,
    wait_for,
)

COMMITS = 50  # that end a window
SENTENCE = "Round 1 of 2: each system was measured once so far"
TWICE: dict[str, Any] = {
    "protocol": "twice",
    "protocols": {"twice": {"window_seconds": 20, "commits": COMMITS, "runs": 2, "rounds": 1}},
    "systems": {"delta-rs": {}, "ducklake-inlined": {}},
    "modes": ["single"],
    "cold": "none",
}
MADE = ("plan.json", "metrics.duckdb", "claims.json", "claims.md", "paper.pdf", "report.html", "answer.txt")


def in_the_last_series(sandbox: Sandbox) -> bool:
    position = sandbox.position()
    if position is None:
        return False
    last = sandbox.plan()[-1]["directory"].removeprefix("results/runs/").replace("/", "-")
    return position.series.name == last and position.consumed > 0


def stamps(sandbox: Sandbox, repeat: int) -> dict[str, int]:
    """Return the modification time of each file of the series of one repeat."""
    folders = [sandbox.root / each["directory"] for each in sandbox.plan() if each["repeat"] == repeat]
    return {
        str(path): path.stat().st_mtime_ns
        for folder in folders
        for path in [folder / "outcome.json", *folder.rglob("run.json")]
    }


def made(sandbox: Sandbox) -> dict[str, int]:
    """Return the modification time of each result."""
    return {name: (sandbox.results / name).stat().st_mtime_ns for name in MADE}


SHOWN = ("report.html", "claims.md", "tables/streams/throughput.md", "paper/values.json")


@dataclass(frozen=True)
class Halves:
    """A pipeline that is killed in the last series of round 2, what it left, and the same command again."""

    sandbox: Sandbox
    killed: str  # what it printed
    of_round: PlanFile
    shown: dict[str, str]  # texts of results
    first: dict[str, int]
    made: dict[str, int]
    again: CompletedProcess[str]


@pytest.fixture(scope="module")
def halves(make_sandbox: MakeSandbox) -> Halves:
    sandbox = make_sandbox(TWICE)
    sandbox.know("delta-rs", 500)
    sandbox.know("ducklake-inlined", 2_000)
    process = sandbox.start("all")
    wait_for("the last series", lambda: in_the_last_series(sandbox), process)
    kill_group(process)
    killed = finish(process).stdout
    assert sandbox.left_running() == []
    of_round = PlanFile.read(sandbox.results / "plan.json")
    shown = {name: (sandbox.results / name).read_text() for name in SHOWN}
    first, before = stamps(sandbox, 1), made(sandbox)
    return Halves(sandbox, killed, of_round, shown, first, before, sandbox.run("all"))


def test_first_results_exist_while_the_second_round_is_measured(halves: Halves) -> None:
    line = "round 1 of 2 is measured, intervals will still change; the report is results/report.html"
    assert line in halves.killed
    printed = [f"({place} of 4 series)" in halves.killed for place in range(1, 5)]
    assert printed == [True, True, True, False], halves.killed
    whole = PlanFile.read(halves.sandbox.root / ".tidemark/plan.json")
    assert halves.of_round.round == Round(1, 2) and whole.round is None
    assert halves.of_round.series == whole.series[:2] and {each.repeat for each in halves.of_round.series} == {1}
    assert [name for name, text in halves.shown.items() if SENTENCE not in text] == []


def test_second_start_measures_the_rest_and_makes_every_result_again(halves: Halves) -> None:
    sandbox, again = halves.sandbox, halves.again
    assert again.returncode == 0, again.stdout
    assert "round 1 of 2" not in again.stdout and again.stdout.count("database: done") == 1
    assert "tidemark: the report is results/report.html" in again.stdout
    assert stamps(sandbox, 1) == halves.first and list(complete(sandbox)) == []
    assert {(run["operations"], run["oracle"]["commits"]) for run in sandbox.runs().values()} == {(COMMITS, COMMITS)}
    assert (sandbox.results / "plan.json").read_bytes() == (sandbox.root / ".tidemark/plan.json").read_bytes()
    for name in SHOWN:
        assert "of 2: each system" not in (sandbox.results / name).read_text(), name
    now = made(sandbox)
    assert all(now[name] > halves.made[name] for name in MADE)


def test_third_start_makes_nothing(halves: Halves) -> None:
    before = made(halves.sandbox)
    idle = halves.sandbox.run("all")
    assert idle.returncode == 0 and "Nothing to be done" in idle.stdout
    assert made(halves.sandbox) == before


def test_results_stay_consistent_after_a_refused_all(halves: Halves) -> None:
    sandbox = halves.sandbox
    before = file_times(sandbox.results)
    told = sandbox.run("list", "claims").stdout
    write_replica(sandbox.root / "broken.parquet", 300, 1)
    break_a_page(sandbox.root / "broken.parquet")  # its footer, the only part read at the start, is intact
    sandbox.configure({**TWICE, "dataset": {"source": "path", "path": "broken.parquet"}})
    refused = sandbox.run("all")
    assert refused.returncode == 3, refused.stdout
    changed = changed_since(sandbox, before)
    planned = {path for path in changed if path.endswith("/spec.json")}  # of series that were not measured
    assert changed - planned == {"logs/dataset.log", SNAKEMAKE_LOG}
    last = refused.stdout.splitlines()[-1]
    assert last.startswith("tidemark: dataset: failed: ") and "broken.parquet" in last
    assert "results/logs/dataset.log" in last and "not measured" not in last
    assert sandbox.run("list", "claims").stdout == told
    shown = sandbox.run("show", "claim", "threads-no-gain")
    assert shown.returncode == 0, shown.stdout
    sandbox.configure(TWICE)
    assert sandbox.run("all").returncode == 0


def test_new_system_measures_only_that_system(halves: Halves) -> None:
    """A new option of a system makes another series of it (tests/pipeline/test_plan.py), as a new system does."""
    sandbox, before = halves.sandbox, halves.sandbox.runs()
    sandbox.configure({**TWICE, "systems": {**TWICE["systems"], "third": {"like": "delta-rs"}}})
    changed = sandbox.run("all", *MEASURE_ONLY)
    assert changed.returncode == 0, changed.stdout
    new = sandbox.runs().keys() - before.keys()
    assert {run.split("/")[2] for run in new} == {"third"}
    assert len(new) == 1 + 2, "one in the round of all systems, and two by itself"


def break_a_page(path: Path) -> None:
    column = pq.read_metadata(path).row_group(0).column(16)
    content = bytearray(path.read_bytes())
    content[column.dictionary_page_offset + column.total_compressed_size - 3] ^= 1
    path.write_bytes(content)
