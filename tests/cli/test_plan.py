"""Tests of `tidemark advise` on run files with a known answer, in a folder and in an archive, and of its refusals."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runs.runset import DELTA, DUCKLAKE, NULL, write_run_set
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.cli.planning import PRESET, UPKEEP_PRESET, advise, example, seconds, share
from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.paths import REPOSITORY
from tidemark.pipeline.commit_costs import FILE, POLICIES, CommitCosts
from tidemark.pipeline.plan import make_plan
from tidemark.planner.cost_model import FAR, MANY, PLAIN
from tidemark.planner.frontier import PolicyCost
from tidemark.planner.prediction import NEEDED
from tidemark.results.archive.pack import write_archive
from tidemark.results.reference.front import ADVICE, filled
from tidemark.runs.serde import to_json

SIZES = {1: 20.05, 10: 20.5, 100: 25.0, 1000: 70.0}  # 20 ms and 0.05 ms per row
SWEEP = {"sweep": {"batch-size": {"axis": "batch_size", "values": list(SIZES)}}}
QUESTION = ["advise", "--rate", "5000", "--fresh", "10s", "--commits", "500"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return runs: DuckLake follows a law, delta-rs has one batch size off its law, and null stores nothing."""
    models = []
    for rows, median_ms in SIZES.items():
        mode = {"mode": "batch", "batch_size": rows, "sweep": "batch-size", "sigma": 0.02, "outliers": 0.0}
        models += [
            replace(DUCKLAKE, median_ms=median_ms, merge_s=None, factors=(1.0, 1.0), **mode),
            replace(DELTA, median_ms=median_ms * (8 if rows == 10 else 1), factors=(1.0, 1.0), **mode),
        ]
    models += [replace(NULL, factors=(1.0, 1.0)), replace(DUCKLAKE, sweep="threads", threads=4, median_ms=500.0)]
    config = {"streams": SWEEP | {"sweep": SWEEP["sweep"] | {"threads": {"axis": "threads", "values": [4]}}}}
    return write_run_set(tmp_path_factory.mktemp("plan"), models, window_s=4.0, config=config)


def asked(results: Path, *more: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*QUESTION, "--results", str(results), "--json", *more])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_marked_runs_behind_the_numbers_are_counted(results: Path) -> None:
    kept = REPOSITORY / "reference"  # its runs with S3 and with several writers are those of ingest
    (about,) = (each for each in json.loads((kept / FILE).read_text())["about"] if each["study"] == "ingest")
    said = f"{about['marked_runs']} of {about['all_runs']} runs of the study ingest behind these numbers are marked"
    done = CliRunner().invoke(app, [*QUESTION, "--store-latency", "20ms", "--results", str(kept)])
    assert done.exit_code == 0 and done.stdout.splitlines()[1].startswith(said) and about["marked_runs"] > 0
    assert [each.startswith(said) for each in asked(kept)["marked"]] == [True] and asked(results)["marked"] == []


def test_plan_lists_sufficient_systems_and_their_batch_sizes(results: Path, tmp_path: Path) -> None:
    found = asked(results)
    assert found["load"]["rate"] == 5000 and found["rules"]["most_error"] == 0.3
    ducklake, delta = found["systems"]
    assert (ducklake["system"], ducklake["verdict"]) == ("ducklake", "would do")
    assert ducklake["errors"]["cells"] == len(SIZES) and ducklake["errors"]["worst"] < 0.1
    # 20 ms and 0.05 ms per row: 200 rows keep a writer 75 % busy, 500 rows 45 %.
    assert ducklake["batches"] == [500, 2000]
    assert ducklake["prediction"]["commit_ms"] == pytest.approx(120, rel=0.05)
    assert ducklake["prediction"]["age_s"] == pytest.approx(1999 / 5000 + 0.12, rel=0.05)
    assert (delta["system"], delta["verdict"], delta["prediction"]) == ("delta-rs", "not predicted", None)
    assert "worst error of the law" in delta["reason"]
    archive = write_archive(results, tmp_path / "a.zip")
    assert asked(archive)["systems"] == found["systems"]


