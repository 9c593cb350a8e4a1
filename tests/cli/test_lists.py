"""Lists for machines: each command that lists something prints the same as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.paths import REPOSITORY

CONFIG = ("--configfile", str(REPOSITORY / "config.yaml"), "--config", "protocol=smoke", "streams.modes=[batch]")


def printed(*words: str) -> str:
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


@pytest.mark.parametrize("command", ["studies", "systems"])
def test_names_and_titles_are_those_of_the_text(command: str) -> None:
    listed = json.loads(printed(command, "--json"))
    heads = [line for line in printed(command).splitlines() if not line.startswith(" ")]
    assert len(listed) == len(heads) > 5
    assert all(line.startswith(f"{each['name']}: {each['title']}") for each, line in zip(listed, heads, strict=True))


def test_series_are_those_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    listed, lines = json.loads(printed("series", *CONFIG, "--json")), printed("series", *CONFIG).splitlines()
    assert len(listed) == len(lines) == 8
    for each, line in zip(listed, lines, strict=True):
        assert each["id"].split("/")[1] in line and each["status"] in line and each["status"] == "pending"
        assert line.endswith(f"{each['runs']} of {each['planned_runs']} runs")


def test_claims_have_their_verdicts() -> None:
    place = ("--results", str(REPOSITORY / "reference"), "--study", "freshness")
    (claim,) = json.loads(printed("claims", *place, "--json"))
    line = printed("claims", *place)
    assert claim["id"] in line and claim["verdicts"][0]["verdict"] in line and claim["verdicts"][0]["ours"] in line
