"""Tests of the report's matrix: planted values are found, only like is compared with like, gaps have a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.runs.runset import DELTA, DUCKLAKE, ICEBERG_DUCKDB, INLINED, NULL, PYICEBERG, Model, batched, write_run_set

from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import NORMAL, BootstrapEstimate, counted
from tidemark.paths import ANSWER
from tidemark.pipeline.build import build_claims, build_report
from tidemark.results.report.answer import answers, in_lines, of_one, read_first
from tidemark.results.report.summary_table import (
    Group,
    Subject,
    SummaryMetric,
    asking,
    comparisons,
    groups,
    matrix_data,
    question_data,
)
from tidemark.runs.manifest import SystemPart
from tidemark.runs.runset import RunSet
from tidemark.studies.streams.findings import Writer
from tidemark.studies.streams.metrics import QUANTITIES, STREAM_GROUPS
from tidemark.studies.streams.results import QUESTIONS
from tidemark.studies.streams.study import Streams
from tidemark.studies.study import registry
from tidemark.systems.registry import registry as systems

KEYS = [question.key for question in QUESTIONS]
SWEEP = {"sweep": {"batch-size": {"axis": "batch_size", "values": [1, 10, 100, 10_000]}}}
FAST = replace(DUCKLAKE, median_ms=5.0)
TWIN = replace(FAST, system="ducklake-again", title="DuckLake again")
SLOW = replace(PYICEBERG, median_ms=40.0, slope_ms=500.0)


def made(root: Path, models: list[Model], **more: object) -> list[Group]:
    run_set = RunSet.load(write_run_set(root, models, **more))  # type: ignore[arg-type]
    return groups(Measures(run_set, QUANTITIES), QUESTIONS)


def answer(group: Group, system: str, key: str) -> BootstrapEstimate | NotAvailable:
    row = next(row for row in group.rows if row.asked.system == system)
    return row.answers[KEYS.index(key)]


def value(group: Group, system: str, key: str) -> float:
    found = answer(group, system, key)
    assert isinstance(found, BootstrapEstimate), found
    return found.value


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Group:
    models = [FAST, TWIN, SLOW, replace(NULL, median_ms=0.5), DELTA, batched(ICEBERG_DUCKDB), INLINED]
    models[0] = replace(
        FAST, cores={"harness": 0.5, "postgres": 0.25, "catalog": 0.0, "kafka": 0.1, "producer": 0.05},
        memory_mb={"harness": 300.0, "postgres": 80.0, "catalog": 20.0},
    )  # fmt: skip
    (found,) = made(tmp_path_factory.mktemp("matrix"), models, window_s=8.0)
    return found


def test_planted_values_are_found(measured: Group) -> None:
    assert value(measured, "ducklake", "p50-single") == pytest.approx(5.0, rel=0.05)
    events = value(measured, "ducklake", "rate-single")
    # Half a processor all the time: half a CPU-second per second of writing.
    assert value(measured, "ducklake", "cpu-writer-single") == pytest.approx(0.5e6 / events, rel=0.02)
    assert value(measured, "ducklake", "cpu-servers-single") == pytest.approx(0.25e6 / events, rel=0.02)
    assert value(measured, "ducklake", "cpu-stream-single") == pytest.approx(0.15e6 / events, rel=0.02)
    assert value(measured, "ducklake", "memory-writer-single") == pytest.approx(300, rel=1e-6)
    assert value(measured, "ducklake", "memory-servers-single") == pytest.approx(100, rel=1e-6)
    assert value(measured, "ducklake", "files-single") == pytest.approx(1e6), "a file an event"
    assert value(measured, "ducklake", "cold-start-single") == pytest.approx(15.0, rel=0.01), "three writes"
    assert value(measured, "ducklake-inlined", "tidying-single") > 0
    assert isinstance(answer(measured, "iceberg-pyiceberg", "tidying-single"), NotAvailable)
    assert value(measured, "iceberg-pyiceberg", "growth-100-single") == pytest.approx(85 / 45, rel=0.1)


def test_unmeasured_cell_states_the_reason(measured: Group) -> None:
    assert "not measured" in str(answer(measured, "ducklake", "rate-batch"))
    assert "no such column" in str(answer(measured, "delta-rs", "rate-single"))
    assert "streams.sweeps=[main, batch-size]" in str(answer(measured, "ducklake", "fixed"))
    assert "needs 10,000 commits" in str(answer(measured, "ducklake", "age-10000-single"))


def test_ratios_are_pairwise_and_show_indistinguishable_systems(measured: Group) -> None:
    (data,) = matrix_data([measured], QUESTIONS, {})
    names = [row["system"] for row in data["rows"]]
    one, twin, slow = (names.index(name) for name in ("ducklake", "ducklake-again", "iceberg-pyiceberg"))
    rates = data["ratios"]["rate-single"]
    worse, low, _ = rates[slow][one]
    assert low > 1 and worse == pytest.approx(rates[one][slow][0] ** -1, rel=1e-3)
    assert rates[one][twin][1] <= 1 <= rates[one][twin][2], "the same system twice"
    assert rates[one][one] is None and rates[one][names.index("delta-rs")] is None
    shown = {question["key"]: question["shown"] for question in question_data(QUESTIONS, [measured])}
    assert shown["rate-100-single"] and not shown["fixed"], "a metric without a value is not shown"
    marks = {row["system"]: row["marks"] for row in data["rows"]}
    assert marks["ducklake"] == [] and "failed" in marks["delta-rs"][0]


def test_systems_are_compared_only_on_questions_of_their_study(measured: Group) -> None:
    measures = measured.rows[0].asked.measures
    first, second = QUESTIONS[:3], QUESTIONS[3:5]
    found = comparisons([Subject(measures, first), Subject(measures, second)], {})
    assert [group["title"] for group in found] == ["streams: Software stack thesis"] * 2
    for group, asked in zip(found, (first, second), strict=True):
        keys = [question.key for question in asked]
        assert group["asked"] == keys == list(group["ratios"])
        assert group["rows"] and all(list(row["cells"]) == keys for row in group["rows"])
    assert len(asking([Subject(measures, first), Subject(measures, ())])) == 1


def test_question_keys_are_unique_across_studies() -> None:
    """The page's URL identifies columns by their keys."""
    keys = [question.key for study in registry().values() for question in study.results.questions]
    assert len(keys) == len(set(keys)) > len(KEYS)


