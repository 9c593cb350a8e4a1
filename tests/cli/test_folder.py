"""Tests of `open` and `clean`: the browser gets the page, and only folders that nothing uses are removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.runs.runset import DUCKLAKE, write_run_set
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.config import load
from tidemark.integrity import seal
from tidemark.paths import REPOSITORY, Workspace
from tidemark.pipeline.plan import make_plan
from tidemark.software.stacks import environment

CONFIG = ("--configfile", str(REPOSITORY / "config.yaml"), "--set", "protocol=smoke")


@pytest.mark.parametrize(("browser", "code"), [("/bin/echo", 0), ("/bin/false", 13)])
def test_page_is_opened_by_the_browser_that_is_named(browser: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "a b.html").write_text("")
    elsewhere = {name: value for name, value in os.environ.items() if not name.endswith("DISPLAY")}
    done = subprocess.run(
        [sys.executable, "-m", "tidemark", "open", "a b.html"],
        cwd=tmp_path,
        env={**elsewhere, "BROWSER": browser, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert ((tmp_path / "a b.html").as_uri() in done.stdout) == (code == 0)
    assert ("name one in the variable BROWSER" in done.stderr) == (code != 0)


def folder(path: Path, name: str) -> Path:
    """Make a folder with a file of 1,000 bytes."""
    path.mkdir(parents=True)
    (path / name).write_bytes(bytes(1000))
    return path


def test_only_what_nothing_uses_is_listed_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEMARK_CACHE", raising=False)
    write_run_set(tmp_path, (DUCKLAKE,), window_s=1.0)
    workspace, planned = Workspace(tmp_path), make_plan(load(REPOSITORY / "config.yaml", ["protocol=smoke"]))
    of_results = next(tmp_path.glob("results/runs/*/*/*"))
    (of_results / "spec.json").write_text("{}")
    kept = [
        of_results,
        folder(tmp_path / planned.series[0].directory, "spec.json"),
        folder(tmp_path / planned.dataset_directory, "trips.parquet"),
        folder(environment("current", workspace), "bin"),
    ]
    old = [
        folder(tmp_path / "results/runs/streams/ducklake/single/000000000000", "spec.json"),
        folder(tmp_path / "data/prepared/000000000000", "trips.parquet"),
        folder(tmp_path / ".tidemark/cache/envs/current-000000000000", "bin"),
    ]
    seal(old[2])

    def cleaned(*words: str) -> list[dict[str, object]]:
        done = CliRunner().invoke(app, ["clean", *CONFIG, "--json", *words])
        assert done.exit_code == 0, (done.output, done.exception)
        found: list[dict[str, object]] = json.loads(done.stdout)
        return found

    assert {(each["path"], each["bytes"]) for each in cleaned()} == {
        (str(path.relative_to(tmp_path)), 1000) for path in old
    }
    assert all(path.exists() for path in (*kept, *old))
    assert len(cleaned("--force")) == len(old) and cleaned() == []
    assert all(path.exists() for path in kept) and not any(path.exists() for path in old)
    assert [path.name for path in (tmp_path / ".tidemark/cache/envs").iterdir()] == [kept[3].name]
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path.parent / "shared"))
    folder(tmp_path.parent / "shared" / "envs" / "current-000000000000", "bin")
    assert cleaned() == [], "a shared cache is left alone"
