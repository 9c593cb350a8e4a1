"""Tests, without a server, of the division of a write's time and of the description of rows and files."""

from __future__ import annotations

from pathlib import PurePosixPath

import pyarrow as pa
import pytest

from tidemark.services.programs.hudi_files import begun, newest
from tidemark.systems.bulk.kafka_spark_clients import avro_schema, divided, parts_of


def test_each_moment_belongs_to_one_part_and_none_is_lost() -> None:
    # One stage reads the topic from 10 to 30, HDFS calls run during and after it, another stage overlaps some of them.
    assert divided(0, 100, [(10, 30)], [(20, 40), (35, 50)], [(45, 70)]) == [20, 20, 20, 40]
    assert divided(0, 100, [], [], []) == [0, 0, 0, 100]
    assert divided(0, 100, [(-20, 10), (90, 300)], [(5, 95)], []) == [20, 80, 0, 0]


def test_parts_of_an_application_add_up_to_its_total_time() -> None:
    found = parts_of({"began_ns": 5, "done_ns": 105, "kafka": [[10, 20]], "hdfs": [[15, 30]], "tasks": [[50, 60]]})
    assert found == {"kafka": 10, "hdfs": 10, "tasks": 10, "driver": 70}


def test_column_type_without_an_avro_type_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"the column at is of the type timestamp\[us\]; allowed: int64"):
        avro_schema(pa.table({"at": pa.array([0], pa.timestamp("us"))}))
    assert avro_schema(pa.table({"price": pa.array([1], pa.decimal128(15, 2))}))["fields"] == [
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 15, "scale": 2}]}
    ]


def test_newest_file_of_a_completed_instant_counts_in_each_group() -> None:
    names = [
        "a_0-1-2_001.parquet",
        "a_0-9-9_002.parquet",
        "a_0-9-9_003.parquet",
        "b_1-1-1_001.parquet",
        "c_0-0-0_003.parquet",
    ]
    completed = {instant for name in ("001_002.commit", "002_003.commit", "003.commit.requested", "004.inflight")
                 if (instant := begun(name))}  # fmt: skip
    assert completed == {"001", "002"}
    found = newest([PurePosixPath(name) for name in names], completed)
    assert {each.name for each in found} == {names[1], names[3]}
