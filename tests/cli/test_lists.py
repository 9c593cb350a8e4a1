"""Lists for machines: each command that lists something prints the same as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tidemark.analysis.formatting import MissingCell, number
from tidemark.analysis.statistics import Estimate
from tidemark.cli.main import app
from tidemark.paths import REPOSITORY
from tidemark.results.tables.table import read_table

CONFIG = ("--configfile", str(REPOSITORY / "config.yaml"), "--config", "protocol=smoke", "streams.modes=[batch]")


def printed(*words: str) -> str:
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


@pytest.mark.parametrize("command", ["studies", "systems"])
def test_names_and_titles_are_those_of_the_text(command: str) -> None:
    listed = json.loads(printed("list", command, "--json"))
    heads = [line for line in printed("list", command).splitlines() if not line.startswith(" ")]
    assert len(listed) == len(heads) > 5
    assert all(line.startswith(f"{each['name']}: {each['title']}") for each, line in zip(listed, heads, strict=True))


@pytest.mark.parametrize(("command", "key"), [("presets", "name"), ("stacks", "name"), ("findings", "id")])
def test_names_are_those_of_the_text(command: str, key: str) -> None:
    listed = json.loads(printed("list", command, "--json"))
    heads = [line for line in printed("list", command).splitlines() if not line.startswith(" ")]
    assert [each[key] for each in listed] == [line.partition(":")[0] for line in heads]


def test_series_are_those_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    listed, lines = (
        json.loads(printed("list", "series", *CONFIG, "--json")),
        printed("list", "series", *CONFIG).splitlines(),
    )
    assert len(listed) == len(lines) == 8
    for each, line in zip(listed, lines, strict=True):
        assert each["id"].split("/")[1] in line and each["status"] in line and each["status"] == "pending"
        assert line.endswith(f"{each['runs']} of {each['planned_runs']} runs")


def test_claims_have_their_verdicts() -> None:
    place = ("--results", str(REPOSITORY / "reference"), "--study", "freshness")
    (claim,) = json.loads(printed("list", "claims", *place, "--json"))
    line = printed("list", "claims", *place)
    assert claim["id"] in line and claim["verdicts"][0]["verdict"] in line and claim["verdicts"][0]["ours"] in line


def test_claims_can_be_chosen_by_verdict() -> None:
    place = ("--results", str(REPOSITORY / "reference"), "--study", "ingest", "--json")
    every = json.loads(printed("list", "claims", *place))
    chosen = json.loads(printed("list", "claims", *place, "--verdict", "not-reproduced"))
    wanted = [each for each in every if "not reproduced" in [one["verdict"] for one in each["verdicts"]]]
    assert chosen == wanted and 0 < len(chosen) < len(every)


def test_claim_is_an_object_of_the_ledger() -> None:
    place = ("--results", str(REPOSITORY / "reference"))
    (claim,) = json.loads(printed("show", "claim", "delta-between", *place, "--json"))
    text = printed("show", "claim", "delta-between", *place)
    assert claim["verdict"].upper() in text and claim["ours_text"] in text and claim["retest"]["command"] in text


def test_time_of_a_claims_command_is_that_of_the_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = ("show", "claim", "growth-single-pyiceberg", "--results", str(REPOSITORY / "reference"))
    (row,) = re.findall(r"^\| \[`growth-single-pyiceberg`\].*", (REPOSITORY / "ARTIFACT.md").read_text(), re.MULTILINE)
    time, disk, command = row.strip("| ").split(" | ")[-3:]
    monkeypatch.chdir(REPOSITORY)
    text = printed(*claim)
    assert command.strip("`") in text and f"about {time}, {disk} of disk" in text
    monkeypatch.chdir(tmp_path)  # without a configuration there is no plan, and no time
    text = printed(*claim)
    assert command.strip("`") in text and f"{disk} of disk" in text and "about" not in text.splitlines()[-1]


def test_configuration_is_that_of_the_text() -> None:
    assert json.loads(printed("show", "config", *CONFIG, "--json")) == yaml.safe_load(
        printed("show", "config", *CONFIG)
    )
    (row, *_) = json.loads(printed("show", "config", *CONFIG, "--sources", "--changed", "--json"))
    assert f"{row['key']}: " in printed("show", "config", *CONFIG, "--sources") and row["source"] != "default"


def test_configuration_of_one_study_is_its_section() -> None:
    whole = json.loads(printed("show", "config", *CONFIG, "--json"))
    of_study = ("show", "config", *CONFIG, "--study", "ingest", "--json")
    assert json.loads(printed(*of_study)) == {"ingest": whole["ingest"]}
    assert json.loads(printed(*of_study, "--changed")) == {"ingest": {}}
    assert {row["key"].split(".")[0] for row in json.loads(printed(*of_study, "--sources"))} == {"ingest"}


def test_comparison_has_its_counts_without_rows_and_as_a_table_for_machines(tmp_path: Path) -> None:
    reference = str(REPOSITORY / "reference")
    words = ("compare", reference, reference, "--output", str(tmp_path), "--study", "freshness")
    (table,) = json.loads(printed(*words, "--json"))
    assert table["rows"] and {row[0] for row in table["rows"]} == {"freshness"}
    summary = printed(*words, "--summary").splitlines()
    assert summary[1] == f"- {table['notes'][0]}" and not any(line.startswith("|") for line in summary)


def test_compared_claims_can_be_chosen_by_verdict(tmp_path: Path) -> None:
    reference = str(REPOSITORY / "reference")
    words = ("compare", reference, reference, "--output", str(tmp_path), "--study", "ingest", "--json")
    (every,) = json.loads(printed(*words))
    (chosen,) = json.loads(printed(*words, "--verdict", "not-reproduced"))
    assert chosen["rows"] == [row for row in every["rows"] if "not reproduced" in row]
    assert 0 < len(chosen["rows"]) < len(every["rows"]) and chosen["notes"] == every["notes"]
    assert json.loads((tmp_path / "agreement.json").read_text())["rows"] == every["rows"]


def test_results_are_those_of_the_table_of_systems() -> None:
    shown = " ".join(
        printed("show", "results", "--results", str(REPOSITORY / "reference"), "--study", "deltars").split()
    )
    matrix = read_table(REPOSITORY / "reference" / "deltars" / "tables" / "matrix.json")
    place = [column.key for column in matrix.columns].index("whole_write")
    values = [row[place] for row in matrix.rows]
    assert sum(isinstance(value, Estimate) for value in values) > 3 and any(isinstance(v, MissingCell) for v in values)
    place_of = ("--results", str(REPOSITORY / "reference"), "--study", "deltars")
    (table,) = json.loads(printed("show", "results", *place_of, "--json"))
    assert [row[0] for row in table["rows"]] == [row[0] for row in matrix.rows]
    for row, value in zip(matrix.rows, values, strict=True):
        assert f"{row[0]} {number(value.value, 3) if isinstance(value, Estimate) else '-'} " in shown


def test_system_and_study_are_shown_with_what_can_be_set() -> None:
    (system,) = json.loads(printed("show", "system", "ducklake", "--json"))
    assert system["options"]["inline_rows"]["help"] in printed("show", "system", "ducklake")
    (study,) = json.loads(printed("show", "study", "streams", "--json"))
    assert f"streams.batch_size: {study['settings']['batch_size']}" in printed("show", "study", "streams")
