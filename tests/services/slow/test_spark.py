from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.engines.spark import Spark


@pytest.fixture(scope="module")
def spark(shared_workspace: Workspace) -> Iterator[Spark]:
    settings = {"spark.sql.shuffle.partitions": "3"}
    with Spark(shared_workspace, shared_workspace.work / "spark", settings) as server:
        yield server


def test_statement_returns_rows_plans_and_times(spark: Spark) -> None:
    assert spark.version() == "3.5.7"
    query = (
        "SELECT id % 2 AS odd, sum(id) / 3, CAST(sum(id) AS DECIMAL(30, 9)) / 8 FROM range(10) GROUP BY 1 ORDER BY 1"
    )
    answer = spark.sql(query, name="sums")
    assert answer.columns[0] == "odd" and [row[0] for row in answer.rows] == [0, 1]
    assert answer.rows[0][1] == pytest.approx(20 / 3) and answer.rows[1][2].startswith("3.125")
    assert 0 < answer.planned_ns < answer.elapsed_ns and answer.submitted_ms > 1_700_000_000_000
    assert "Aggregate" in answer.optimized and "isFinalPlan=true" in answer.executed


def test_later_statement_sees_the_table_of_an_earlier_one(spark: Spark) -> None:
    spark.sql("CREATE TABLE numbers USING parquet AS SELECT id, CAST(NULL AS INT) AS nothing FROM range(5)")
    assert spark.sql("SELECT max(id), count(nothing) FROM numbers").rows == ((4, 0),)
    assert list((spark.data_directory / "warehouse" / "numbers").glob("*.parquet"))


def test_server_listens_on_loopback_only_and_its_session_has_the_given_settings(
    spark: Spark, listening: Callable[[Iterable[int]], set[str]]
) -> None:
    assert listening(spark.pids()) == {"127.0.0.1"}
    told = dict(spark.sql("SET").rows)
    assert told["spark.sql.shuffle.partitions"] == "3" and told["spark.sql.session.timeZone"] == "UTC"


def test_event_log_holds_the_jobs_of_each_statement(spark: Spark, tmp_path: Path) -> None:
    spark.sql("SELECT sum(id) FROM range(10)", name="before")
    logs = [tmp_path / name for name in ("first", "second")]
    for number, log in enumerate(logs):
        log.mkdir()
        spark.log_events(log)
        answer = spark.sql(
            f"SELECT id % 2, count(*) FROM range(0, 1000, 1, {number + 2}) GROUP BY 1", name=f"q{number}"
        )
    told = [spark.logged(log) for log in logs]
    for number, jobs in enumerate(told):
        assert {job.description for job in jobs} == {f"q{number}"}
        stages = [stage for job in jobs for stage in job.stages]
        assert stages[0].tasks == number + 2 and stages[0].shuffle_written_bytes > 0
        assert all(job.submitted_ms <= job.ended_ms for job in jobs)
    assert answer.submitted_ms <= told[1][0].submitted_ms <= answer.submitted_ms + answer.elapsed_ns // 1_000_000 + 1


def test_refused_statement_raises_the_reason(spark: Spark) -> None:
    with pytest.raises(ServiceError, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM nowhere")
    with pytest.raises(ServiceError, match="DIVIDE_BY_ZERO"):
        spark.sql("SELECT raise_error('DIVIDE_BY_ZERO')")
    assert spark.sql("SELECT 1").rows == ((1,),)


def test_stop_and_removal_leave_nothing(spark: Spark, wait_until_gone: Callable[[Iterable[int]], list[int]]) -> None:
    pids = spark.pids()
    spark.stop()
    assert pids and not wait_until_gone(pids)
    spark.remove_data()
    assert not spark.data_directory.exists()
