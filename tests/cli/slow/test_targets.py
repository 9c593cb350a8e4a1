"""Tests that an argument of `all` that is no Snakemake target is refused with one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.config import load
from tidemark.pipeline.runner import meant

ROOT = Path(__file__).parents[3]


def pipeline(folder: Path, *words: str) -> tuple[int, list[str]]:
    """Return the exit code of `all` and the lines of its standard error, without Snakemake's on its own settings."""
    shutil.copy(ROOT / "config.yaml", folder)
    command = [sys.executable, "-m", "tidemark", "all", *words, "--config", "streams.modes=single"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    own = ("Using workflow specific profile", "Config file config.yaml is extended")
    return done.returncode, [line for line in done.stderr.splitlines() if not line.startswith(own)]


@pytest.mark.parametrize("dry", [["-n"], []], ids=["dry run", "run"])
def test_unknown_target_is_refused(dry: list[str], tmp_path: Path) -> None:
    said = "tidemark: no target 'smoke'; did you mean --config protocol=smoke?"
    assert pipeline(tmp_path, "smoke", *dry) == (2, [said])


def test_rules_and_their_files_are_targets_and_other_files_are_not(tmp_path: Path) -> None:
    known = ("tables", "results/report.html", "--until", "figures", "-n")
    assert pipeline(tmp_path, *known)[0] == 0
    code, lines = pipeline(tmp_path, "results/nope.html", *known)
    assert code == 2 and len(lines) == 1
    assert lines[0].startswith("tidemark: no target 'results/nope.html'; allowed: dataset, events, ")
    assert lines[0].endswith("all, or a file that one makes")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("ingest", "did you mean --config studies=ingest?"),
        ("curent", "did you mean --config stacks=current?"),
        ("reports", "did you mean report?"),
        ("zzz", "allowed: tables, report, or a file that one makes"),
    ],
)
def test_unknown_target_gets_a_suggestion(word: str, said: str) -> None:
    assert meant(word, ["tables", "report"], load(ROOT / "config.yaml")) == said


def test_snakemake_alone_refuses_an_unknown_target_as_well(tmp_path: Path) -> None:
    shutil.copy(ROOT / "config.yaml", tmp_path)
    command = [str(Path(sys.executable).with_name("snakemake")), "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
    done = subprocess.run([*command, "smoke"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "tidemark: no target 'smoke'; did you mean --config protocol=smoke?"
