"""The report: one file, no network, every plot drawn, usable by keyboard, and no sample's extreme thinned away."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.runs.runset import DELTA, DUCKLAKE, ICEBERG_DUCKDB, NULL, PYICEBERG, batched, write_run_set

from tidemark.errors import AnalysisError
from tidemark.pipeline.build import build_claims, build_report
from tidemark.results.report import page as report
from tidemark.results.report.data import thinned
from tidemark.runs.runset import RunSet

MODELS = (
    replace(DUCKLAKE, reason=None),
    PYICEBERG,
    replace(NULL, median_ms=1.0),
    replace(DELTA, reason="</script><b>no such column"),
    batched(ICEBERG_DUCKDB),
    batched(DUCKLAKE),
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Runs in the page after it was built; its findings are read from attributes of the body.
PROBE = """
<script>
const found = {};
const place = plots.findIndex(each => each.kind.title.startsWith("Write times") && each.mode === "single");
const canvas = document.querySelectorAll("canvas")[place];
const key = name => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
const plot = plots[place].plot;
canvas.focus();
key("n");
found.tip = document.getElementById("tip").hidden ? "" : document.getElementById("tip").textContent;
const before = plot.view.x.slice();
key("+");
found.zoomed = plot.view.x[1] - plot.view.x[0] < before[1] - before[0];
key("0");
found.reset = plot.view.x[0] === before[0] && plot.view.x[1] === before[1];
const count = Number(canvas.dataset.drawn);
document.querySelector("input[name=system][value='ducklake']").click();
found.fewer = Number(canvas.dataset.drawn) < count;
found.harness = document.querySelector("input[name=system][value='null']").checked;
document.querySelector("#verdicts button").click();
found.hiddenRows = [...document.querySelectorAll("#ledger tbody tr")].filter(row => row.hidden).length;
const detail = document.querySelector("#run-list details");
detail.open = true;
setTimeout(() => {
  found.manifest = detail.querySelector("pre")?.textContent.length ?? 0;
  found.wide = document.documentElement.scrollWidth > window.innerWidth;
  const told = document.createElement("script");
  told.id = "found"; told.type = "application/json"; told.textContent = JSON.stringify(found);
  document.body.append(told);
}, 50);
</script>
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_run_set(tmp_path_factory.mktemp("report"), MODELS, window_s=4.0)
    build_claims(made)
    build_report(made)
    return made


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    values: dict[str, object] = json.loads(found[1])
    return values


def test_it_is_one_file_that_asks_for_nothing(results: Path) -> None:
    page = (results / "report.html").read_text()
    assert not re.search(r"<link|<img|\bsrc=|@import|https?://|url\(|fetch\(|XMLHttpRequest", page)
    assert "default-src 'none'" in page
    assert len(page.encode()) < 5_000_000
    before = (results / "report.html").read_bytes()
    build_report(results)
    assert (results / "report.html").read_bytes() == before


def test_it_holds_every_claim_and_every_run(results: Path) -> None:
    data = data_of((results / "report.html").read_text())
    claims = json.loads((results / "claims.json").read_text())
    assert data["claims"] == claims
    series = data["series"]
    assert isinstance(series, list)
    labels = {run["label"] for each in series for run in each["runs"]}
    assert labels == {run.label for run in RunSet.load(results).runs}
    for each in series:
        for run in each["runs"]:
            assert {"Oracle", "Cold proof", "Time budget", "Window"} <= set(run["facts"])
            assert run["manifest"]["run"] == run["number"]


def test_text_of_a_run_cannot_end_the_script(results: Path) -> None:
    page = (results / "report.html").read_text()
    assert "</script><b>" not in page
    failed = [each for each in data_of(page)["series"] if each["status"] == "failed"]  # type: ignore[attr-defined]
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


def test_a_page_that_would_be_too_large_is_refused(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_BYTES", 10_000)
    with pytest.raises(AnalysisError, match="allowed: 10,000"):
        build_report(results)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on PATH")
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_draws_it_and_takes_the_keyboard(results: Path, tmp_path: Path, width: int) -> None:
    page = tmp_path / "report.html"
    page.write_text((results / "report.html").read_text().replace("</body>", f"{PROBE}</body>"))
    done = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--window-size={width},900",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=3000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    assert 'data-errors="0"' in done.stdout and 'data-ready="yes"' in done.stdout
    drawn = [int(count) for count in re.findall(r'data-drawn="(\d+)"', done.stdout)]
    assert len(drawn) >= 18 and min(drawn) > 0, "what has nothing to show is hidden"
    found = json.loads(re.findall(r'<script id="found" type="application/json">(.*?)</script>', done.stdout)[0])
    assert re.search(r"DuckLake, run 0: .* ms at .* s", found["tip"]), found
    assert found["zoomed"] and found["reset"] and found["fewer"] and found["hiddenRows"] > 0
    assert not found["harness"]
    assert found["manifest"] > 500
    assert not found["wide"], "the page scrolls sideways"
