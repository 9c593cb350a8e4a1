"""Tests of quantities against numbers worked out by hand, of the planned cells, and of the page's own numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import yaml

from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import make_plan
from tidemark.results.claims.claim_data import LossClaimData
from tidemark.results.claims.claims import INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED, load_claims
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.serde import Fields, read
from tidemark.studies.ingest import metrics, published
from tidemark.studies.ingest.gateway.group_commit import POLICIES, FileBundling, GroupCommit
from tidemark.studies.ingest.load.records import ACKED, CONFLICT, FAILED, GIVEN_UP, NOT_TOLD, UNKNOWN
from tidemark.studies.ingest.parts import FAULTS, FRONT, KILL_SECONDS, part_name, settings_of
from tidemark.studies.ingest.results import RESULTS
from tidemark.studies.ingest.settings import GROUP, PRUNING, STORAGE, WRITERS, GroupSettings
from tidemark.studies.ingest.study import Ingest
from tidemark.studies.ingest.tables.storage import round_trips
from tidemark.systems.pruning_dataset import PREDICATES, rows_of
from tidemark.systems.registry import variant_of

SHIPPED = Path(__file__).parents[3] / "config.yaml"
SECOND = 1_000_000_000


def recorded(manifest: SimpleNamespace) -> Callable[[type[Any]], Any]:
    """Return a run's `record` for what its window found."""
    return lambda kind: read(kind, Fields("run.json", dict(manifest.found), "found."))


def run(
    outcomes: list[str], *, commits: list[int] | None = None, refused: int | None = None, exact: bool = True
) -> Run:
    """Return a run of two alternating writers: attempts of 4 ms and 5 rows every 10 ms in a window of a second."""
    count = len(outcomes)
    acked = np.array([name == ACKED for name in outcomes])
    columns: dict[str, Any] = {
        "start_ns": np.arange(count) * 10_000_000,
        "elapsed_ns": np.full(count, 4_000_000),
        "response_ns": np.full(count, 4_000_000),
        "outcome": np.array(outcomes, object),
        "commits": np.array(commits or [NOT_TOLD] * count),
        "writer": 1 + np.arange(count) % 2,
        "rows": 5 * acked,
    }
    oracle = SimpleNamespace(verdict=exact, applicable=True, missing=0 if exact else 10, duplicated=0, expected=1000)
    found = {"refused": refused, "commits": int(acked.sum()) + 2}
    manifest = SimpleNamespace(oracle=oracle, elapsed_ns=SECOND, found=found.items(), config={"writers": 2}.items())
    column = columns.__getitem__
    has = columns.__contains__
    made = SimpleNamespace(
        label="a/b/c/run-1", manifest=manifest, column=column, words=column, has=has, columns=columns
    )
    made.record = recorded(manifest)
    return cast(Run, made)


def of(quantity: Metric, measured: Run) -> Estimate:
    how = quantity.how
    assert callable(how)
    found: BootstrapEstimate = how(measured)
    return found.estimate(quantity.unit)


def test_labels_of_earlier_plans_tell_the_settings() -> None:
    def told(mode: str) -> Any:
        return settings_of(cast(Series, SimpleNamespace(mode=mode, settings=())))

    assert (told("own-8").tables, told("own-8").writers) == ("own", 8)
    assert (told("staged-50x32").policy, told("staged-50x32").rows, told("staged-50x32").clients) == ("staged", 50, 32)
    assert (told("front-50x32").rows, told("front-50x32").clients) == (50, 32)
    constant, poisson = told("tail-staged-90-constant"), told("tail-one-50")
    assert (constant.target, constant.percent, constant.arrivals) == ("staged", 90, "constant")
    assert (poisson.target, poisson.percent, poisson.arrivals) == ("one", 50, "poisson")


def test_throughput_counts_acknowledgements_inside_the_window() -> None:
    measured = run([ACKED] * 80 + [CONFLICT] * 20)
    assert of(metrics.COMMITS, measured).value == pytest.approx(80)
    assert of(metrics.ROWS, measured).value == pytest.approx(400)
    assert of(metrics.P50, measured).value == pytest.approx(4)
    late = run([ACKED] * 100)
    late.column("elapsed_ns")[50:] = SECOND
    assert of(metrics.COMMITS, late).value == pytest.approx(50)