def test_table_has_predictions_with_errors_and_refusals_with_reasons(results: Path) -> None:
    done = CliRunner().invoke(app, [*QUESTION, "--results", str(results)])
    assert done.exit_code == 0, done.output
    assert "500-2,000" in done.stdout and "5,000 events/s, one writer, files on the local disk" in done.stdout
    assert f"({len(SIZES)})" in done.stdout
    assert f"{DELTA.title}: not predicted: the worst error of the law" in done.stdout
    assert "What an acknowledgement promises" in done.stdout
    far = CliRunner().invoke(app, [*QUESTION, "--results", str(results), "--store-latency", "20ms"])
    assert far.stdout.count("distances of a store: measured 0, needed 3") == 2
    assert f"./tidemark all --preset {PRESET} (45 minutes after set-up)" in far.stdout
    assert getattr(far.exception, "exit_code", None) == 14


def test_the_preset_measures_all_settings_that_a_prediction_needs() -> None:
    made = load(REPOSITORY / "config.yaml", [f"preset={PRESET}"]).whole()
    sizes = {made["streams"]["batch_size"], *made["streams"]["sweep"]["batch-size"]["values"]}
    assert "batch-size" in made["streams"]["sweeps"] and len(sizes) >= NEEDED[PLAIN]
    sizes = made["ingest"]["protocols"][made["protocol"]]
    assert len(sizes["rtts"]) >= NEEDED[FAR] and sum(writers > 1 for writers in sizes["writers"]) >= NEEDED[MANY]


def test_kept_costs_answer_as_their_runs_do_where_nothing_was_measured(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asked(results)
    monkeypatch.chdir(tmp_path)
    kept = CliRunner().invoke(app, ["keep", str(results), "--costs"])
    assert kept.exit_code == 0, kept.output
    shipped = json.loads(CliRunner().invoke(app, [*QUESTION, "--json"]).stdout)
    assert shipped.pop("measured") == found.pop("measured").replace(str(results), "reference/costs.json")
    assert shipped == found
    told = CliRunner().invoke(app, QUESTION).stdout
    assert (
        told.startswith("Measured: ")
        and f"Your machine differs. For an answer from it: ./tidemark all --preset {PRESET}" in told
    )

    (tmp_path / "reference" / "costs.json").write_text('{"schema_version": 2}')
    done = CliRunner().invoke(app, QUESTION)
    assert str(done.exception).startswith("reference/costs.json: key 'schema_version': found 2; allowed: 1. Analyse")


def test_figure_to_keep_is_chosen_by_its_name(tmp_path: Path) -> None:
    zipfile.ZipFile(REPOSITORY / "tests/results/smoke/freshness.zip").extractall(tmp_path)
    keep = ["keep", str(tmp_path / "results"), "--output", str(tmp_path), "--figure"]
    done = CliRunner().invoke(app, [*keep, "freshness-lag"])
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.glob("freshness/*.svg")] == ["freshness-lag.svg"]
    done = CliRunner().invoke(app, [*keep, "lag"])
    assert str(done.exception).startswith("--figure: found 'lag'; allowed: freshness-cost, ")


def test_first_page_shows_what_advise_answers_from_the_shipped_costs() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    assert filled("README.md", readme, ADVICE, example(REPOSITORY / "reference")) == readme, (
        "run './tidemark artifact .'"
    )


def test_shipped_costs_answer_the_questions_of_the_help() -> None:
    asked = re.findall(r"'(--rate [^']+)'", advise.__doc__ or "")
    assert len(asked) == 4
    for question in asked:
        words = ["advise", *question.split(), "--results", str(REPOSITORY / "reference"), "--json"]
        found = json.loads(CliRunner().invoke(app, words).stdout)
        fit = found["policies"] if "--upkeep" in question else [
            each for each in found["systems"] if each["verdict"] == "would do"
        ]  # fmt: skip
        assert found["measured"] and fit, question
    words = ["advise", "--upkeep", "--rate", "1000", "--fresh", "2s", "--results", str(REPOSITORY / "reference")]
    said = CliRunner().invoke(app, words).stdout
    assert said.count("DuckLake (SQLite): measured without readers' locks") == 1, "its costs alone would mislead"


