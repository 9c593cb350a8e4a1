"""Tests of the launcher in folders and with locales that often cause errors."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tidemark import __version__
from tidemark.cli.main import app
from tidemark.paths import Workspace
from tidemark.software.environments import read_lock
from tidemark.software.tools import provide_tool

ROOT = Path(__file__).parents[3]
LOCK = Path("envs", "thesis.lock")
BEFORE = Path("src", "tidemark", "software", "before_setup.py")
USED = ("sh", "awk", "cat", "cut", "dirname", "mkdir", "mv", "readlink", "rm", "sed", "sha256sum", "uname")
IS_OLD = "import pip, sys; print(sys.executable); sys.exit(not (3, 9) <= sys.version_info[:2] != (3, 12))"
LEFT_OUT = ("test", "site-packages", "__pycache__", "idlelib", "tkinter", "config-*")  # of a Python, as uv unpacks one


def copied(folder: Path) -> Path:
    """Copy the launcher and the files that it reads into a new `folder`, and return `folder`."""
    shutil.copytree(ROOT / "envs", folder / "envs")
    for path in ("tidemark", "docs/commands.md", "src/tidemark/__init__.py", BEFORE):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    return folder


def old_python() -> str | None:
    """Return a Python that is not 3.12, from 3.9 on, with pip: of PATH or of pyenv; None if there is none."""
    named = [path for minor in (9, 10, 11, 13, 14) if (path := shutil.which(f"python3.{minor}"))]
    named += map(str, sorted(Path.home().glob(".pyenv/versions/*/bin/python3")))
    for each in named:
        done = subprocess.run([each, "-c", IS_OLD], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Return the environment of an account that has neither Python nor uv, only what the launcher uses of a system."""
    (folder := tmp_path / "bin").mkdir()
    for name in USED:
        (folder / name).symlink_to(shutil.which(name) or pytest.skip(f"there is no {name}"))
    return {"PATH": str(folder), "HOME": str(tmp_path)}