def test_run_that_lost_rows_has_no_throughput_and_reports_the_loss() -> None:
    measured = run([ACKED] * 100, exact=False)
    for quantity in (metrics.COMMITS, metrics.ROWS, metrics.P99, metrics.FAIRNESS):
        with pytest.raises(NotAvailable, match="does not hold what was acknowledged"):
            of(quantity, measured)
    lost = of(metrics.LOST, measured)
    assert lost.value == 0.01 and lost.is_above(0.003)
    assert of(metrics.LOST, run([ACKED] * 9)).is_below(0.01)


@pytest.mark.parametrize(
    ("measured", "refused", "tried", "by"),
    [
        (run([ACKED] * 8, refused=5), 5, 15, "catalog"),  # with two that were not counted in the window
        (run([ACKED, CONFLICT, ACKED], commits=[3, 5, 1]), 7, 9, "client"),
        (run([ACKED, FAILED], commits=[1, 1]), 0, 2, "client"),
        (run([ACKED, CONFLICT, GIVEN_UP, UNKNOWN]), 2, 4, "caller"),
    ],
)
def test_refusals_are_counted_where_they_are_observed(measured: Run, refused: int, tried: int, by: str) -> None:
    assert metrics.refusals(measured) == (refused, tried, by)
    assert of(metrics.CONFLICTS, measured).value == pytest.approx(refused / tried)


def test_shares_are_relative_to_ended_batches() -> None:
    measured = run([CONFLICT] * 50 + [ACKED] * 96 + [GIVEN_UP, GIVEN_UP, FAILED, UNKNOWN])
    assert of(metrics.ABANDONED, measured).value == pytest.approx(0.02)
    assert of(metrics.ERRORS, measured).value == pytest.approx(0.04)
    assert of(metrics.CONFLICTS_A_COMMIT, run([CONFLICT] * 50 + [ACKED] * 50)).value == pytest.approx(1)


def test_fairness_is_jains_index() -> None:
    assert of(metrics.FAIRNESS, run([ACKED] * 100)).value == pytest.approx(1)
    assert of(metrics.FAIRNESS, run([ACKED, CONFLICT] * 50)).value == pytest.approx(0.5)
    uneven = of(metrics.FAIRNESS, run(([ACKED] * 3 + [CONFLICT]) * 25))
    assert uneven.value == pytest.approx(75**2 / (2 * (50**2 + 25**2)))
    assert uneven.low is not None and uneven.high is not None and 0.5 <= uneven.low <= uneven.value <= uneven.high <= 1


def planned(*overrides: str) -> list[Any]:
    return list(make_plan(load(SHIPPED, ["studies=[ingest]", *overrides])).series)


def test_cells_combine_systems_and_numbers_of_writers() -> None:
    every = planned("protocol=quick", "ingest.systems={ducklake: {}, delta-rs: {}}")
    series = [each for each in every if part_name(each) == WRITERS]
    assert sorted({each.mode for each in series}) == ["one-1", "one-2", "one-4", "one-8", "own-4"]
    assert len(series) == 10 and all(each.dataset_directory for each in series)
    assert {dict(each.settings)["rows"] for each in series} == {500}


def test_kills_are_planned_for_the_systems_servers_if_it_stores_data() -> None:
    series = planned("protocol=quick", 'ingest.systems={"null": {}, delta-rs: {}, ducklake: {}, iceberg-pyiceberg: {}}')
    kills = {each.name: each for each in series if each.mode == "faults-2"}
    victims = {"delta-rs": 1, "ducklake": 2, "iceberg-pyiceberg": 3}  # a writer, PostgreSQL, the catalog's server
    assert {name: each.window_seconds for name, each in kills.items()} == {
        name: KILL_SECONDS * 3 * count for name, count in victims.items()
    }
    assert all(each.runs == 1 and dict(each.settings)["kills"] == 3 for each in kills.values())
    outside = planned("protocol=quick", "ingest.systems={ducklake: {}}", "services.postgres_address=host=db user=me")
    assert [each.window_seconds for each in outside if each.mode == "faults-2"] == [KILL_SECONDS * 3]
    far = planned("protocol=quick", "ingest.systems={ducklake: {storage: s3, rtt_ms: 5}}")  # and the store
    assert [each.window_seconds for each in far if each.mode == "faults-2"] == [KILL_SECONDS * 3 * 3]
    sizes = "{writers: [1], runs: 1, window_seconds: 1}"
    assert {each.mode for each in planned("protocol=smoke", f"ingest.protocols.smoke={sizes}")} == {"one-1"}