def test_answers_leave_out_the_harness_and_name_tied_systems(measured: Group) -> None:
    found = {each["key"]: each for each in answers(measured, QUESTIONS)}
    fastest = found["rate-100-single"]
    assert fastest["text"].startswith("DuckLake") and "events/s [" in fastest["text"]
    assert "DuckLake" in fastest["apart"] and "Iceberg" not in fastest["apart"] and "Null" not in str(found)
    assert len(fastest["tied"]) == 1 and fastest["tied"][0] in fastest["apart"]
    assert found["growth-100-single"]["text"].startswith("Iceberg (PyIceberg): ")
    assert found["files-single"]["text"].startswith("Iceberg (PyIceberg): 4,000,000")
    lines = in_lines(list(found.values()), synthetic=True, repeated=False)
    assert len(lines) == 3 and lines[0].startswith("Fastest for single events: DuckLake")
    assert lines[0].endswith(f", tied with {fastest['tied'][0]}.")
    assert lines[2].startswith("Compared: ") and "tied means that no difference" in lines[2] and "SYNTHETIC" in lines[2]
    assert "intervals assume that another measurement differs by 12 %" in lines[2]
    assert "repeats" not in in_lines(list(found.values()), synthetic=True, repeated=True)[2]


def test_lost_row_is_an_answer_however_wide_its_interval() -> None:
    asked = SummaryMetric(
        "lost", "Lost", "", lambda *_: counted(0), "", signed=True, asks="Lost", extreme="worst", none="None was seen"
    )
    for share, begin in ((0.004, "Lossy: "), (0.0, "None was seen")):
        lossy = replace(counted(share), draws=share + 2 * share * NORMAL, bounds=(0.0, 1.0), is_exact=False)
        ranked = [
            (SimpleNamespace(title=name, asked=None), value) for name, value in (("Kept", counted(0)), ("Lossy", lossy))
        ]
        group = SimpleNamespace(ranked=lambda *_, found=ranked: found, without=lambda _place: [])
        (found,) = answers(cast(Group, group), [asked])
        assert found["text"].startswith(begin)


