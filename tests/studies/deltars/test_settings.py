from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import Plan, make_plan
from tidemark.studies.deltars.settings import shape_of
from tidemark.studies.deltars.workload import Tables

SHIPPED = Path(__file__).parents[3] / "config.yaml"


def plan(*overrides: str) -> Plan:
    return make_plan(load(SHIPPED, ["studies=[deltars]", *overrides]))


def test_each_system_meets_each_table_with_each_number_of_processors_that_is_here() -> None:
    found = plan("deltars.systems={delta-rs-hdfs: {}, delta-rs-local: {}}", "protocol=quick")
    cores = [each for each in (1, 2) if each <= len(os.sched_getaffinity(0))]
    assert {shape_of(spec.mode) for spec in found.series} == {
        (data, count) for data in ("supplier_sf1", "supplier_sf10", "supplier_sf100", "lineitem_sf1") for count in cores
    }
    assert len(found.series) == 2 * 4 * len(cores)
    assert all(spec.cpus == shape_of(spec.mode)[1] and spec.dataset_directory == "" for spec in found.series)


def test_a_system_has_processors_of_its_own_where_the_protocol_says_so() -> None:
    sizes = (
        "tables: {supplier_sf1: 3}, cores: [1, 2], instead: {before: {cores: [1]}, legacy: {cores: [2]}}, repeats: 1"
    )
    systems = "deltars.systems={delta-rs-local: {}, before: {like: delta-rs-local-before}}"
    found = plan(f"deltars.protocols={{mine: {{{sizes}}}}}", "protocol=mine", systems)
    cores = {name: {spec.cpus for spec in found.series if spec.name == name} for name in ("delta-rs-local", "before")}
    assert cores == {"delta-rs-local": {1, 2} & set(range(len(os.sched_getaffinity(0)) + 1)), "before": {1}}


def test_processors_that_are_not_here_are_left_out_and_that_is_said() -> None:
    sizes = "deltars.protocols={mine: {tables: {supplier_sf1: 3}, cores: [1, 1000], repeats: 2}}"
    found = plan(sizes, "protocol=mine", "deltars.systems={delta-rs-local: {}}")
    assert {shape_of(spec.mode)[1] for spec in found.series} == {1}
    assert [spec.repeat for spec in found.series] == [1, 2]
    (note,) = found.notes
    assert note.startswith("study 'deltars': clients with 1000 processors were asked for, this machine has")


def test_a_write_through_servers_is_reckoned_with_the_time_that_it_takes() -> None:
    sizes = "deltars.protocols={mine: {tables: {supplier_sf1: 2}, slow: {supplier_sf1: 2}, cores: [1], repeats: 1}}"
    found = plan(sizes, "protocol=mine", "deltars.systems={delta-rs-local: {}, legacy: {}}")
    assert {spec.system: Tables.likely_seconds(spec) for spec in found.series} == {"delta-rs-local": 4, "legacy": 62}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "deltars.protocols.smoke={tables: {supplier_sf1: 1}, cores: [1], instead: {legcy: {cores: [1]}}, "
            "repeats: 1}",
            r"protocols\.smoke\.instead': found 'legcy'; allowed: .*did you mean 'legacy'",
        ),
        ("deltars.protocols.smoke={tables: {orders_sf1: 3}, cores: [1], repeats: 1}", r"found the table 'orders_sf1'"),
        ("deltars.protocols.smoke={tables: {supplier_sf0: 3}, cores: [1], repeats: 1}", r"allowed: supplier_sf and"),
        ("deltars.protocols.smoke={tables: {supplier_sf1: 0}, cores: [1], repeats: 1}", r"at least 1"),
        ("deltars.protocols.smoke={tables: {supplier_sf1: 1}, cores: [0], repeats: 1}", r"at least 1"),
        ("deltars.systems={delta-rs: {}}", r"systems\.delta-rs': found 'delta-rs', which is a table; allowed: .*hdfs"),
        ("deltars.systems={delta-rs-hdf: {}}", r"did you mean 'delta-rs-hdfs'"),
    ],
)
def test_what_is_wrong_is_named(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(override, "protocol=smoke")
