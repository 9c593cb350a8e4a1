"""The workflow's rules, checked by Snakemake itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.pipeline.runner import command_line

ROOT = Path(__file__).parents[3]


SNAKEFILES = ("Snakefile", "workflow/Snakefile")  # the second is for the workflow catalog
JOB = re.compile(r"(local)?rule \w+:|    (input|output): ")  # lines of a dry run, whose jobs come in any order


def snakemake(workspace: Path, *words: str, snakefile: str = "Snakefile") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / snakefile), *words]
    command += ["--configfile", str(ROOT / "config.yaml")]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    return subprocess.run(command, cwd=workspace, env=environ, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("archived", "snakefile"), [(False, "Snakefile"), (True, "Snakefile"), (False, SNAKEFILES[1])])
def test_snakemake_lint_reports_nothing(tmp_path: Path, archived: bool, snakefile: str) -> None:
    (tmp_path / "runs.zip").write_bytes(b"")
    words = ["--config", f"archive={tmp_path / 'runs.zip'}"] if archived else []
    done = snakemake(tmp_path, "--lint", *words, snakefile=snakefile)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "good condition" in done.stdout + done.stderr


def test_snakefile_of_the_catalog_plans_the_same_jobs(tmp_path: Path) -> None:
    planned = []
    for snakefile in SNAKEFILES:
        words = ("--dry-run", "--cores", "1", "--workflow-profile", str(ROOT / "profiles" / "default"))
        done = snakemake(tmp_path, *words, "--quiet", "host", "--config", "protocol=smoke", snakefile=snakefile)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = (done.stdout + done.stderr).splitlines()
        planned.append(sorted(line.strip() for line in lines if JOB.match(line)))
    assert planned[0] == planned[1]
    assert "rule all:" in "\n".join(planned[1]) and "src/tidemark/studies/streams/claims.yaml" in "\n".join(planned[1])


def test_all_that_series_need_is_made_before_the_first_of_them(tmp_path: Path) -> None:
    """Otherwise the first stack that is ready would be measured in all rounds before the next one is made."""
    words = ("--dry-run", "--cores", "1", "--workflow-profile", str(ROOT / "profiles" / "default"), "--quiet", "host")
    done = snakemake(tmp_path, *words, "--config", "protocol=smoke", "studies=all", "stacks=[thesis, current]")
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?: +.*\n)*)", done.stdout + done.stderr, re.MULTILINE)
    priorities: dict[str, set[int]] = {}
    for rule, lines in jobs:
        found = re.search(r"priority: (\d+)", lines)
        priorities.setdefault(re.sub(r"^series_.*", "series", rule), set()).add(int(found[1]) if found else 0)
    series = priorities["series"]
    assert min(series) > 0
    for needed in ("provision", "tool", "stack", "dataset", "events"):
        assert min(priorities[needed]) > max(series), needed


def test_step_runs_from_a_path_with_spaces(tmp_path: Path) -> None:
    python = tmp_path / "a folder" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command_line(python)} version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("tidemark "), done.stderr
