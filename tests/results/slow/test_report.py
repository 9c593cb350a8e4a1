"""Tests of the report: one self-contained file with every claim and run, and thinning that keeps extreme samples.

Tests of its rendering in a browser are in test_report_browser.py.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.results.page_data import data_of

from tidemark.pipeline.build import build_report, parts, subjects
from tidemark.results.report import page as report
from tidemark.results.report.data import thinned
from tidemark.runs.runset import RunSet


def test_report_is_one_self_contained_file(reported: Path) -> None:
    page = (reported / "report.html").read_text()
    assert not re.search(r"<link|<img|\bsrc=|@import|https?://|url\(|fetch\(|XMLHttpRequest", page)
    assert "default-src 'none'" in page
    assert len(page.encode()) < 5_000_000
    before = (reported / "report.html").read_bytes()
    build_report(reported)
    assert (reported / "report.html").read_bytes() == before


def test_report_holds_every_claim_and_every_run(reported: Path) -> None:
    data = data_of((reported / "report.html").read_text())
    claims = json.loads((reported / "claims.json").read_text())
    assert data["claims"] == claims
    series = data["series"]
    labels = {run["label"] for each in series for run in each["runs"]}
    assert labels == {run.label for run in RunSet.load(reported).runs}
    for each in series:
        for run in each["runs"]:
            assert {"Oracle", "Cold proof", "Time budget", "Window"} <= set(run["facts"])
            assert run["manifest"]["run"] == run["number"]


def test_text_of_a_run_cannot_end_the_script(reported: Path) -> None:
    page = (reported / "report.html").read_text()
    assert "</script><b>" not in page
    failed = [each for each in data_of(page)["series"] if each["status"] == "failed"]
    assert failed[0]["reason"] == "</script><b>no such column"


def test_thinning_keeps_extremes_and_measured_points() -> None:
    rng = np.random.default_rng(3)
    x = np.arange(100_000) / 1e3
    y = rng.lognormal(size=len(x))
    y[77_123] = 1e4
    y[12_345] = 1e-9
    few_x, few_y = thinned(x, y, 900)
    assert len(few_x) <= 900 and np.all(np.diff(few_x) > 0)
    assert few_y.max() == 1e4 and few_y.min() == 1e-9
    assert np.array_equal(few_y, y[np.round(few_x * 1e3).astype(int)])
    same_x, same_y = thinned(x[:900], y[:900], 900)
    assert np.array_equal(same_x, x[:900]) and np.array_equal(same_y, y[:900])


def test_a_page_that_would_be_too_large_leaves_out_runs(
    reported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = len((reported / "report.html").read_bytes())
    results = Path(shutil.copytree(reported, tmp_path / "results"))
    for most in (whole - 1, 10_000):
        monkeypatch.setattr(report, "MOST_BYTES", most)
        page = build_report(results).read_text()
        data = data_of(page)
        assert [each["label"] for each in data["read_first"]][-1] == "Not in this page"
        assert len(page.encode()) <= most or not any(series["runs"] for series in data["series"])
        assert data["claims"] == json.loads((results / "claims.json").read_text())


def test_report_on_the_site_has_its_raw_points_beside_it_if_it_is_too_large(
    reported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_set = RunSet.load(reported)
    page, archive = tmp_path / "report.html", ("archive.zip", "the archive")
    for most in (10_000_000, 0):
        monkeypatch.setattr(report, "MOST_ON_SITE", most or page.stat().st_size // 2)
        report.write_site_report(run_set, subjects(parts(run_set)), [], [archive], page)
        assert (tmp_path / report.POINTS).exists() == (most == 0)
    small, whole = (data_of((tmp_path / name).read_text()) for name in ("report.html", report.POINTS))
    assert small["downloads"][0][0] == report.POINTS and whole["downloads"] == [[*archive]]
    points = [sum(len(run["write"]) for series in each["series"] for run in series["runs"]) for each in (small, whole)]
    assert points[0] < points[1] and small["claims"] is None and small["back"] == "index.html"
