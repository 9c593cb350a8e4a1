"""The workflow's rules, checked by Snakemake itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.pipeline.runner import command_line

ROOT = Path(__file__).parents[3]


def snakemake(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *words]
    command += ["--configfile", str(ROOT / "config.yaml")]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    return subprocess.run(command, cwd=workspace, env=environ, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("archived", [False, True])
def test_snakemake_lint_reports_nothing(tmp_path: Path, archived: bool) -> None:
    (tmp_path / "runs.zip").write_bytes(b"")
    done = snakemake(tmp_path, "--lint", *(["--config", f"archive={tmp_path / 'runs.zip'}"] if archived else []))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "good condition" in done.stdout + done.stderr


def test_step_runs_from_a_path_with_spaces(tmp_path: Path) -> None:
    python = tmp_path / "a folder" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command_line(python)} version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("tidemark "), done.stderr
