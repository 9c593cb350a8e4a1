"""Tests of reference results: the stored data of a result set, compared with another machine's claim by claim."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.runs.runset import DELTA, DUCKLAKE, INLINED, Model, batched, write_run_set

from tidemark.analysis.formatting import Cell
from tidemark.analysis.measures import Measures
from tidemark.analysis.statistics import Estimate
from tidemark.errors import AnalysisError
from tidemark.integrity import sha256_of
from tidemark.pipeline.reference import build_agreement, build_comparison, build_reference, caveats
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import opened
from tidemark.results.claims.claims import INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED, UNTESTED
from tidemark.results.reference.agreement import AGREES, DIFFERS, NOTHING, SIZE, UNDECIDED, WITHIN, Pair, agreement
from tidemark.results.reference.content import (
    FILE,
    TABLES,
    Held,
    Reference,
    folders,
    read_references,
    write_reference,
)
from tidemark.results.reference.front import END, OF, glance, with_results
from tidemark.results.tables.table import Column, Table, read_table
from tidemark.runs.spec import TWIN
from tidemark.studies.streams.metrics import QUANTITIES, WRITE_MEDIAN
from tidemark.studies.study import registry

DELTA_RS = "Delta Lake (delta-rs)"
MODELS = (DUCKLAKE, INLINED, DELTA, batched(DUCKLAKE, median_ms=20.0))
SLOW = tuple(
    replace(model, median_ms=3 * model.median_ms) if model.system == "ducklake-inlined" else model for model in MODELS
)


def measured(root: Path, models: tuple[Model, ...] = MODELS, seed: int = 1, window_s: float = 6.0) -> Path:
    return write_run_set(root, models, window_s=window_s, seed=seed)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = measured(tmp_path_factory.mktemp("reference"))
    return write_archive(results, tmp_path_factory.mktemp("zip") / "runs.zip")


@pytest.fixture(scope="module")
def reference(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("kept") / "reference"
    build_reference(archive, target)
    return target


def outcomes(table: Table) -> dict[str, str]:
    return {str(row[1]): str(row[-1]) for row in table.rows}


def test_first_page_shows_no_system_twice(reference: Path, tmp_path: Path) -> None:
    kept = shutil.copytree(reference, tmp_path / "kept")
    matrix = kept / "streams" / TABLES / "matrix.json"
    matrix.write_text(matrix.read_text().replace(f'"{DELTA_RS}"', f'"ducklake{TWIN}"'))
    before, after = glance(reference, "streams"), glance(kept, "streams")
    assert before is not None and after is not None and DELTA_RS in before.systems()
    assert after.systems() == [name for name in before.systems() if name != DELTA_RS]
    assert TWIN not in after.alternative() + "".join(after.lines())


def test_first_page_says_of_which_stack_the_numbers_of_other_studies_are(reference: Path, tmp_path: Path) -> None:
    (kept,) = read_references(reference)

    def keep(
        study: str, stacks: tuple[str, ...], name: str, columns: tuple[Column, ...], *rows: tuple[Cell, ...]
    ) -> None:
        of = replace(kept, about=replace(kept.about, study=study, stacks=stacks), figure=None)
        write_reference(of, [Table(name, "", columns, rows, (), "")], "", tmp_path / of.about.name)

    def about(value: float, low: float, high: float, unit: str) -> Estimate:
        return Estimate(value, low, high, 100, unit)

    system, stack = Column("system", "System"), Column("stack", "Stack")
    distance, commit = Column("rtt", "Round trip", "ms"), Column("commit_p50", "Commit", "ms", interval=True)
    near, far = ("Near", 20, about(52, 40, 61, "ms")), ("Far", 20, about(490, 100, 900, "ms"))
    local = ("Near", None, about(10, 9, 11, "ms"))
    keep("ingest", ("thesis", "current"), "ingest-storage", (system, distance, commit), local, far, near)
    keep("ingest", ("current",), "ingest-storage", (system, distance, commit), ("Near", 20, about(70, 60, 80, "ms")))
    age = Column("age_p99", "Age", "s", interval=True)
    then, now = ("Near", "thesis", about(1.4, 1.2, 1.6, "s")), ("Near", "current", about(1.2, 1.1, 1.4, "s"))
    twin = (f"near{TWIN}", "current", about(1.3, 1.1, 1.4, "s"))
    keep("freshness", ("thesis", "current"), "matrix", (system, stack, age), then, now, twin)
    far_away, *_, fresh, _ = caveats(tmp_path)
    assert "20 ms away, with the catalog beside the writer (other runs, stack `thesis`): " in far_away
    assert far_away.partition("`): ")[2].startswith("Near 52 ms; Far 490 ms [100, 900]. ")
    assert "(other runs, stack `current`): Near 1.2 s. " in fresh


def test_an_archive_gives_the_same_files_each_time(archive: Path, reference: Path, tmp_path: Path) -> None:
    again = build_reference(archive, tmp_path)
    assert {path.relative_to(tmp_path) for path in again} == {
        path.relative_to(reference) for path in reference.rglob("*") if path.is_file()
    }
    for path in again:
        assert path.read_bytes() == (reference / path.relative_to(tmp_path)).read_bytes(), path
    (kept,) = read_references(reference)
    assert kept.about.archive == sha256_of(archive) and kept.about.study == "streams" and kept.about.windows == (6.0,)
    assert (reference / "streams" / "tables" / "matrix.json").is_file()
    assert kept.figure is not None and (reference / "streams" / kept.figure.file).read_text().startswith("<?xml")
    tables = list((reference / "streams" / "tables").iterdir())
    kept_tables = {path.stem for path in tables}
    assert kept_tables.isdisjoint({"throughput", "latency", "disk"}), "a row a run"
    assert all(read_table(path).rows for path in tables)
    assert sum(path.stat().st_size for path in again) < 500_000
    assert not any(str(archive.parents[1]) in path.read_text() for path in again)


def test_values_of_each_run_are_kept_and_give_the_ratio_again(archive: Path, tmp_path: Path) -> None:
    build_reference(archive, tmp_path)
    (kept,) = read_references(tmp_path)
    assert {(each.system, each.mode, each.run) for each in kept.runs} >= {
        (name, "single", number) for name in ("ducklake", "ducklake-inlined") for number in (0, 1, 2)
    }
    assert [each.started_at for each in kept.runs] == sorted(each.started_at for each in kept.runs)

    def typical(system: str) -> float:
        hot = [each for each in kept.runs if (each.system, each.mode) == (system, "single") and each.run > 0]
        return float(np.exp(np.mean([np.log(dict(each.values)["write median"]) for each in hot])))

    with opened(archive) as run_set:
        measures = Measures(run_set, QUANTITIES)
        pair = (run_set.find(name, "single") for name in ("ducklake-inlined", "ducklake"))
        assert measures.ratio(WRITE_MEDIAN, *pair).value == pytest.approx(
            typical("ducklake-inlined") / typical("ducklake"), rel=1e-4
        )


def test_obsolete_tables_are_removed(archive: Path, tmp_path: Path) -> None:
    build_reference(archive, tmp_path)
    stale = tmp_path / "streams" / "tables" / "table-0.json"
    stale.write_text("{}")
    build_reference(archive, tmp_path)
    assert not stale.exists()


def test_result_set_agrees_with_itself_and_with_a_repetition(archive: Path, reference: Path, tmp_path: Path) -> None:
    (table,), written, _ = build_comparison(reference, archive, tmp_path / "same")
    assert set(outcomes(table).values()) == {AGREES}
    assert not [claim for claim in outcomes(table) if claim.startswith("printed-")], "these agree everywhere"
    assert [path.name for path in written] == ["agreement.csv", "agreement.md", "agreement.json"]
    assert json.loads((tmp_path / "same" / "agreement.json").read_text())["rows"]
    other, _ = build_agreement(reference, measured(tmp_path / "other", seed=2), tmp_path / "like")
    assert DIFFERS not in outcomes(other).values()
    decided = re.search(r"Of (\d+) claims that both decide, (\d+) have the same verdict", "".join(table.notes))
    assert decided is not None and decided[1] == decided[2] != "0"


def test_system_three_times_as_slow_is_detected_only_in_its_claims(reference: Path, tmp_path: Path) -> None:
    table, _ = build_agreement(reference, measured(tmp_path, SLOW), tmp_path / "agreement")
    found = outcomes(table)
    assert found["inlining-single"] == SIZE and table.rows[0][1] == "inlining-single"  # differences come first
    assert found["files-per-commit-ducklake"] == AGREES


def test_short_run_is_compared_with_a_warning_and_missing_claims_are_listed(reference: Path, tmp_path: Path) -> None:
    table, _ = build_agreement(reference, measured(tmp_path, MODELS[:1], window_s=3.0), tmp_path / "agreement")
    assert NOTHING in outcomes(table).values()
    assert any(note.startswith("WARNING: streams: the sizes differ") for note in table.notes)


def test_another_stack_is_stored_separately_and_compared_only_with_itself(archive: Path, tmp_path: Path) -> None:
    kept = tmp_path / "reference"
    build_reference(archive, kept)
    newer = tuple(replace(model, stack="current") for model in MODELS)
    build_reference(measured(tmp_path / "newer", newer), kept)
    assert [folder.name for folder in folders(kept)] == ["streams", "streams-current"]
    assert [each.about.stacks for each in read_references(kept)] == [("thesis",), ("current",)]
    table, _ = build_agreement(kept, archive, tmp_path / "one")
    assert {(row[2], row[-1]) for row in table.rows} == {("thesis", AGREES), ("current", NOTHING)}
    assert "B has no run of streams with the stack current." in table.notes
    both, _ = build_agreement(kept, measured(tmp_path / "both", (*MODELS, *newer)), tmp_path / "two")
    assert {row[2] for row in both.rows if row[-1] != NOTHING} == {"thesis", "current"}
    assert not any("B has no run" in note for note in both.notes)


def test_two_stacks_of_one_run_have_their_own_verdicts_and_releases(tmp_path: Path) -> None:
    kept = tmp_path / "reference"
    newer = tuple(replace(model, stack="current") for model in MODELS)
    build_reference(measured(tmp_path / "both", (*MODELS, *newer)), kept)
    (both,) = read_references(kept)
    claims = len(both.held) // 2
    mark, questions = OF.format("streams"), registry()["streams"].results.questions
    page = with_results("streams", f"{mark}\n{END}\n", kept, questions)
    for stack in ("thesis", "current"):
        assert f"Of {claims} claims with the stack `{stack}`: " in page
    assert "Releases of the stack `current`: those above." in page, "the models' releases are the same"
    assert "Releases of the stack `thesis`: " in page
    assert page.count("| System |") == len({model.mode for model in MODELS}) == 2, "a table for each way of writing"


def test_rounds_and_commits_are_named_in_place_of_seconds_and_repeats(tmp_path: Path) -> None:
    results = measured(tmp_path / "rounds")
    for path in results.rglob("run.json"):
        run = json.loads(path.read_text())
        run["config"] |= {"block": 1, "commits": 100}
        path.write_text(json.dumps(run))
    build_reference(results, tmp_path / "reference")
    (kept,) = read_references(tmp_path / "reference")
    assert kept.about.sizes.endswith("each system makes 100 commits in 1 round, and then once more after a cold start")
    (other,) = read_references(_with_rounds(kept, tmp_path / "other", 3))
    assert "in each of 3 rounds" in other.about.sizes
    table = agreement([kept], [other], ("a", "b"))
    assert not any("sizes differ" in note for note in table.notes), "more rounds are the same sizes"


def _with_rounds(reference: Reference, folder: Path, rounds: int) -> Path:
    about = replace(reference.about, rounds=rounds, windows=(3.0, 25.0))
    write_reference(replace(reference, about=about, figure=None), [], "", folder)
    return folder


def test_version_differences_cover_only_programs_used_by_both(reference: Path, tmp_path: Path) -> None:
    def notes(*versions: dict[str, str]) -> str:
        kept = json.loads((reference / "streams" / FILE).read_text())
        kept["about"]["versions"] = versions
        (tmp_path / FILE).write_text(json.dumps(kept))
        return " ".join(build_agreement(tmp_path, reference, tmp_path / "agreement")[0].notes)

    (used, *_) = json.loads((reference / "streams" / FILE).read_text())["about"]["versions"]
    other = {"stack": "thesis", "program": "not used there", "version": "1"}
    assert "Versions that differ" not in notes(used, other)
    assert f"Versions that differ, streams: {used['program']} (thesis)." in notes({**used, "version": "0.0"}, other)


def test_study_missing_on_one_side_is_only_reported_as_missing(reference: Path, tmp_path: Path) -> None:
    kept = tmp_path / "reference"
    (kept / "other").mkdir(parents=True)
    whole = (reference / "streams" / FILE).read_text()
    (kept / "other" / FILE).write_text(whole.replace('"study": "streams"', '"study": "other"'))
    table, _ = build_agreement(kept, reference, tmp_path / "agreement")
    assert table.rows == () and "B has no run of the study other." in table.notes
    assert "A has no results of the study streams, of which B has runs." in table.notes
    assert not any(note.startswith(("A (", "B (")) for note in table.notes)


def held(value: float, low: float | None, high: float | None, verdict: str) -> Held:
    return Held("a-claim", "thesis", "", "", Estimate(value, low, high, 3, "x"), verdict, None)


@pytest.mark.parametrize(
    ("b", "outcome"),
    [
        (held(2.4, 2.2, 2.6, REPRODUCED), AGREES),
        (held(3.0, 2.8, 3.2, REPRODUCED), SIZE),
        (held(1.8, 1.2, 2.4, INCONCLUSIVE), UNDECIDED),
        (held(1.2, 0.9, 1.5, INCONCLUSIVE), UNDECIDED),
        (held(2.0, 1.8, 2.1, NOT_REPRODUCED), WITHIN),
        (held(0.8, 0.7, 0.9, NOT_REPRODUCED), DIFFERS),
        (held(2.1, None, None, REPRODUCED), AGREES),  # a count is its own interval
        (held(2.7, None, None, REPRODUCED), SIZE),
        (replace(held(1, None, None, UNTESTED), ours=None, reason="no such series"), NOTHING),
        (None, NOTHING),
    ],
)
def test_outcome_follows_from_verdicts_and_intervals(b: Held | None, outcome: str) -> None:
    pair = Pair("streams", held(2.3, 2.1, 2.5, REPRODUCED), b)
    assert pair.outcome == outcome
    assert outcome != NOTHING or pair.why_not in ("not measured in B", "B: no such series")


def test_a_file_of_another_version_is_refused(reference: Path, tmp_path: Path) -> None:
    kept = json.loads((reference / "streams" / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**kept, "schema_version": 99}))
    assert folders(tmp_path) == [tmp_path]
    with pytest.raises(AnalysisError, match="found 99; allowed: 1"):
        read_references(tmp_path)
    assert folders(tmp_path / "nowhere") == []
