"""Result sets of several studies: each study is compared separately, and the tables that all share are made."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runs.runset import DUCKLAKE, INLINED, NULL, Model, write_run_set
from tests.runs.several import STUDY, add_tables
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.errors import Incomparable
from tidemark.pipeline.build import build_tables
from tidemark.pipeline.reference import build_comparison
from tidemark.results.archive.pack import write_archive

WINDOW_S = 3.0
BOTH = (DUCKLAKE, INLINED, NULL)


def streams(root: Path, seed: int = 1, models: tuple[Model, ...] = BOTH) -> Path:
    return write_run_set(root, models, window_s=WINDOW_S, seed=seed)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_tables(streams(tmp_path_factory.mktemp("before")), 0.2)


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_tables(streams(tmp_path_factory.mktemp("after"), 2), 0.4)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
def test_each_study_is_compared_by_its_own_quantities(before: Path, after: Path, tmp_path: Path, packed: bool) -> None:
    other = write_archive(after, tmp_path / "after.zip") if packed else after
    done = CliRunner().invoke(app, ["compare", str(before), str(other), "--target", str(tmp_path / "made")])
    assert done.exit_code == 0, done.output
    assert [path.name for path in sorted((tmp_path / "made").iterdir())] == [STUDY, "streams"]
    (slower,) = rows(tmp_path / "made" / STUDY / "compare.csv")
    assert float(slower["write"]) == pytest.approx(2.0)
    assert {row["verdict"] for row in rows(tmp_path / "made/streams/compare.csv")} == {"the same within 10 %"}
    assert "study streams: B against A" in done.stdout and f"study {STUDY}: B against A" in done.stdout


def test_study_missing_in_one_set_is_named_and_the_other_compared(before: Path, tmp_path: Path) -> None:
    alone = streams(tmp_path / "alone", 2)
    made, _, left_out = build_comparison(before, alone, tmp_path / "made")
    assert [table.name for table in made] == ["compare", "compare-ratios"]
    assert left_out == [f"study {STUDY}: {alone} has no series of it"]


def test_incomparable_study_does_not_hide_the_other(before: Path, tmp_path: Path) -> None:
    other = add_tables(streams(tmp_path / "other", 2, tuple(replace(m, mode="batch") for m in BOTH)), 0.2)
    made, _, left_out = build_comparison(before, other, tmp_path / "made")
    assert len(made) == len(left_out) == 1 and "study streams: " in left_out[0] and "the modes differ" in left_out[0]
    with pytest.raises(Incomparable, match=f"study {STUDY}: .* has no series of it; study streams: .* modes differ"):
        build_comparison(before, streams(tmp_path / "none", 2, (replace(DUCKLAKE, mode="batch"),)), tmp_path / "no")


def test_common_tables_are_made_from_several_studies(tmp_path: Path) -> None:
    disturbed = replace(DUCKLAKE, measured_again={1: "foreign: other work took 1.20 processors"})
    results = add_tables(streams(tmp_path, models=(disturbed, NULL)))
    index = json.loads(build_tables(results).read_text())
    assert {entry["study"] for entry in index["tables"]} == {None, STUDY, "streams"}
    of_writes = [row for row in rows(results / "tables/attempts.csv") if row["quantity"] == "Median write [ms]"]
    assert [12 < float(row["median"]) < 20 for row in of_writes] == [True]