def test_retry_after_an_unknown_outcome_is_configured() -> None:
    asked = ("protocol=smoke", "ingest.systems={delta-rs: {}}")
    for given, mode in (("never", "faults-2"), ("check", "faults-2-check"), ("blind", "faults-2-blind")):
        (series,) = [each for each in planned(*asked, f"ingest.retry={given}") if part_name(each) == FAULTS]
        assert (series.mode, dict(series.settings)["retry"]) == (mode, given)
    with pytest.raises(ConfigError, match=r"ingest\.retry.*always"):
        planned(*asked, "ingest.retry=always")


def test_front_kills_are_planned_for_systems_of_the_group_that_store_data() -> None:
    series = [each for each in planned("protocol=quick") if part_name(each) == FRONT]
    assert {each.name for each in series} == {"ducklake", "delta-rs"}
    assert {each.mode for each in series} == {"front-50x32"} and len(series) == 2
    assert all(each.runs == 1 and each.window_seconds == KILL_SECONDS * 3 for each in series)
    assert settings_of(series[0]).has_front


GROUPED = "{writers: [1], runs: 1, window_seconds: 1, group: {systems: [%s], shapes: [50x32, 9x2], policies: [%s]}}"


def test_cells_behind_a_front_combine_systems_shapes_and_policies() -> None:
    given = f"ingest.protocols.smoke={GROUPED % ('delta-rs, ducklake', 'direct, staged, bundled')}"
    series = planned("protocol=smoke", "ingest.systems={delta-rs: {}, null: {}}", given)
    found = {each.mode: settings_of(each) for each in series if part_name(each) == GROUP}
    assert {each.name for each in series if part_name(each) == GROUP} == {"delta-rs"}  # ducklake is not configured
    assert set(found) == {f"{policy}-{shape}" for policy in POLICIES for shape in ("50x32", "9x2")}
    rules = {mode: settings.rules for mode, settings in found.items() if isinstance(settings, GroupSettings)}
    assert rules["bundled-9x2"] == FileBundling(8_000, 16 << 20, 50, 5, 128) and rules["staged-50x32"] == GroupCommit()
    writers = {mode: settings.writers for mode, settings in found.items() if isinstance(settings, GroupSettings)}
    assert (writers["direct-50x32"], writers["direct-9x2"], writers["staged-9x2"], writers["bundled-9x2"]) == (
        8,
        2,
        1,
        4,
    )


@pytest.mark.parametrize(
    ("system", "reason"),
    [("delta-rs", None), ("ducklake", None), ("iceberg-duckdb", "no call"), ("iceberg-pyiceberg", "field ids")],
)
def test_files_are_bundled_if_the_client_can_or_a_reason_is_given(system: str, reason: str | None) -> None:
    given = f"ingest.protocols.smoke={GROUPED % (system, 'bundled, staged')}"
    for spec in planned("protocol=smoke", f"ingest.systems={{{system}: {{}}}}", given):
        said = Ingest.unavailable(spec, variant_of(spec))
        assert reason in (said or "") if reason and spec.mode.startswith("bundled") else said is None


def test_behind_a_front_a_commit_holds_many_requests() -> None:
    """100 requests of 5 rows come from two clients, four per commit, and two more before the window."""
    measured = run([ACKED] * 100)
    measured.columns["commit"] = 7 + np.arange(100) // 4  # type: ignore[attr-defined]
    told = {"part": GROUP, "clients": 2, "writers": 1}.items()
    found = {"refused": None, "commits": 27, "requests": 102, "referenced_files": 52}.items()
    measured.manifest.config, measured.manifest.found = told, found  # type: ignore[misc, assignment]
    assert of(metrics.REQUESTS, measured).value == pytest.approx(100)
    assert of(metrics.COMMITS, measured).value == pytest.approx(25)
    assert of(metrics.ROWS, measured).value == pytest.approx(500)
    assert of(metrics.REQUESTS_A_FILE, measured).value == pytest.approx(2)
    assert of(metrics.REQUESTS_A_COMMIT, measured).value == pytest.approx(102 / 27)
    assert of(metrics.FAIRNESS, measured).value == pytest.approx(1)
    with pytest.raises(NotAvailable, match="no front"):
        of(metrics.REQUESTS_A_FILE, run([ACKED] * 9))