def test_unbeaten_policies_of_upkeep_are_named_or_the_command_that_tells(tmp_path: Path) -> None:
    costs = CommitCosts((), (), (), ("2026-11-27",), tuple(
        PolicyCost("ducklake", "DuckLake", "current", rate, policy, fresh_s, cpu_s, 0.5)
        for rate, policy, fresh_s, cpu_s in (
            (1000, "every 1 s, no upkeep", 1.9, 3.1), (1000, "every 5 s, no upkeep", 5.9, 3.2),
            (1000, "every 9 s, no upkeep", 9.9, 1.1), (100_000, "every 1 s, no upkeep", 1.0, 1.0),
        )
    ))  # fmt: skip
    (tmp_path / FILE).write_text(to_json(costs))
    question = ["advise", "--upkeep", "--rate", "2000", "--results", str(tmp_path), "--fresh"]
    said = CliRunner().invoke(app, [*question, "10s"]).stdout
    assert "at 1,000 events/s" in said and "every 5 s" not in said and "every 9 s" in said
    assert "DuckLake every 1 s, no upkeep: 1.9 s fresh, 3.1 CPU-s a million events, longest stall 0.50 s" in said
    (only,) = json.loads(CliRunner().invoke(app, [*question, "2s", "--json"]).stdout)["policies"]
    assert only["policy"] == "every 1 s, no upkeep"
    assert "none within 1 s; the freshest: DuckLake every 1 s" in CliRunner().invoke(app, [*question, "1s"]).stdout
    (tmp_path / POLICIES).write_text(to_json(replace(costs, policies=costs.policies[1:2])))
    said = CliRunner().invoke(app, [*question, "10s"]).stdout
    assert "every 5 s" in said and "every 9 s" not in said, "policies that are kept apart come first"
    assert f"Your machine differs. For an answer from it: ./tidemark all --preset {UPKEEP_PRESET} --config" in said
    (tmp_path / POLICIES).write_text(to_json(replace(costs, policies=())))
    done = CliRunner().invoke(app, [*question, "10s"])
    told = re.search(r"what would tell: ./tidemark all (.*) \(25 minutes after set-up\)", str(done.exception))
    assert told and f"--preset {UPKEEP_PRESET} " in told[1]
    words = shlex.split(told[1])
    values = [f"preset={UPKEEP_PRESET}", *words[words.index("--config") + 1 :]]
    measured = make_plan(load(REPOSITORY / "config.yaml", values)).series
    assert {dict(each.settings)["rate"] for each in measured} == {2000}
    assert getattr(done.exception, "exit_code", None) == 14


@pytest.mark.parametrize(("text", "found"), [("20ms", 0.02), ("10s", 10.0), ("1.5s", 1.5), ("2min", 120.0)])
def test_time_is_read_with_its_unit(text: str, found: float) -> None:
    assert seconds("--fresh", text) == pytest.approx(found)


@pytest.mark.parametrize(
    "text", ["10", "s", "10 s", "-1s", "1e3s", "10S", "10sec", "nan", "infs", "", "1.s", "٣s", "1d"]
)
def test_time_without_a_known_unit_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--fresh: found .*allowed: a number and its unit \(ms, s, min, h\)"):
        seconds("--fresh", text)


def test_percentage_needs_a_percent_sign() -> None:
    assert share("--error", "30%") == pytest.approx(0.3)
    with pytest.raises(ConfigError, match=r"--error: found '0.3'; allowed: a number and %"):
        share("--error", "0.3")


def test_a_folder_without_results_is_refused_by_its_name(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*QUESTION, "--results", str(tmp_path)])
    assert done.exception is not None and str(tmp_path) in str(done.exception)
    assert getattr(done.exception, "exit_code", None) == 14
