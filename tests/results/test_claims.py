"""Tests of judging claims by intervals alone, on run sets with known values."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.results.places import judge
from tests.runs import runset
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, INLINED, PYICEBERG, batched, write_run_set

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.statistics import Estimate
from tidemark.errors import AnalysisError, ConfigError
from tidemark.pipeline.build import build_claims
from tidemark.pipeline.build import claim as find_row
from tidemark.results.claims.claims import (
    INCONCLUSIVE,
    NOT_REPRODUCED,
    REPRODUCED,
    UNTESTED,
    WITHOUT_A_VALUE,
    Region,
    load_claims,
)
from tidemark.results.claims.export import describe
from tidemark.results.claims.judge import Row
from tidemark.studies.streams.claims import MEASURES
from tidemark.studies.streams.results import RESULTS

MODELS = (
    replace(DUCKLAKE, median_ms=10.0),
    replace(INLINED, median_ms=3.0),
    replace(PYICEBERG, median_ms=100.0, slope_ms=600.0),
    replace(ICEBERG_DUCKDB, median_ms=100.0),
    batched(DUCKLAKE, median_ms=20.0),
    batched(INLINED, median_ms=40.0, flush_s=(2.2, 2.0, 1.9)),
    batched(PYICEBERG, median_ms=120.0),
    batched(ICEBERG_DUCKDB, median_ms=30.0),
    replace(DUCKLAKE, sweep="threads", threads=1, factors=(1.0,)),
    replace(DUCKLAKE, sweep="threads", threads=16, factors=(1.6,)),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run_set(tmp_path_factory.mktemp("claims"), MODELS, window_s=12.0)


@pytest.fixture(scope="module")
def rows(results: Path) -> dict[str, Row]:
    ledger = judge(results)
    return {row.claim.id: row for row in ledger.rows}


def test_a_merge_is_that_of_the_repeats_that_timed_one(tmp_path: Path) -> None:
    """Rounds leave merges and flushes to the series after them."""
    results = write_run_set(tmp_path, [replace(model, repeats=(1.0, 1.0, 1.0)) for model in MODELS[:2]], window_s=3.0)
    for path in results.rglob("run.json"):
        run = json.loads(path.read_text())
        if run["series"]["repeat"] < 3:
            run["merge"] = None
            path.write_text(json.dumps(run))
    (row,) = (row for row in judge(results).rows if row.claim.id == "flush-against-merge")
    assert row.judgements[0].ours is not None and row.judgements[0].verdict != UNTESTED


def test_the_shipped_claims_are_many_and_use_every_measure() -> None:
    claims = load_claims(RESULTS.claims)
    assert len(claims) >= 30
    assert {claim.measure.name for claim in claims} == set(MEASURES)
    for claim in claims:
        assert claim.shown and claim.section[0].isdigit()
        assert all(system in runset_systems() for system in claim.measure.systems), claim.id


def runset_systems() -> set[str]:
    return {model.system for model in runset.STANDARD}


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.5, 1.8, REPRODUCED),
        (1.0, 2.0, REPRODUCED),
        (0.9, 1.8, INCONCLUSIVE),
        (1.5, 2.1, INCONCLUSIVE),
        (0.5, 3.0, INCONCLUSIVE),
        (0.2, 0.9, NOT_REPRODUCED),
        (2.1, 2.2, NOT_REPRODUCED),
        (None, None, INCONCLUSIVE),
    ],
)
def test_verdict_depends_on_the_complete_interval(low: float | None, high: float | None, verdict: str) -> None:
    assert Region(1.0, 2.0).judge(Estimate(1.5, low, high, 10, "x")) == verdict


def test_ratio_interval_contains_the_true_value(rows: dict[str, Row]) -> None:
    for identity, truth in (
        ("write-single-iceberg-duckdb-ducklake", 10.0),
        ("write-single-iceberg-duckdb-inlined", 100 / 3),
    ):
        ours = rows[identity].first.ours
        assert ours is not None
        # Growth in a run of the model adds up to half of a slope's worth of commits to the median.
        assert ours.low is not None and ours.low < truth * 1.06
        assert ours.high is not None and ours.high > truth * 0.94


@pytest.mark.parametrize(
    ("identity", "verdict"),
    [
        ("write-single-iceberg-duckdb-ducklake", REPRODUCED),
        ("throughput-single-ducklake-iceberg", REPRODUCED),
        ("write-single-iceberg-duckdb-inlined", NOT_REPRODUCED),
        ("inlining-batch", REPRODUCED),
        ("throughput-batch-iceberg-duckdb-inlined", REPRODUCED),
        ("growth-single-pyiceberg", REPRODUCED),
        ("threads-harm-ducklake", REPRODUCED),
        ("threads-no-gain", UNTESTED),
        ("files-per-commit-iceberg", REPRODUCED),
        ("file-size-single-pyiceberg", NOT_REPRODUCED),
        ("delta-between", UNTESTED),
        ("flush-single-write-ducklake", UNTESTED),
        ("write-single-pyiceberg-ducklake", UNTESTED),
    ],
)
def test_verdicts(rows: dict[str, Row], identity: str, verdict: str) -> None:
    assert rows[identity].first.verdict == verdict, rows[identity].first.why


def test_batches_as_the_thesis_handed_them_over_are_judged_where_measured(tmp_path: Path) -> None:
    collected = replace(batched(DUCKLAKE, median_ms=130.0), sweep="collected")
    models = (batched(DUCKLAKE, median_ms=20.0), batched(INLINED, median_ms=40.0), collected)
    config = {"sweep": {"collected": {"axis": "chunks", "values": ["rows"]}}}
    found = {
        row.claim.id: row.first for row in judge(write_run_set(tmp_path, models, window_s=6.0, config=config)).rows
    }
    inlining = found["inlining-batch"]  # inlined over plain DuckLake: below 1 in one chunk, above 1 as collected
    assert inlining.verdict == NOT_REPRODUCED and inlining.ours is not None and inlining.ours.value > 2


def test_a_claim_that_needs_a_setting_is_judged_only_by_runs_with_it(tmp_path: Path) -> None:
    found = {}
    for producer in ("ahead", "beside"):
        models = [replace(batched(each), config=(("producer", producer),)) for each in MODELS[:4]]
        row = find_row(write_run_set(tmp_path / producer, models, window_s=6.0), "cpu-batch-similar")
        assert "'streams.producer=\"beside\"'" in row.retest.command
        found[producer] = row.first
    assert found["ahead"].reason == "not comparable: producer was 'ahead', published 'beside', and that decides"
    assert found["beside"].ours is not None


def test_a_claim_says_where_the_method_differs_and_which_sizes_test_it(rows: dict[str, Row], tmp_path: Path) -> None:
    assert "here        " in describe(rows["read-single-typical"]) and "decoding" in describe(
        rows["read-single-typical"]
    )
    assert "here        " not in describe(rows["files-per-commit-iceberg"])
    assert (
        "*Here:* " in (build_claims(write_run_set(tmp_path, MODELS[:2], window_s=2.0)).with_suffix(".md")).read_text()
    )
    command = rows["flush-against-merge"].retest.command
    assert (
        command.endswith("protocol=alone") and '"commits": 30000' in command and "streams.protocols.alone=" in command
    )


def test_direction_and_size_are_judged_separately(rows: dict[str, Row]) -> None:
    row = rows["write-single-iceberg-duckdb-inlined"].first
    assert (row.direction, row.size) == (REPRODUCED, NOT_REPRODUCED)
    assert "the direction is reproduced, the size not reproduced" in row.why


def test_untestable_claim_states_the_reason(rows: dict[str, Row]) -> None:
    assert "delta-rs in single mode is not in this run set" in (rows["delta-between"].first.reason or "")
    for name in ("flush-single-write-ducklake", "write-single-pyiceberg-ducklake", "growth-single-ducklake"):
        assert "not comparable: windows of 12 s, published 300 s" in (rows[name].first.reason or "")
        assert "protocol=thesis" in rows[name].retest.command
    for row in rows.values():
        (judgement,) = row.judgements
        assert (judgement.ours is None) == (judgement.verdict in WITHOUT_A_VALUE)
        assert judgement.ours is not None or judgement.reason


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(12.345, 11.9, 12.88, 9, "x"), "12.3 × [11.9, 12.9]"),
        (Estimate(14836.4, 11761.2, 19194.0, 9, "events/s"), "14,840 events/s [11,760, 19,190]"),
        (Estimate(0.00195, 0.0011, 0.0024, 9, "x"), "0.00195 × [0.00110, 0.00240]"),
        (Estimate(2935.0, 2935.0, 2935.0, 2, "bytes"), "2,935 bytes [2,935, 2,935]"),
        (Estimate(0.0, -0.5, 0.5, 9, "%"), "0.00 % [-0.50, 0.50]"),
        (Estimate(3.0, None, None, 1, "s"), "3.00 s"),
    ],
)
def test_values_are_rounded_to_the_precision_of_their_interval(estimate: Estimate, text: str) -> None:
    assert estimate_text(estimate) == text


def test_equal_systems_give_no_direction(tmp_path: Path) -> None:
    models = (replace(DUCKLAKE, median_ms=10.0), replace(INLINED, median_ms=10.0))
    results = write_run_set(tmp_path, models, window_s=6.0)
    assert find_row(results, "inlining-single").first.direction == INCONCLUSIVE


def test_a_run_that_lost_events_is_no_evidence(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, MODELS[:2], window_s=3.0)
    path = next(results.glob("runs/ducklake/single/*/run-1/run.json"))
    manifest = json.loads(path.read_text())
    manifest["oracle"] |= {"verdict": False, "missing": 1}
    path.write_text(json.dumps(manifest))
    row = find_row(results, "inlining-single").first
    assert row.verdict == UNTESTED and "does not hold what was acknowledged" in (row.reason or "")


def test_lukewarm_start_is_no_evidence_for_cold_runs(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, MODELS[:4], window_s=3.0)
    for path in results.glob("runs/*/single/*/run-0/run.json"):
        manifest = json.loads(path.read_text())
        manifest["cold_proof"]["verdict"] = "lukewarm"
        path.write_text(json.dumps(manifest))
    row = find_row(results, "cold-effect-single").first
    assert row.verdict == UNTESTED and "was no cold start but lukewarm" in (row.reason or "")


def test_ledger_is_written_in_three_formats_reproducibly(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, MODELS[:2], window_s=2.0)
    path = build_claims(results)
    first = path.read_bytes()
    whole = json.loads(first)
    assert [row["id"] for row in whole["claims"]] == [claim.id for claim in load_claims(RESULTS.claims)]
    assert sum(whole["counts"].values()) == len(whole["claims"])
    assert whole["synthetic"] is True
    assert (results / "claims.csv").read_text().count("\n") == len(whole["claims"]) + 1
    assert "SYNTHETIC" in (results / "claims.md").read_text()
    build_claims(results)
    assert path.read_bytes() == first


def test_a_claim_names_the_command_that_tests_it_alone(rows: dict[str, Row], tmp_path: Path) -> None:
    text = describe(rows["inlining-single"])
    systems, modes = '\'streams.systems={"ducklake-inlined": {}, "ducklake": {}}\'', "'streams.modes=[\"single\"]'"
    assert f"./tidemark all --config {systems} {modes}" in text
    assert "results/figures/streams/figure-5.1.svg" in text
    unmeasured = describe(find_row(tmp_path, "inlining-single"))
    assert "found no plan.json" in unmeasured and "./tidemark all" in unmeasured


def test_unknown_claim_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean inlining-single"):
        find_row(tmp_path, "inlining-singel")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: value, quantity", "name: valeu, quantity", "found no measure 'valeu'"),
        ("quantity: write IQR", "quantity: write IQ", "found no quantity 'write IQ'"),
        ("direction: above", "direction: up", "allowed: above, below, between"),
        ("mode: single}", "mode: single, speed: 3}", "unexpected keyword argument 'speed'"),
        ("published: {value: 7.40, unit: x", "published: {unit: x", "needs a factor above 1 and a published value"),
        ("- id: inlining-batch", "- id: inlining-single", "found twice"),
        ("- id: inlining-batch", "- id: Inlining Batch", "small letters, digits and hyphens"),
        ('  section: "6.3"', '  chapter: "6.3"', "found the keys ['chapter']"),
    ],
)
def test_malformed_claim_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = RESULTS.claims.path.read_text()
    assert old in text
    path = tmp_path / "claims.yaml"
    path.write_text(text.replace(old, new))
    with pytest.raises(AnalysisError) as caught:
        load_claims(replace(RESULTS.claims, path=path))
    assert message in str(caught.value) and str(path) in str(caught.value)