def test_files_without_a_format_are_a_bound_and_not_ranked(measured: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    place = KEYS.index("rate-single")
    assert next(row.asked.system for row, _ in measured.ranked(QUESTIONS, place)) == "ducklake"
    monkeypatch.setattr(SystemPart, "is_bare", property(lambda self: self.name == "ducklake"))
    (found,) = groups(measured.rows[0].asked.measures, QUESTIONS)
    outside = {row.asked.system: row.outside for row in found.rows if row.outside}
    assert outside == {"ducklake": "Files without a table format", "null": "The harness stores nothing"}
    assert not set(outside) & {row.asked.system for row, _ in found.ranked(QUESTIONS, place)}
    bare = {name for name, kind in systems().items() if kind.format == "Parquet"}
    assert bare == {"parquet-datafusion", "parquet-local", "parquet-hdfs", "parquet-on-spark"}


def test_a_twin_is_shown_but_neither_ranked_nor_named_as_tied(tmp_path: Path) -> None:
    twin = replace(FAST, system="ducklake-twin", title="ducklake-twin", median_ms=4.5)
    (group,) = made(tmp_path, [FAST, twin, SLOW, batched(FAST), replace(batched(twin), median_ms=4.5)], window_s=8.0)
    assert {row.asked.system: row.outside for row in group.rows if row.outside} == {
        "ducklake-twin": "Measures the system of another row a second time"
    }
    found = answers(group, QUESTIONS)
    assert found[0]["text"].startswith("DuckLake: ") and "twin" not in json.dumps(found)
    sentences = Writer(group.rows[0].asked.measures).sentences()
    assert "DuckLake" in sentences["order-single"] and "twin" not in json.dumps(sentences)


def test_only_measured_system_is_not_reported_as_different(tmp_path: Path) -> None:
    (group,) = made(tmp_path, [FAST, replace(NULL, median_ms=0.5)], window_s=2.0)
    lines = in_lines(answers(group, QUESTIONS), synthetic=False, repeated=True)
    assert lines[-1].startswith("Compared: fastest for single events: no other system has a value")


def test_numbers_of_the_only_system_are_printed_in_place_of_a_ranking(tmp_path: Path) -> None:
    """It is too slow for 100 commits, so no question that ranks systems has an answer."""
    results = write_run_set(tmp_path / "one", [SLOW, replace(NULL, median_ms=0.5)], window_s=2.0)
    build_claims(results)
    build_report(results)
    first, *numbers, last = (results / ANSWER).read_text().splitlines()
    assert first == "Iceberg (PyIceberg) (streams, stack thesis):"
    assert any(line.startswith("  Commit 10, single: ") and " ms" in line for line in numbers)
    assert not any("Fastest" in line or "Null" in line for line in numbers)
    assert last.startswith("Not compared: nothing else was measured under the same conditions; each was measured once")
    assert "SYNTHETIC" in last
    two = RunSet.load(write_run_set(tmp_path / "two", [FAST, SLOW], window_s=2.0))
    assert of_one([Subject(Measures(two, QUANTITIES), QUESTIONS)], synthetic=True, repeated=False) == []


def test_no_slowdown_is_reported_where_none_was_seen(tmp_path: Path) -> None:
    faster = [replace(model, slope_ms=-1.0) for model in (FAST, TWIN)]
    (group,) = made(tmp_path, faster, window_s=4.0)
    found = {each["key"]: each for each in answers(group, QUESTIONS)}
    assert found["growth-100-single"]["text"] == "No system's commits were seen to slow down"


def test_ten_thousand_commits_are_measured_and_not_extrapolated(tmp_path: Path) -> None:
    """Writes slow down from 0.5 ms to 1.0 ms over 10,000 commits; the oldest is the median of the last 2,000."""
    growing = replace(FAST, median_ms=0.5, slope_ms=0.05, outliers=0.0, poll_ms=0.01, factors=(1.0, 1.0))
    (group,) = made(tmp_path, [growing], window_s=10.0)
    found = answer(group, "ducklake", "growth-10000-single")
    assert isinstance(found, BootstrapEstimate), found
    estimate = found.estimate("x")
    assert estimate.value == pytest.approx(0.95 / 0.5, rel=0.1)
    assert estimate.low is not None and estimate.low > 1


def test_different_durability_levels_and_stacks_are_not_compared(tmp_path: Path) -> None:
    full = replace(TWIN, system="ducklake-full", durability_level="full")
    found = made(tmp_path, [FAST, full, replace(FAST, stack="current")], window_s=2.0)
    assert [(group.key, len(group.rows)) for group in found] == [("thesis", 1), ("thesis-full", 1), ("current", 1)]


def sized(size: int, fixed_ms: float, row_us: float, **more: object) -> Model:
    rows = replace(batched(DUCKLAKE), batch_size=size, median_ms=fixed_ms + size * row_us / 1e3, outliers=0.0)
    return replace(rows, sweep="main" if size == 1000 else "batch-size", factors=(1.0, 1.0), **more)  # type: ignore[arg-type]


def test_line_over_batch_sizes_gives_cost_per_commit_and_per_row(tmp_path: Path) -> None:
    models = [sized(size, 8.0, 4.0) for size in (1000, 1, 10, 100, 10_000)]
    (group,) = made(tmp_path, models, window_s=3.0, config=SWEEP)
    for key, planted in (("fixed", 8.0), ("row", 4.0)):
        found = answer(group, "ducklake", key)
        assert isinstance(found, BootstrapEstimate), found
        estimate = found.estimate("")
        assert estimate.value == pytest.approx(planted, rel=0.05)
        assert estimate.low is not None and estimate.high is not None and estimate.low < planted < estimate.high
    (data,) = matrix_data([group], QUESTIONS, {})
    assert data["rows"][0]["cells"]["fixed"]["note"] == "batches of 1, 10, 100, 1,000, 10,000"


def test_no_line_is_fitted_to_nonlinear_costs(tmp_path: Path) -> None:
    """For example, small batches are inlined and large ones are not."""
    bent = [sized(size, 1.0 if size <= 10 else 20.0, 4.0) for size in (1000, 1, 10, 100, 10_000)]
    (group,) = made(tmp_path, bent, window_s=2.0, config=SWEEP)
    assert "no straight line" in str(answer(group, "ducklake", "fixed"))


def test_facts_to_read_first(tmp_path: Path) -> None:
    disturbed = replace(FAST, disturbed={1: "foreign processor time: 0.50 processors"}, measured_again={2: "steal"})
    results = write_run_set(tmp_path, [disturbed, DELTA, replace(NULL, median_ms=1.0)], window_s=2.0)
    run_set = RunSet.load(results)
    told = {each["label"]: each for each in read_first(run_set, [Measures(run_set, QUANTITIES)])}
    assert told["Dataset"]["warning"] and told["Dataset"]["text"].startswith("SYNTHETIC")
    assert "1 of 6 counted runs were disturbed" in told["Marks"]["text"] and "1 more" in told["Marks"]["text"]
    assert told["Failures"]["warning"] and "no such column" in told["Failures"]["text"]
    assert "null, which stores nothing" in told["What bounds the numbers"]["text"]
    build_claims(results)
    build_report(results)
    assert (results / ANSWER).read_text().splitlines()[0].startswith("Fastest for single events: DuckLake")


def test_run_that_lost_acknowledged_rows_is_no_success(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, [FAST, TWIN], window_s=2.0)
    run_set = RunSet.load(results)
    told = {each["label"]: each for each in read_first(run_set, [Measures(run_set, QUANTITIES)])}
    assert told["Failures"]["text"].startswith("none: ") and not told["Failures"]["warning"]
    path = next(series for series in run_set.series if series.title == "DuckLake again").runs[1].directory / "run.json"
    manifest = json.loads(path.read_text())
    manifest["oracle"] |= {"verdict": False, "missing": 1}
    path.write_text(json.dumps(manifest))
    run_set = RunSet.load(results)
    told = {each["label"]: each for each in read_first(run_set, [Measures(run_set, QUANTITIES)])}
    assert told["Failures"]["warning"]
    assert told["Failures"]["text"].endswith("but 1 run does not hold what it acknowledged: DuckLake again")


def test_stream_process_groups_match_the_workload() -> None:
    assert set(STREAM_GROUPS) == set(Streams.excluded_groups)