def start(folder: Path, environment: dict[str, str] | None, *words: str) -> subprocess.CompletedProcess[str]:
    command = [folder / "tidemark", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_help_and_version_are_printed_before_anything_is_installed(tmp_path: Path, bare: dict[str, str]) -> None:
    folder = copied(tmp_path / "new")

    def said(*words: str) -> str:
        done = start(folder, bare, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said("--version") == said("-V") == f"tidemark {__version__}\n"
    named = {line.split()[0] for line in said("--help").splitlines() if line.startswith("  ")}
    known: Any = typer.main.get_group(app)
    assert named == {name for name, command in known.commands.items() if not command.hidden}
    assert said() == said("-h") == said("help") == said("--help")
    page = said("list", "series", "--preset", "thesis", "--help")
    assert page.startswith("### list series\n") and "--configfile" in page and "### list systems" not in page
    assert "### list systems\n" in said("list", "--help") and "### doctor\n" in said("help", "doctor")
    assert start(folder, bare, "nope", "--help").returncode == 2 and not (folder / ".venv").exists()


def test_a_command_that_does_not_exist_is_refused_before_anything_is_installed(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    folder = copied(tmp_path / "new")
    done = start(folder, bare, "lsit", "systems")
    assert (done.returncode, done.stdout) == (2, "") and "No such command 'lsit'" in done.stderr
    commands: Any = typer.main.get_group(app)
    found = {name: start(folder, bare, name) for name in commands.commands}
    assert {name: done.returncode for name, done in found.items() if done.returncode != 4} == {}  # there is no Python


def test_an_option_that_a_command_does_not_have_is_refused_before_anything_is_installed(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    folder = copied(tmp_path / "new")
    refused = {("all", "--config", "protocol=smoke", "--foo=1"): "all", ("list", "series", "--foo"): "list series"}
    for words, command in refused.items():
        done = start(folder, bare, *words)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert done.stderr == f"tidemark: no option --foo; './tidemark {command} --help' says more\n"
    allowed: list[tuple[str, ...]] = [("--quiet", "list", "series"), ("test", "--maxfail=1")]
    allowed.append(("all", "--dry-run", "--forcerun", "x", "--cores=2", "--show-failed"))  # the last is abbreviated
    page = (folder / "docs" / "commands.md").read_text()
    for section in page.partition("## Options of Snakemake")[0].split("\n### ")[1:]:
        names = re.findall(r"--[a-z-]+", " ".join(re.findall(r"^\| `(-.*?)`", section, re.MULTILINE)))
        allowed.append((*section.splitlines()[0].split(), *names))
    assert len(allowed) > 40
    found = {words: start(folder, bare, *words) for words in allowed}
    assert {words: done.stderr for words, done in found.items() if done.returncode != 4} == {}  # there is no Python


def test_doctor_answers_before_anything_is_installed_by_an_old_python(tmp_path: Path, bare: dict[str, str]) -> None:
    folder = copied(tmp_path / "new")
    ast.parse((folder / BEFORE).read_text(), feature_version=(3, 9))
    other = old_python() or pytest.skip("there is no Python but 3.12")
    (tmp_path / "bin" / "python3").symlink_to(other)
    said = start(folder, bare, "doctor")
    assert "none of 3.12 with its venv package; the pip of" in said.stdout, said.stderr
    (tmp_path / "bin" / "python3.12").symlink_to(sys.executable)
    found = {each["what"]: each for each in json.loads(start(folder, bare, "doctor", "--json").stdout)}
    assert found["Python"]["found"] == str(tmp_path / "bin" / "python3.12") and found["set-up"]["verdict"] == "note"
    assert not (folder / ".venv").exists() and not (folder / ".tidemark").exists()


def test_missing_python_is_reported_with_what_to_install(tmp_path: Path, bare: dict[str, str]) -> None:
    folder = copied(tmp_path / "new")
    for words in (("list", "stacks"), ("doctor",)):
        done = start(folder, bare, *words)
        assert done.returncode == 4 and "Install one of these and run this again" in done.stderr, done
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize("how", ["uv", "pip"])
def test_uv_gets_the_python_of_the_locks(how: str, tmp_path: Path, bare: dict[str, str]) -> None:
    """uv is on PATH, or pip fetches it by its hash. Its list of Pythons names a copy of this one."""
    folder = copied(tmp_path / "new")
    (pin,) = (each for each in read_lock(ROOT / LOCK) if each.name == "iniconfig")
    (folder / LOCK).write_text(f"{pin}\n")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    if how == "uv":
        (tmp_path / "bin" / "uv").symlink_to(provide_tool("uv", Workspace(ROOT)).with_name("uv"))
    else:
        (tmp_path / "bin" / "python3").symlink_to(old_python() or pytest.skip("there is no Python but 3.12"))
    bare |= {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    done = start(folder, bare | {"UV_PYTHON_DOWNLOADS_JSON_URL": str(downloads(tmp_path))}, "test")
    assert (folder / ".venv" / ".stamp").is_file(), done.stderr
    assert (folder / ".venv" / "bin" / "python").resolve().is_relative_to(folder / ".tidemark" / "python")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "downloads.json", "new", "python.tar.gz"]
    assert (folder / ".tidemark").stat().st_mode & 0o777 == 0o700
    assert (folder / ".tidemark" / "uv").exists() is (how == "pip")


def downloads(folder: Path) -> Path:
    """Return uv's list of Pythons to download, of one: this one, without what an environment does not need."""
    home, archive = Path(sys.base_prefix), folder / "python.tar.gz"
    inside = shutil.ignore_patterns(*LEFT_OUT)

    def wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        above, _, name = member.name.rpartition("/")
        return None if inside(above, [name]) else member

    with tarfile.open(archive, "w:gz", compresslevel=1) as file:
        for path in (home / "bin" / "python3.12", home / "lib" / "python3.12", *home.glob("lib/libpython3*.so*")):
            file.add(path, Path("python", path.relative_to(home)), filter=wanted)
    entry = {
        "name": "cpython", "arch": {"family": "x86_64", "variant": None}, "os": "linux", "libc": "gnu",
        "major": 3, "minor": 12, "patch": sys.version_info.micro, "prerelease": "", "variant": None, "build": None,
        "url": archive.as_uri(), "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }  # fmt: skip
    version = f"3.12.{sys.version_info.micro}"
    (listed := folder / "downloads.json").write_text(json.dumps({f"cpython-{version}-linux-x86_64-gnu": entry}))
    return listed


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
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
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
