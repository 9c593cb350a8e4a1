"""Tests of completion: what each shell is offered, through the scripts where the shell is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.cli.completion import PROGRAM, VARIABLE, Shell
from tidemark.config import presets

BASH = """
source <(./tidemark completion bash)
COMP_WORDS=({line}) COMP_CWORD={place}
_tidemark_completion ./tidemark
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a command './tidemark', which is not on PATH."""
    script = tmp_path / PROGRAM
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m tidemark "$@"\n')
    script.chmod(0o755)
    return tmp_path


def run(folder: Path, *command: str, **variables: str) -> list[str]:
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("./tidemark sho", ["show"]),
        ("./tidemark list st", ["studies", "stacks"]),
        ("./tidemark show system ducklake-i", ["ducklake-inlined", "ducklake-inlined-postgres"]),
        ("./tidemark show claim delta-betw", ["delta-between"]),
        ("./tidemark all --preset first", ["first-look"]),
        ("./tidemark list claims --study stre", ["streams"]),
    ],
)
def test_bash_completes_commands_and_names(folder: Path, line: str, offered: list[str]) -> None:
    assert run(folder, "bash", "-c", BASH.format(line=line, place=len(line.split()) - 1)) == offered


@pytest.mark.parametrize("shell", [Shell.ZSH, Shell.FISH])
def test_other_shells_are_answered_and_call_the_command_as_it_was_typed(folder: Path, shell: Shell) -> None:
    asked = {
        VARIABLE: f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "./tidemark all --preset ",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    answer = "\n".join(run(folder, "./tidemark", **asked))
    assert all(name in answer for name in presets()) and "ducklake" not in answer
    script = "\n".join(run(folder, "./tidemark", "completion", shell))
    assert f" {PROGRAM})" not in script and VARIABLE in script
    if shutil.which(shell):
        subprocess.run([shell, "--no-execute" if shell == Shell.FISH else "-n"], input=script, text=True, check=True)


def test_completion_without_an_environment_makes_none(folder: Path) -> None:
    shutil.copy(Path(__file__).parents[2] / PROGRAM, folder / "new")
    assert run(folder, "./new", "sho", **{VARIABLE: "complete_bash"}) == []
    assert not (folder / ".venv").exists()
