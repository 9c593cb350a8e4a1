"""Tests of the section's settings: valid values, the planned series, and refusals with their place."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import make_plan
from tidemark.studies.freshness.settings import FreshnessSettings, Policy
from tidemark.studies.freshness.study import Freshness
from tidemark.systems.registry import variant_of

SHIPPED = Path(__file__).parents[3] / "config.yaml"
CHOSEN = ["studies=[freshness]", "protocol=smoke"]


def sizes(policy: str, policies: str = "[]") -> str:
    """Return a protocol as YAML."""
    return (
        f"{{policies: {policies}, intervals: [], rate: 9, rates: [], policy: {policy}, kills: 0, kill_rate: 9, "
        "kill_seconds: 0, window_seconds: 4, drain_seconds: 9}"
    )


def test_policies_are_times_numbers_of_rows_or_every_event() -> None:
    assert Policy.parse("event") == Policy(None, 1)
    assert Policy.parse("250ms") == Policy(250, None)
    assert Policy.parse("10s") == Policy(10_000, None)
    assert Policy.parse("1000rows") == Policy(None, 1000)
    assert [Policy.parse(each).words for each in ("event", "250ms", "1000rows")] == [
        "every event",
        "every 0.25 s",
        "every 1,000 events",
    ]


def test_each_system_has_its_policies_its_rates_and_kills() -> None:
    plan = make_plan(load(SHIPPED, [*CHOSEN, "freshness.systems={delta-rs: {}, kafka-connect-iceberg: {}}"]))
    modes = {name: {spec.mode for spec in plan.series if spec.name == name} for name in ("delta-rs",)}
    assert modes["delta-rs"] == {"1s-200-json", "1s-200-json-kills-1", "100ms-200-json-upkeep-all-10"}
    of_connect = [spec for spec in plan.series if spec.name == "kafka-connect-iceberg"]
    assert {spec.mode for spec in of_connect} == {"1s-200-json", "1s-200-json-kills-1"}
    lengths = {FreshnessSettings.of(spec).kills: spec.window_seconds for spec in of_connect}
    assert lengths == {0: 3.0, 1: 3.0 + 3}
    assert FreshnessSettings.of(of_connect[0]).rules.interval_ms == 1000


def test_events_before_and_in_a_window_fill_commits_of_row_count_policies() -> None:
    """Otherwise the run would wait in vain for the last of them."""
    asked = [*CHOSEN, f"freshness.protocols={{smoke: {sizes('1s', '[7rows, 1000rows, 1s]')}}}", "freshness.warm=12"]
    asked.append("freshness.systems={delta-rs: {}}")
    made = {spec.mode: spec for spec in make_plan(load(SHIPPED, asked)).series}
    assert {mode: FreshnessSettings.of(spec).warm for mode, spec in made.items()} == {
        "7rows-9-json": 14, "1000rows-9-json": 1000, "1s-9-json": 12,
    }  # fmt: skip
    assert made["1000rows-9-json"].window_seconds == pytest.approx(2000 / 9)  # two commits
    assert Policy.parse("7rows").whole(36, math.floor) == 35 and Policy.parse("7rows").whole(3, math.floor) == 7
    assert Policy.parse("1s").whole(36, math.floor) == 36


def test_rate_is_raised_in_a_separate_series() -> None:
    ramp = sizes("1s")[:-1] + ", own_drain_seconds: 3, ramp: {rate: 50, steps: 4, step_seconds: 6}}"
    asked = [*CHOSEN, f"freshness.protocols={{smoke: {ramp}}}"]
    asked.append("freshness.systems={delta-rs: {}, kafka-connect-iceberg: {}}")
    made = {spec.name: spec for spec in make_plan(load(SHIPPED, asked)).series}
    assert {spec.mode for spec in made.values()} == {"1s-50-json-ramp-4"} and len(made) == 2
    assert {spec.window_seconds for spec in made.values()} == {24.0}
    drains = {name: FreshnessSettings.of(spec).drain_seconds for name, spec in made.items()}
    assert drains == {"delta-rs": 3, "kafka-connect-iceberg": 3}
    asked[2] = asked[2].replace("step_seconds: 6", "step_seconds: 6, without: [delta-rs]")
    assert [spec.name for spec in make_plan(load(SHIPPED, asked)).series] == ["kafka-connect-iceberg"]


@pytest.mark.parametrize(
    ("label", "policy", "rate", "encoding", "kills", "steps"),
    [
        ("1s-50-json-ramp-4", "1s", 50, "json", 0, 4),
        ("event-200-record-kills-2", "event", 200, "record", 2, 0),
        ("1000rows-9-json", "1000rows", 9, "json", 0, 0),
    ],
)
def test_label_of_an_old_plan_tells_the_settings(
    label: str, policy: str, rate: int, encoding: str, kills: int, steps: int
) -> None:
    found = FreshnessSettings.of(SimpleNamespace(mode=label, settings=()))
    assert (found.policy, found.rate, found.encoding, found.kills, found.steps) == (
        policy,
        rate,
        encoding,
        kills,
        steps,
    )
    assert found.is_steady == (not kills and not steps)


def test_quick_has_the_sizes_that_its_time_was_estimated_with() -> None:
    series = make_plan(load(SHIPPED, ["studies=[freshness]", "protocol=quick"])).series
    own, connect = (
        [spec for spec in series if (spec.system == "kafka-connect-iceberg") is is_pipeline]
        for is_pipeline in (False, True)
    )
    kept = [spec for spec in own if FreshnessSettings.of(spec).upkeep]
    own = [spec for spec in own if spec not in kept]
    assert (len(own), len(connect), len(kept)) == (3 * 7, 2 * 2 + 1, 7 * 4)
    measured = [spec for spec in kept if Freshness.unavailable(spec, variant_of(spec)) is None]
    assert len(measured) == 4 + 3 + 3 + 4 + 2 and {spec.window_seconds for spec in kept} == {20.0}
    # Windows only, in seconds: at least two commits, 5 more for a kill, and 6 steps of 8 for a climb (Connect: one).
    assert sum(spec.window_seconds for spec in own) == 3 * (4 * 8 + 20 + 18 + 48)
    assert sum(spec.window_seconds for spec in connect) == 2 * (8 + 18) + 48


KEPT = f"{sizes('1s')[:-1]}, upkeep: {{systems: [SYSTEMS], policies: [1s none, 1s merge 5], rates: [9], " \
       "window_seconds: 1}}"  # fmt: skip


def test_upkeep_is_measured_of_the_tables_that_the_section_lists_and_their_like() -> None:
    asked = f"freshness.protocols={{smoke: {KEPT}}}".replace("SYSTEMS", "ducklake, ducklake-inlined, delta-rs")
    series = make_plan(load(SHIPPED, [*CHOSEN, asked, "freshness.systems={ducklake: {}}"])).series
    assert all(FreshnessSettings.of(spec).is_steady == ("upkeep" not in spec.mode) for spec in series)
    assert all("upkeep" in dict(spec.settings) for spec in series if "upkeep" in spec.mode)
    reasons = {(spec.name, FreshnessSettings.of(spec).upkeep): Freshness.unavailable(spec, variant_of(spec))
               for spec in series}  # fmt: skip
    locked = "its catalog is a DuckDB file, which one process at a time may have open"
    assert reasons == {
        ("ducklake", "none"): None, ("ducklake", "merge-5"): None,
        ("ducklake-inlined", "none"): locked, ("ducklake-inlined", "merge-5"): locked,
    }  # fmt: skip
    (spec,) = (spec for spec in series if spec.name == "ducklake" and spec.mode.endswith("merge-5"))
    assert (spec.mode, spec.window_seconds) == ("1s-9-json-upkeep-merge-5", 2.0), "two commits at least"


def test_series_without_upkeep_keep_their_fingerprints() -> None:
    (spec,) = make_plan(load(SHIPPED, [*CHOSEN, f"freshness.protocols={{smoke: {sizes('1s', '[1s]')}}}",
                                       "freshness.systems={delta-rs: {}}"])).series  # fmt: skip
    assert "upkeep" not in dict(spec.settings) and FreshnessSettings.of(spec).upkeep == ""


def test_pipelines_get_json_whatever_encoding_is_configured() -> None:
    plan = make_plan(load(SHIPPED, [*CHOSEN, "freshness.encoding=record"]))
    found = {spec.system: dict(spec.settings)["encoding"] for spec in plan.series}
    assert found["delta-rs"] == "record" and found["kafka-connect-iceberg"] == "json"


def test_a_window_is_long_enough_for_two_commits() -> None:
    asked = [*CHOSEN, f"freshness.protocols={{smoke: {sizes('1s', '[30s]')}}}", "freshness.systems={delta-rs: {}}"]
    (spec,) = make_plan(load(SHIPPED, asked)).series
    assert spec.window_seconds == 60


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (f"freshness.protocols={{smoke: {sizes('event')}}}", "policy.*found 'event'; allowed: a time"),
        (f"freshness.protocols={{smoke: {sizes('1s', '[soon]')}}}", "policies.*soon"),
        (
            f"freshness.protocols={{smoke: {sizes('1s')[:-1]}, ramp: {{rate: 9, steps: 1, step_seconds: 1, without: "
            "[lanse]}}}",
            r"smoke\.ramp\.without': found 'lanse'; allowed: .*did you mean 'lance'",
        ),
        (f"freshness.protocols={{smoke: {KEPT}}}".replace("SYSTEMS", "lanse"), "upkeep.systems': found 'lanse'"),
        (
            f"freshness.protocols={{smoke: {KEPT}}}".replace("SYSTEMS", "kafka-connect-iceberg"),
            "found 'kafka-connect-iceberg', which is a pipeline.*; allowed: a table",
        ),
        (
            f"freshness.protocols={{smoke: {KEPT}}}".replace("SYSTEMS", "ducklake").replace("merge 5", "mend 5"),
            r"policies.*1s mend 5",
        ),
        ("freshness.systems={rest-memory: {}}", "rest-memory.*a catalog server; allowed: a table, or a pipeline"),
        ("freshness.systems={kafka-connect-iceberg: {commit_timeout_ms: 5}}", "found 5; allowed: at least 1000"),
    ],
)
def test_invalid_setting_is_refused_with_its_place(given: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_plan(load(SHIPPED, [*CHOSEN, given]))


ALL = "freshness.systems={kafka-connect-iceberg: {}, flink-iceberg: {}, spark-iceberg: {}, spark-delta: {}}"
FAR = ["services.kafka_address=kafka:9092", "services.iceberg_rest_address=http://rest:8181"]
ENGINES = {
    "kafka-connect-iceberg": "services.connect_address=http://connect:8083",
    "flink-iceberg": "services.flink_address=http://flink:8081",
    "spark-iceberg": "services.spark_master=spark://spark:7077",
}


@pytest.mark.parametrize("system", ENGINES)
@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (
            ["services.kafka_address=127.0.0.1:9092", FAR[1]],
            r"Kafka on this machine's loopback \(127\.0\.0\.1:9092\); ",
        ),
        ([FAR[0]], r"Iceberg REST catalog on this .* \(started here\); give services\.iceberg_rest_address, as both"),
    ],
)
def test_remote_engine_needs_servers_that_it_can_reach(system: str, beside: list[str], said: str) -> None:
    asked = [*CHOSEN, f"freshness.systems={{{system}: {{}}}}", ENGINES[system], *beside]
    with pytest.raises(ConfigError, match=rf"freshness\.systems\.{system}'.*{said}"):
        make_plan(load(SHIPPED, asked))
    assert make_plan(load(SHIPPED, [*asked[: -len(beside)], *FAR])).series


def test_local_engine_reaches_servers_started_here() -> None:
    here = ["services.flink_address=http://localhost:8081", "services.spark_master=spark://127.0.0.1:7077"]
    assert make_plan(load(SHIPPED, [*CHOSEN, "freshness.systems={flink-iceberg: {}, spark-iceberg: {}}", *here])).series
    delta = [*CHOSEN, "freshness.systems={spark-delta: {}}", ENGINES["spark-iceberg"]]
    assert make_plan(load(SHIPPED, [*delta, FAR[0]])).series, "no catalog is in the way"


def test_users_engine_is_not_killed_and_the_cell_states_why() -> None:
    def reasons(*given: str) -> dict[tuple[str, bool], str | None]:
        series = make_plan(load(SHIPPED, [*CHOSEN, ALL, *given])).series
        told = {(spec.system, FreshnessSettings.of(spec).kills > 0): (spec, variant_of(spec)) for spec in series}
        return {which: Freshness.unavailable(*of) for which, of in told.items()}

    assert set(reasons().values()) == {None}
    found = reasons(*FAR, *ENGINES.values())
    refused = {which: why for which, why in found.items() if why}
    assert set(refused) == {("kafka-connect-iceberg", True), ("flink-iceberg", True)}
    assert refused["flink-iceberg", True] == (
        "it runs in Flink, a server of the user's own (services.flink_address), which is not ours to kill"
    )