def test_configured_retries_are_variants_of_a_system() -> None:
    every = planned("protocol=quick")
    series = {each.name: each for each in every if each.mode == "one-8"}
    assert dict(series["ducklake"].options)["commit_retries"] is None
    assert dict(series["ducklake-retrying"].options)["commit_retries"] == 100
    assert series["ducklake-retrying"].fingerprint != series["ducklake"].fingerprint
    # Only where a commit may be refused: not with one writer, with a table per writer, or with kills.
    assert sorted(each.mode for each in every if each.name == "ducklake-retrying") == ["one-2", "one-4", "one-8"]
    assert {"one-1", "one-4", "own-4", "faults-2"} <= {each.mode for each in every if each.name == "ducklake"}


def test_distant_storage_series_use_the_shipped_systems() -> None:
    sizes = "ingest.protocols.smoke={writers: [1], rtts: [0, 40], runs: 2, window_seconds: 1}"
    series = [each for each in planned("protocol=smoke", sizes) if part_name(each) == STORAGE]
    systems = {"ducklake", "iceberg-pyiceberg", "iceberg-duckdb", "delta-rs"}
    assert {(each.name, each.mode) for each in series} == {(name, f"s3-{rtt}") for name in systems for rtt in (0, 40)}
    for each in series:
        options, settings = dict(each.options), dict(each.settings)
        assert (options["storage"], options["rtt_ms"]) == ("s3", settings["rtt_ms"]) and settings["writers"] == 1


def far(times: dict[int, float]) -> tuple[Any, list[Any]]:
    """Return measures and series with these median commit times by distance, within 1 %."""
    series = [SimpleNamespace(mode=f"s3-{rtt}", settings=()) for rtt in times]
    draws = np.random.default_rng(1).normal(1, 0.005, (len(times), REPLICATES))
    known = {f"s3-{rtt}": (time, draw) for (rtt, time), draw in zip(times.items(), draws, strict=True)}

    def hot(_quantity: Any, each: Any) -> BootstrapEstimate:
        time, draw = known[each.mode]
        return BootstrapEstimate(float(np.log(time)), np.log(time * draw), 50)

    return SimpleNamespace(hot=hot), series


def test_each_filter_matches_complete_files_and_the_printed_number_of_ten() -> None:
    rows = pa.concat_tables([rows_of(file, 6) for file in range(10)])
    assert len(set(rows.column("id").to_pylist())) == len(rows) == 60
    with duckdb.connect() as engine:
        for each in PREDICATES:
            shards = engine.sql(f"SELECT shard, count(*) FROM rows WHERE {each.asked.sql} GROUP BY ALL").fetchall()
            assert sorted(shards) == [(file, 6) for file in range(10) if each.fits(file)], each.name
            assert each.best is None or each.best == each.files(10)


def test_files_read_are_known_only_for_runs_with_queries() -> None:
    columns = {"predicate": np.array(["one hour", "text", "one hour"]), "files": np.array([1, 10, 2])}
    columns |= {"start_ns": np.arange(3), "elapsed_ns": np.ones(3)}
    column, has = columns.__getitem__, columns.__contains__
    manifest = SimpleNamespace(config={"part": PRUNING}.items(), oracle=SimpleNamespace(verdict=True), found={}.items())
    made = SimpleNamespace(label="a/b/c/run-1", manifest=manifest, column=column, words=column, has=has)
    made.record = recorded(manifest)
    asked = cast(Run, made)
    named = {each.name: each for each in RESULTS.quantities}
    hour = of(named["files read: one hour"], asked)
    assert (hour.value, hour.low, hour.high) == (2, 2, 2)
    with pytest.raises(NotAvailable, match="no query is asked"):
        of(named["files read: text"], run([ACKED]))
    for quantity in (metrics.COMMITS, metrics.P99, metrics.CONFLICTS, metrics.ERRORS, metrics.FILES):
        with pytest.raises(NotAvailable, match="nothing is committed"):
            of(quantity, asked)


def test_serial_round_trips_are_the_slope_over_the_distance() -> None:
    slope = round_trips(*far({0: 30, 5: 50, 20: 110, 60: 270})).estimate("")
    assert slope.value == pytest.approx(4) and slope.low is not None and slope.high is not None
    assert 3.7 < slope.low < 4 < slope.high < 4.3
    assert not round_trips(*far({0: 30, 20: 70})).estimate("").contains(4)
    # One disturbed median does not move it far, unlike a mean of slopes.
    assert round_trips(*far({0: 30, 5: 50, 20: 110, 40: 490, 60: 270})).value == pytest.approx(4, rel=0.2)
    measures, series = far({0: 30, 20: 70})
    few = SimpleNamespace(hot=lambda quantity, each: replace(measures.hot(quantity, each), draws=None))
    assert round_trips(cast(Any, few), series).estimate("").low is None
    with pytest.raises(NotAvailable, match="two distances"):
        round_trips(*far({20: 70}))


