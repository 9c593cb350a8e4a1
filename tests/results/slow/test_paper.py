"""Tests of the paper: no numbers in its sources, sentences that follow the results, and reproducible bytes."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import typst
from tests.runs.runset import DELTA, DUCKLAKE, ICEBERG_DUCKDB, INLINED, NULL, PYICEBERG, batched, write_run_set

from tidemark.analysis.formatting import against, listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.statistics import Estimate
from tidemark.errors import AnalysisError
from tidemark.paths import REPOSITORY
from tidemark.pipeline.build import build_claims, build_paper, build_tables
from tidemark.results.claims.claims import VERDICTS
from tidemark.results.paper.values import PAPER, counted
from tidemark.runs.runset import RunSet
from tidemark.studies.streams.findings import Writer
from tidemark.studies.streams.metrics import QUANTITIES
from tidemark.studies.streams.paper import streaming

STUDIES = REPOSITORY / "src" / "tidemark" / "studies"
MODELS = (DUCKLAKE, INLINED, PYICEBERG, ICEBERG_DUCKDB, NULL, DELTA, batched(DUCKLAKE), batched(ICEBERG_DUCKDB))
SECTIONS = [*sorted((PAPER / "sections").glob("*.typ")), *sorted(STUDIES.glob("*/*.typ"))]
LAYOUT = [PAPER / "template.typ", PAPER / "main.typ"]
NAMES = (
    r'"(?:figure-[A0-9]+\.[0-9]+|[a-z-]+)"|"[a-z./]*\.typ"|@figure-[A0-9.]+|table-[A0-9.]+'
    r'|heading\(numbering: "A\.1"\)|SHA-256|run 0'
)
MEASURES = r"\b[0-9.]+(?:pt|em|cm|mm|fr|%)"
CODE = r"x: 0|colspan: [0-9]|level: [0-9]|slice\(1\)|[=>]=? [09]\b|\{ [12] \}|update\(0\)"
SPELT = r"\b(?:hundreds?|thousands?|millions?|dozens?|percent|twice|tenfold|threefold|halves)\b"


def literal_numbers(text: str, prose: bool) -> list[str]:
    """Return digits and spelt-out amounts of a Typst source that are neither a name nor, outside prose, a measure."""
    text = re.sub(r"(?m)//.*$", "", text)
    text = re.sub(NAMES, "", text)
    if not prose:
        text = re.sub(r'"[^"]*"', "", text)
        text = re.sub(f"{MEASURES}|{CODE}", "", text)
    else:
        text = text.replace("update(0)", "")
    return re.findall(r"[^\s]*[0-9][^\s]*", text) + re.findall(SPELT, text, re.IGNORECASE)


@pytest.mark.parametrize("path", SECTIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_prose_holds_no_number(path: Path) -> None:
    assert literal_numbers(path.read_text(), prose=True) == []


@pytest.mark.parametrize("path", LAYOUT, ids=lambda path: path.name)
def test_layout_holds_no_number_but_measures(path: Path) -> None:
    assert literal_numbers(path.read_text(), prose=False) == []


@pytest.mark.parametrize("planted", ["It is 12 times as fast.", "It took 9.3 ms.", "A ninth, or 11 %", "twice as fast"])
def test_a_planted_number_is_found(planted: str) -> None:
    for path in SECTIONS:
        assert literal_numbers(path.read_text() + f"\n{planted}\n", prose=True)


def complete(results: Path) -> Path:
    """Write tables, claims and an index of undrawn figures with a reason for a run set, and return `results`."""
    build_tables(results)
    build_claims(results)
    sources = " ".join(path.read_text() for path in SECTIONS)
    names = sorted(
        set(re.findall(r'"(figure-[\w.]+|[a-z]+-(?:single|batch)|ages|time-budget|cold-effect|then-and-now)"', sources))
    )
    entries = [{"name": name, "title": name, "files": [], "reason": "of the test", "notes": []} for name in names]
    (results / "figures").mkdir()
    (results / "figures" / "index.json").write_text(json.dumps({"figures": entries}))
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete(write_run_set(tmp_path_factory.mktemp("paper"), MODELS, window_s=4.0))


def test_paper_is_typeset_with_the_same_bytes_each_time(results: Path) -> None:
    first = build_paper(results).read_bytes()
    assert first.startswith(b"%PDF") and b"D:20260102" in first
    assert build_paper(results).read_bytes() == first


def query(results: Path, selector: str) -> list[dict[str, object]]:
    found = typst.query(results / "paper" / "main.typ", selector, root=results, ignore_system_fonts=True)
    values: list[dict[str, object]] = json.loads(found)
    return values


def test_synthetic_dataset_is_named_on_the_first_page(results: Path, tmp_path: Path) -> None:
    build_paper(results)
    assert [each["value"] for each in query(results, "<synthetic>")] == [1]
    real = write_run_set(tmp_path, MODELS[:2], window_s=2.0, synthetic=False)
    build_paper(complete(real))
    assert query(real, "<synthetic>") == []


def test_values_come_from_the_run_files(results: Path) -> None:
    build_paper(results)
    values = json.loads((results / "paper" / "values.json").read_text())
    run_set = RunSet.load(results)
    assert values["values"]["events"] == f"{sum(run.manifest.events for run in run_set.runs):,}"
    assert values["values"]["version-duckdb"] == "1.4.4"
    claims = json.loads((results / "claims.json").read_text())
    assert values["values"]["claims-outcomes"] == counted(claims["counts"])
    rows = {row["system"]: row for row in values["results"]["single"]["rows"]}
    assert rows["Iceberg (DuckDB)"]["thesis"] == "124.303"
    assert "no such column" in rows["Delta Lake (delta-rs)"]["missing"]


def test_no_claim_of_a_verdict_is_not_counted() -> None:
    none = dict.fromkeys(VERDICTS, 0)
    assert counted(none) == "0 hold here and 0 do not"
    some = none | {"reproduced": 2, "inconclusive": 1, "not testable here": 1}
    assert counted(some) == "2 hold here, 0 do not, 1 is inconclusive and 1 cannot be tested here"


def test_an_unknown_value_stops_the_paper(results: Path, tmp_path: Path) -> None:
    paper = tmp_path / "paper"
    shutil.copytree(PAPER, paper)
    section = paper / "sections" / "threats.typ"
    section.write_text(section.read_text() + '\n#v("speed-of-light")\n')
    with pytest.raises(AnalysisError, match="no value is called speed-of-light"):
        build_paper(results, paper)


def test_sentences_follow_the_results(tmp_path: Path) -> None:
    def inlining(median_ms: float) -> str:
        root = tmp_path / str(median_ms)
        models = (replace(DUCKLAKE, median_ms=10.0), replace(INLINED, median_ms=median_ms))
        return Writer(Measures(RunSet.load(write_run_set(root, models, window_s=6.0)), QUANTITIES)).pair(
            "ducklake-inlined", "ducklake", "single"
        )

    assert "DuckLake + inlining has a higher throughput than DuckLake" in inlining(7.0)
    assert "DuckLake + inlining has a lower throughput than DuckLake" in inlining(14.0)
    assert "are not distinguishable" in inlining(10.0)


def test_a_system_that_the_configuration_lacks_is_not_compared(results: Path) -> None:
    writer = Writer(Measures(RunSet.load(results), QUANTITIES))
    assert writer.pair("ducklake", "hudi", "single") == ""
    assert "cannot be compared: " in writer.pair("ducklake", "delta-rs", "single")


def test_no_growth_is_reported_as_no_trend(results: Path, tmp_path: Path) -> None:
    flat = write_run_set(tmp_path, [replace(model, slope_ms=0.0) for model in MODELS], window_s=4.0)
    found = Writer(Measures(RunSet.load(flat), QUANTITIES)).growth("single")
    assert "shows no trend for any system" in found, found
    grown = Writer(Measures(RunSet.load(results), QUANTITIES)).growth("single")
    assert "it grows with the number of commits for Iceberg (PyIceberg)" in grown, grown


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"read_ahead": 16}, "One read returns up to 16 events"),
        ({"read_ahead": 1}, "The loop reads and writes one event"),
        ({}, "The loop reads and writes one event"),
    ],
)
def test_read_ahead_is_described(tmp_path: Path, config: dict[str, int], said: str) -> None:
    results = write_run_set(tmp_path, (DUCKLAKE,), window_s=2.0, config=config)
    assert streaming(RunSet.load(results))["read-ahead"].startswith(said)


def test_a_run_set_without_runs_has_no_paper(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, (DELTA,))
    with pytest.raises(AnalysisError):
        build_paper(complete(results))


def test_words_for_lists_and_ratios() -> None:
    assert [listed(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    words = ("larger", "smaller", "same")
    ratios = ((1.1, 1.3), (0.7, 0.9), (0.9, 1.1))
    assert [against(Estimate(1.0, low, high, 9, "x"), *words) for low, high in ratios] == list(words)
