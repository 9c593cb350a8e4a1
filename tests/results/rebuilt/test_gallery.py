"""Tests of archives on a page and in the site: each compared only within itself, and damaged ones refused."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.results.links import ADDRESSES, REFERENCE, addresses, pages, problems
from tests.results.test_site import MOST_BYTES
from tests.runs.runset import DUCKLAKE, NULL, PYICEBERG, batched, write_run_set

from tidemark.errors import AnalysisError, ConfigError
from tidemark.pipeline.build import build_claims, build_tables, parts, subjects
from tidemark.pipeline.site import build_site
from tidemark.results.archive.pack import write_archive
from tidemark.results.report.page import POINTS, write_gallery

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


def gallery(places: list[Path], target: Path) -> Path:
    return write_gallery(places, lambda run_set: subjects(parts(run_set)), target)


def data_of(page: Path) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    values: dict[str, Any] = json.loads(found[1])
    return values


def test_each_result_set_has_a_separate_comparison(archives: list[Path], tmp_path: Path) -> None:
    page = gallery(archives, tmp_path / "deep" / "gallery.html")
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
    data = data_of(gallery([archives[0], Path(twin), results], tmp_path / "gallery.html"))
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
        gallery([archives[1], forged], tmp_path / "gallery.html")
    assert not (tmp_path / "gallery.html").exists()


def test_site_has_each_archive_with_its_pages_and_its_report(archives: list[Path], tmp_path: Path) -> None:
    site = build_site(REFERENCE, archives, tmp_path / "site").parent
    assert problems(site) == []
    assert max(path.stat().st_size for path in pages(site) if path.name != POINTS) < MOST_BYTES
    homes = [path for path in (site / "archives").iterdir() if path.is_dir()]
    assert {(home / "archive.zip").read_bytes() for home in homes} == {each.read_bytes() for each in archives}
    assert all((home / "streams" / "tables" / "matrix.html").is_file() for home in homes)
    for home in homes:
        runs = [run for series in data_of(home / "report.html")["series"] for run in series["runs"]]
        assert runs and all((home / run["place"] / "run.json").is_file() for run in runs), "plots and run files"
    assert len(data_of(site / "archives" / "report.html")["gallery"]) == 2
    assert set(ADDRESSES.read_text().splitlines()) <= set(addresses(site)), "an archive takes no address away"


def test_damaged_or_doubled_archive_leaves_the_site_as_it_was(archives: list[Path], tmp_path: Path) -> None:
    site = build_site(REFERENCE, [], tmp_path / "site").parent
    before = addresses(site)
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(archives[0].read_bytes()[:-500])
    with pytest.raises(AnalysisError, match=r"damaged\.zip"):
        build_site(REFERENCE, [damaged], site)
    with pytest.raises(ConfigError, match=r"laptop\.zip: holds the same as another"):
        build_site(REFERENCE, [archives[0], archives[0]], site)
    assert addresses(site) == before
    assert {path.name for path in tmp_path.iterdir()} == {"damaged.zip", "site"}
