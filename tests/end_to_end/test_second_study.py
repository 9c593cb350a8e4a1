"""A second study, added as a folder, runs from the configuration to the paper together with the first."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from .conftest import MakeSandbox
from .sandbox import Sandbox

TICKS = Path(__file__).parents[1] / "studies" / "ticks"


@pytest.fixture(scope="module")
def done(make_sandbox: MakeSandbox) -> Sandbox:
    """Return a pipeline that measured both studies, the first as small as possible."""
    sandbox = make_sandbox(
        {
            "studies": ["ticks", "streams"],
            "protocol": "smoke",
            "systems": {"null": {}},
            "modes": ["single"],
            "protocols": {"smoke": {"window_seconds": 0.5, "runs": 2}},
        }
    )
    shutil.copytree(TICKS, sandbox.root / "src/tidemark/studies/ticks", ignore=shutil.ignore_patterns("__pycache__"))
    made = sandbox.run("all")
    assert made.returncode == 0, made.stdout
    return sandbox


def test_study_is_listed_with_its_settings(done: Sandbox) -> None:
    said = done.run("show", "study", "ticks").stdout
    assert "ticks: Sleeps that are long enough" in said and "ticks.sleep_ms" in said
    refused = done.run("all", "--config", "sleep_ms=3")
    assert refused.returncode == 2 and "write it as ticks.sleep_ms" in refused.stdout


def test_runs_have_the_study_workload_and_need_no_server(done: Sandbox) -> None:
    runs = {name: run for name, run in done.runs().items() if name.startswith("runs/ticks/clock/ticks/")}
    assert len(runs) == 3
    for run in runs.values():
        assert run["series"]["study"] == run["series"]["workload"] == "ticks"
        assert run["operations"] >= 20 and run["producer"] is None and run["footprint"] is None
        residency = run["cold_proof"]["residency"]
        servers = {name: group["bytes"] for name, group in residency.items() if name != "dataset"}
        assert servers and not any(servers.values()), residency


def test_table_figure_and_claim_are_made(done: Sandbox) -> None:
    with (done.results / "tables/ticks/ticks-metrics.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert 2.0 <= float(row["tick [ms]"]) < 20
    assert (done.results / "figures/ticks/ticks-tick.svg").stat().st_size > 2_000
    claims = {claim["id"]: claim for claim in json.loads((done.results / "claims.json").read_text())["claims"]}
    assert claims["ticks-take-their-time"]["study"] == "ticks"
    assert claims["ticks-take-their-time"]["verdict"] == "reproduced"
    assert {claim["study"] for claim in claims.values()} == {"streams", "ticks"}


def test_study_has_a_chapter_after_the_first(done: Sandbox) -> None:
    values = json.loads((done.results / "paper/values.json").read_text())
    assert [chapter["study"] for chapter in values["chapters"]] == ["streams", "ticks"]
    assert values["sentences"]["ticks"].startswith("A sleep takes ")
    assert (done.results / "paper.pdf").read_bytes().startswith(b"%PDF")
    assert '"study":"ticks"' in (done.results / "report.html").read_text()


def test_results_of_the_first_study_stay_separate(done: Sandbox) -> None:
    index = json.loads((done.results / "tables/index.json").read_text())["tables"]
    throughput = next(entry for entry in index if entry["name"] == "throughput")
    assert throughput["study"] == "streams" and throughput["files"][0] == "streams/throughput.csv"
    assert not any("ticks" in source for source in throughput["sources"])
