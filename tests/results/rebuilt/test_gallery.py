"""Tests of the gallery: result sets side by side, each compared only within itself, and damaged ones refused."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runs.runset import DUCKLAKE, NULL, PYICEBERG, batched, write_run_set
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.errors import AnalysisError
from tidemark.pipeline.build import build_claims, build_gallery, build_tables
from tidemark.results.archive.pack import write_archive

MODELS = [DUCKLAKE, batched(DUCKLAKE), replace(NULL, median_ms=1.0)]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = []
    elsewhere = [replace(model, machine="fedcba9876543210", median_ms=3 * model.median_ms) for model in MODELS]
    again = replace(PYICEBERG, disturbed={1: "steal: the hypervisor kept 0.30 processors on average"})
    for name, models, synthetic in (("laptop", MODELS, True), ("server", [*elsewhere, again], False)):
        results = write_run_set(tmp_path_factory.mktemp(name), models, window_s=2.0, synthetic=synthetic)
        build_tables(results)
        build_claims(results)
        made.append(write_archive(results, tmp_path_factory.mktemp("zip") / f"{name}.zip"))
    return made


def data_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    values: dict[str, Any] = json.loads(found[1])
    return values


def test_each_result_set_has_a_separate_comparison(archives: list[Path], tmp_path: Path) -> None:
    page = build_gallery(archives, tmp_path / "deep" / "gallery.html")
    data = data_of(page)
    assert [each["name"] for each in data["gallery"]] == ["laptop", "server"]
    assert [each["synthetic"] for each in data["gallery"]] == [True, False]
    assert all(re.fullmatch("[0-9a-f]{64}", each["sha256"]) for each in data["gallery"])
    assert "1 of 12 counted runs were disturbed" in data["gallery"][1]["marks"][0]
    laptop, server = data["matrix"]["groups"]
    assert (laptop["source"], server["source"]) == ("laptop", "server")
    assert len(laptop["rows"]) == 2 and len(server["rows"]) == 3
    assert {len(ratios) for ratios in server["ratios"].values()} == {len(server["rows"])}, "none goes across"
    rates = [group["rows"][0]["cells"]["rate-single"]["value"] for group in (laptop, server)]
    assert rates[0] == pytest.approx(3 * rates[1], rel=0.1)
    assert {each["name"] for each in data["systems"]} == {"ducklake", "null", "iceberg-pyiceberg"}
    assert not re.search(r"https?://|\bsrc=|url\(", page.read_text())


def test_duplicate_names_are_numbered_and_folders_are_accepted(archives: list[Path], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    twin = shutil.copy(archives[0], tmp_path / "other" / "laptop.zip")
    results = write_run_set(tmp_path / "mine", MODELS, window_s=1.0)
    data = data_of(build_gallery([archives[0], Path(twin), results], tmp_path / "gallery.html"))
    assert [each["name"] for each in data["gallery"]] == ["laptop", "laptop (2)", "results"]
    assert data["gallery"][2]["sha256"] == ""


def test_changed_archive_is_refused_by_name(archives: list[Path], tmp_path: Path) -> None:
    forged = tmp_path / "forged.zip"
    with zipfile.ZipFile(archives[0]) as old, zipfile.ZipFile(forged, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            if member.filename.endswith("run-1/run.json"):
                content = content.replace(b'"events": ', b'"events": 1')
            new.writestr(member, content)
    with pytest.raises(AnalysisError, match=r"forged\.zip.*run-1/run\.json"):
        build_gallery([archives[1], forged], tmp_path / "gallery.html")
    assert not (tmp_path / "gallery.html").exists()


def test_command_prints_the_path_of_the_page(archives: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "gallery.html"
    done = CliRunner().invoke(app, ["gallery", *map(str, archives), "--target", str(target)])
    assert done.exit_code == 0 and str(target) in done.output
    assert target.is_file()