@pytest.mark.parametrize("name", ["opensearch", "parquet-datafusion"])
def test_stand_in_is_measured_with_one_writer_alone(name: str) -> None:
    series = planned("protocol=smoke", f"ingest.systems={{{name}: {{}}}}")
    said = {spec.mode: Ingest.unavailable(spec, variant_of(spec)) for spec in series}
    assert said.pop("one-1") is None and "one-4" in said
    assert all("for one writer" in str(reason) for reason in said.values())


def test_single_process_system_is_a_cell_with_a_reason() -> None:
    for system, reason in (("ducklake-inlined", "one process"), ("ducklake", None)):
        spec = planned("protocol=smoke", f"ingest.systems={{{system}: {{}}}}")[0]
        said = Ingest.unavailable(spec, variant_of(spec))
        assert (said is None and reason is None) or (reason is not None and reason in (said or ""))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("ingest.protocols.mine={writers: [0], runs: 1, window_seconds: 1}", r"at least 1"),
        (
            "ingest.protocols.smoke={writers: [1], own: [3], runs: 1, window_seconds: 1}",
            r"protocols\.smoke\.own.*found 3; allowed: numbers",
        ),
        ("ingest.protocols.mine={writers: [1], runs: 1, window_seconds: 1, kills: -1}", r"kills.*at least 0"),
        (
            f"ingest.protocols.smoke={GROUPED % ('delta', 'direct')}",
            r"group\.systems.*found 'delta'; allowed: .*did you mean 'delta-rs'",
        ),
        (f"ingest.protocols.smoke={GROUPED % ('delta-rs', 'later')}", r"group\.policies.*later.*direct"),
        ("ingest.group={max_files: 0}", r"group\.max_files.*at least 1"),
        ("ingest.rows=0", r"ingest\.rows.*at least 1"),
        ("ingest.systems={ducklake: {catalog: polaris}}", r"does not have"),
        ("ingest.systems={iceberg-pyiceberg: {catalog: polaris}}", r"no Polaris"),
        ("ingest.systems={ducklake: {commit_retries: -1}}", r"commit_retries.*at least 0"),
    ],
)
def test_invalid_setting_is_named(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        planned("protocol=smoke", override)


# By the id of the claim: the verdict of the page's numbers on its text.
OF_ITSELF = {
    "printed-loki": NOT_REPRODUCED,
    "printed-behind": REPRODUCED,
    "printed-one-file-a-request": REPRODUCED,
    "printed-clients-count": NOT_REPRODUCED,
    "printed-store-is-saturated": NOT_REPRODUCED,
    "printed-buffer-fills": NOT_REPRODUCED,
    "printed-requests-16": NOT_REPRODUCED,
    "printed-requests-32": NOT_REPRODUCED,
    "printed-one-cell": NOT_REPRODUCED,
    "printed-rows-a-file": NOT_REPRODUCED,
    "printed-fewer-files": NOT_REPRODUCED,
    "printed-crash-durability": INCONCLUSIVE,
}


def test_page_is_checked_against_its_own_numbers() -> None:
    claim_data = LossClaimData(cast(Any, SimpleNamespace(run_set=SimpleNamespace(stack="thesis"))))
    found = {
        claim.id: claim.criterion.judge(claim.measure(claim_data)[0].estimate(""))[0]
        for claim in load_claims(RESULTS.claims)
        if claim.id.startswith("printed-")
    }
    assert found == OF_ITSELF


def test_published_cells_are_complete_and_claims_use_their_numbers() -> None:
    cells = published.cells()
    assert len(cells) == 18 and all(each.lowest < each.rows_per_s < each.highest for each in cells)
    claims = yaml.safe_load(RESULTS.claims.path.read_text())
    assert len(claims) == len({claim["id"] for claim in claims})
    rates = {each.rows_per_s for each in cells}
    rows = [claim for claim in claims if claim["id"].startswith(("row-direct", "row-su", "row-si"))]
    printed = [claim["published"]["value"] for claim in rows if claim["published"]["unit"] == "rows/s"]
    assert len(printed) == 6 and set(printed) <= rates
    shown = {name for claim in claims for name in claim["shown"]}
    tables = ("outcomes", "scaling", "group", "storage", "pruning", "faults", "maintenance", "kyma", "not-here")
    tables += ("contradictions", "tail", "writers", "evolution")
    assert shown == {f"ingest-{name}" for name in tables}
