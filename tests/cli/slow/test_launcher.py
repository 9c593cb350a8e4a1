"""Tests of the launcher in folders and with locales that often cause errors."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tidemark import __version__
from tidemark.cli.main import app

ROOT = Path(__file__).parents[3]


def copied(folder: Path) -> Path:
    """Copy the launcher and the files that it reads into a new `folder`, and return `folder`."""
    shutil.copytree(ROOT / "envs", folder / "envs")
    shutil.copy(ROOT / "tidemark", folder)
    return folder


def test_help_and_version_are_printed_before_anything_is_installed(tmp_path: Path) -> None:
    folder = copied(tmp_path / "new")
    (folder / "src" / "tidemark").mkdir(parents=True)
    shutil.copy(ROOT / "src" / "tidemark" / "__init__.py", folder / "src" / "tidemark")

    def said(*words: str) -> str:
        return subprocess.run([folder / "tidemark", *words], capture_output=True, text=True, check=True).stdout

    assert said("--version") == f"tidemark {__version__}\n"
    named = [line.split()[0] for line in said("--help").splitlines() if line.startswith("  ")]
    known: Any = typer.main.get_group(app)
    assert named and {*named} <= {*known.commands}
    assert said() == said("-h") == said("--help") and not (folder / ".venv").exists()


@pytest.mark.parametrize("name", ["a $x", "b:c"])
def test_path_that_no_environment_can_have_is_refused_before_making_one(name: str, tmp_path: Path) -> None:
    folder = copied(tmp_path / name)
    done = subprocess.run([folder / "tidemark", "version"], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    said = f"tidemark: {folder}: Python can make no environment below a path with a '$' or a ':'; move this folder"
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize("locale", ["C", "POSIX", "xx_XX.UTF-8", "tr_TR.UTF-8", ""])
def test_launcher_starts_in_any_locale_in_a_folder_with_a_non_ascii_name(locale: str, tmp_path: Path) -> None:
    """The environment is like the one that the launcher makes: a .pth file in it names the folder."""
    folder = copied(tmp_path / "ü %d")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "workflow", folder / "workflow")
    shutil.copy(ROOT / "config.yaml", folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    site = next((folder / ".venv").glob("lib/python3*/site-packages"))
    (site / "tidemark-source.pth").write_text(f"{folder / 'src'}\n{sysconfig.get_path('purelib')}\n")
    lock = hashlib.sha256((folder / "envs" / "thesis.lock").read_bytes()).hexdigest()
    (folder / ".venv" / ".stamp").write_text(f"{lock}  {folder / '.venv'}  {folder / 'src'}\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def said(*words: str) -> str:
        done = subprocess.run(
            [folder / "tidemark", *words],
            cwd=folder,
            env=environment | {"LC_ALL": locale},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    assert said("version") == f"tidemark {__version__}\n"
    config = yaml.safe_load(said("show", "config", "--config", f"dataset.path={folder / 'tidemark'}"))
    assert config["dataset"]["path"] == [str(folder / "tidemark")]
