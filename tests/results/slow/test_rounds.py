"""Tests of results of a round: every result states the round, and results of a complete plan mention none."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.results.compared import both
from tests.results.places import builder, judge
from tests.runs.runset import DUCKLAKE, INLINED, Model, write_run_set

from tidemark.analysis.measures import Measures
from tidemark.errors import AnalysisError
from tidemark.pipeline.build import build_claims, build_report, build_tables
from tidemark.results.archive.crate import METADATA
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import unpack_archive
from tidemark.results.claims.export import to_markdown
from tidemark.results.figures.context import FigureContext
from tidemark.results.paper.method_text import setting
from tidemark.results.tables import setup
from tidemark.runs.plan import PlanFile, Round
from tidemark.runs.runset import RunSet
from tidemark.runs.views import unfinished
from tidemark.studies.streams import tables as performance
from tidemark.studies.streams.metrics import QUANTITIES

SENTENCE = "Round 1 of 2: each system was measured once so far; "
SENTENCE += "intervals will still change, as how repeats differ is not in them."
MODELS = tuple(replace(model, repeats=(1.0, 1.1)) for model in (DUCKLAKE, INLINED))


@pytest.fixture(scope="module")
def of_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run_set(tmp_path_factory.mktemp("round"), MODELS, window_s=2.0, of_round=1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run_set(tmp_path_factory.mktemp("whole"), MODELS, window_s=2.0)


def test_a_round_is_read_from_its_plan(of_round: Path, whole: Path) -> None:
    run_set = RunSet.load(of_round)
    assert run_set.round == Round(1, 2) and run_set.of("streams").round == Round(1, 2)
    assert {len(series.repeats) for series in run_set.series} == {1}
    assert RunSet.load(whole).round is None


def changed(results: Path, change: Callable[[dict[str, Any]], object], target: Path) -> Path:
    """Write the plan of `results`, modified by `change`, to `target`, and return `target`."""
    plan = json.loads((results / "plan.json").read_text())
    change(plan)
    target.write_text(json.dumps(plan))
    return target


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (1, "key 'round': found 1; allowed: an object"),
        ({"number": 1}, "key 'round.of': found nothing; allowed: a whole number"),
        ({"number": "1", "of": 2}, "key 'round.number': found '1'; allowed: a whole number"),
        ({"number": 1, "of": 1}, "key 'round.of': found 1; allowed: 2 or more"),
        ({"number": 2, "of": 2}, "key 'round.number': found 2; allowed: 1 to 1, less than 'of'"),
        ({"number": 0, "of": 3}, "key 'round.number': found 0; allowed: 1 to 2, less than 'of'"),
    ],
)
def test_invalid_round_is_refused(of_round: Path, tmp_path: Path, said: object, words: str) -> None:
    path = changed(of_round, lambda plan: plan.update(round=said), tmp_path / "plan.json")
    with pytest.raises(AnalysisError) as refused:
        PlanFile.read(path)
    assert str(refused.value) == f"{path}: {words}"


def test_a_series_of_a_later_round_is_refused(whole: Path, tmp_path: Path) -> None:
    path = changed(whole, lambda plan: plan.update(round={"number": 1, "of": 2}), tmp_path / "plan.json")
    with pytest.raises(AnalysisError) as refused:
        PlanFile.read(path)
    assert str(refused.value) == f"{path}: key 'series[2].repeat': found 2; allowed: 1 to 1, the plan's round"


@pytest.mark.parametrize(
    ("models", "number", "words"),
    [
        (MODELS, 1, SENTENCE),
        (
            (replace(DUCKLAKE, repeats=(1.0, 1.0, 1.0)),),
            2,
            "Round 2 of 3: each system was measured twice so far; intervals will shrink.",
        ),
        (
            (replace(DUCKLAKE, repeats=(1.0,) * 4),),
            3,
            "Round 3 of 4: each system was measured 3 times so far; intervals will shrink.",
        ),
        ((replace(DUCKLAKE, repeats=(1.0,) * 3), INLINED), 2, "Round 2 of 3: each system was measured up to twice so"),
    ],
)
def test_sentence_counts_rounds_and_repeats(tmp_path: Path, models: tuple[Model, ...], number: int, words: str) -> None:
    run_set = RunSet.load(write_run_set(tmp_path, models, window_s=1.0, of_round=number))
    (said,) = unfinished(run_set)
    assert said.startswith(words)


def places(results: Path) -> dict[str, str]:
    """Return the notes or the opening text of each kind of result, by name."""
    run_set = RunSet.load(results)
    measures = Measures(run_set, QUANTITIES)
    context = FigureContext.of(measures)
    build_tables(results)
    build_claims(results)
    build_report(results)
    found = {table.name: " ".join(table.notes) for table in setup.build(builder(measures))}
    found |= {table.name: " ".join(table.notes) for table in performance.build(builder(measures))}
    found["figure"] = " ".join(context.placeholder("A figure", "of the test").notes)
    found["paper"] = setting(run_set)["mixture"]
    page = (results / "report.html").read_text()
    found["report"] = page.partition('"read_first":')[2].partition("]")[0]
    found["claims"] = to_markdown(judge(results)).partition("| Claim |")[0]
    found["claims.md"] = (results / "claims.md").read_text().partition("| Claim |")[0]
    found["a table's file"] = (results / "tables/streams/throughput.md").read_text()
    return found


def test_round_is_stated_in_every_result(of_round: Path) -> None:
    found = places(of_round)
    assert len(found) > 10
    assert [name for name, text in found.items() if SENTENCE not in text] == []


def test_complete_plan_mentions_no_round(whole: Path) -> None:
    assert unfinished(RunSet.load(whole)) == ()
    assert [name for name, text in places(whole).items() if "ound 1 of" in text or "so far" in text] == []


def test_round_is_kept_in_an_archive(of_round: Path, tmp_path: Path) -> None:
    archive = write_archive(of_round, tmp_path / "round.zip")
    rebuilt = unpack_archive(archive, tmp_path / "unpacked").parent
    assert RunSet.load(rebuilt).round == Round(1, 2)
    assert (rebuilt / "plan.json").read_bytes() == (of_round / "plan.json").read_bytes()


def test_an_archive_with_another_round_than_its_series_is_not_unpacked(whole: Path, tmp_path: Path) -> None:
    """The archive is packed by hand, since 'archive' itself would refuse; its digests are correct."""
    plan = whole / "plan.json"
    content = plan.read_bytes()
    archive = write_archive(whole, tmp_path / "good.zip")
    changed(whole, lambda each: each.update(round={"number": 1, "of": 2}), plan)
    forged = plan.read_bytes()
    with pytest.raises(AnalysisError, match=r"series\[2\]\.repeat"):
        write_archive(whole, tmp_path / "bad.zip")
    plan.write_bytes(content)
    bad = repacked(archive, tmp_path / "bad.zip", "results/plan.json", forged)
    with pytest.raises(AnalysisError, match=r"bad\.zip: results/plan\.json: key 'series\[2\]\.repeat': found 2"):
        unpack_archive(bad, tmp_path / "unpacked")
    assert not (tmp_path / "unpacked").exists()


def repacked(archive: Path, target: Path, name: str, content: bytes) -> Path:
    """Write `archive` to `target` with the content of one file replaced and its metadata entry updated."""
    with zipfile.ZipFile(archive) as file:
        members = {each: file.read(each) for each in file.namelist()}
    crate = json.loads(members[METADATA])
    entry = next(each for each in crate["@graph"] if each["@id"] == name)
    entry |= {"contentSize": str(len(content)), "sha256": hashlib.sha256(content).hexdigest()}
    with zipfile.ZipFile(target, "w") as file:
        for each, data in (members | {name: content, METADATA: json.dumps(crate).encode()}).items():
            file.writestr(each, data)
    return target


def test_compare_warns_of_a_round(of_round: Path, whole: Path) -> None:
    notes = both(of_round, whole).tables[0].notes
    assert f"In A: {SENTENCE}" in notes and not any(note.startswith("In B: Round") for note in notes)
