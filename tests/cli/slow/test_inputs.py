"""Tests that unusable trips and archives are refused before anything is planned, in a dry run as well."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.runs.runset import DUCKLAKE, write_run_set

from tidemark.dataset.synthetic import write_replica
from tidemark.results.archive.pack import write_archive

SHIPPED = Path(__file__).parents[3] / "config.yaml"


def ended(folder: Path, *words: str) -> tuple[int, str]:
    """Run a command in `folder`; return its exit code and its error line, or all output if it is not one line."""
    command = [sys.executable, "-m", "tidemark", *words, "--configfile", str(SHIPPED)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    lines = done.stderr.splitlines()
    return done.returncode, lines[0] if len(lines) == 1 else done.stdout + done.stderr


@pytest.mark.parametrize(
    "words", [("all", "--dry-run"), ("all",), ("list", "series"), ("show", "config")], ids=" ".join
)
def test_missing_trips_and_archive_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    code, said = ended(tmp_path, *words, "--config", f"dataset.path={tmp_path / 'none.parquet'}")
    assert code == 3
    assert said.startswith("tidemark: --config: key 'dataset.path': found '") and "which is not there" in said
    code, said = ended(tmp_path, *words, "--config", f"archive={tmp_path / 'none.zip'}")
    assert code == 2
    assert said.startswith("tidemark: --config: key 'archive': found '") and "which is not there" in said


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("month") / "month.parquet"
    write_replica(path, 500, 1)
    return path


@pytest.mark.parametrize("words", [("all", "--dry-run"), ("all",)], ids=" ".join)
def test_unusable_trips_are_refused(words: tuple[str, ...], month: Path, tmp_path: Path) -> None:
    text, cut, lacking = (tmp_path / f"{name}.parquet" for name in ("text", "cut", "lacking"))
    text.write_bytes(b"\x16\\VendorID\n" * 9)
    cut.write_bytes(month.read_bytes()[:-100])
    pq.write_table(pq.read_table(month).drop_columns(["fare_amount", "VendorID"]), lacking)
    for path, why in (
        (text, "not a Parquet file: it does not begin with PAR1."),
        (cut, "truncated: it has "),
        (lacking, "not a whole yellow month: found tpep_pickup_datetime"),
    ):
        code, said = ended(tmp_path, *words, "--config", f"dataset.path=[{month}, {path}]")
        assert code == 3 and said.startswith(f"tidemark: {path}: {why}"), said
        assert "\\" not in said and "b'" not in said
    assert "missing, of a yellow month's columns: VendorID, fare_amount." in said


def test_process_alive_while_series_are_made_cold_does_not_load_pyarrow(month: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tidemark.config import load; "
        "from tidemark.pipeline.plan import refuse_unusable; "
        f"refuse_unusable(load(Path({str(SHIPPED)!r}), [{f'dataset.path={month}'!r}])); print('pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("words", [("all", "--dry-run"), ("all",)], ids=" ".join)
def test_damaged_archive_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    whole = write_archive(write_run_set(tmp_path / "set", (DUCKLAKE,), window_s=3.0), tmp_path / "whole.zip")
    content = bytearray(whole.read_bytes())
    cut, changed = tmp_path / "cut.zip", tmp_path / "changed.zip"
    cut.write_bytes(content[: len(content) // 2])
    content[content.index(b"PAR1") + 4] ^= 1
    changed.write_bytes(content)
    for path, why in ((cut, "not a zip file"), (changed, "'results/")):
        code, said = ended(tmp_path, *words, "--config", f"archive={path}")
        assert code == 14 and said.startswith(f"tidemark: {path}: {why}"), said


@pytest.mark.parametrize("name", ['it\'s "a" month.parquet', "50 %d month#1.parquet", "{name} $x ü.parquet"])
def test_a_file_of_trips_may_have_any_name(name: str, month: Path, tmp_path: Path) -> None:
    shutil.copy(month, tmp_path / name)
    given = '"' + str(tmp_path / name).replace('"', '\\"') + '"'
    code, said = ended(
        tmp_path, "all", "--dry-run", "--config", 'streams.systems={"null": {}}', f"dataset.path={given}"
    )
    assert code == 0, said
