"""Conformance suite for every table format on an engine in the registry, on the real engine.

A table is loaded, merged into twice and compacted. After each step a reader that is independent of the engine compares
it with DuckDB's result for the same files. A row that is changed afterwards must be detected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.conformance.conftest import Servers

from tidemark.errors import ServiceError, TidemarkError
from tidemark.paths import Workspace
from tidemark.services.engines.spark import SparkBefore
from tidemark.software.tools import provide_tool
from tidemark.studies.lhbench.data.store import TOOL, Verifier
from tidemark.studies.lhbench.script import QUERY, Phase, Step
from tidemark.studies.lhbench.verifier.readers import HUDI, WAYS
from tidemark.studies.lhbench.window import second_engine
from tidemark.systems.base import Context
from tidemark.systems.registry import of_kind
from tidemark.systems.spark_sql import COPY_ON_WRITE, MERGE_ON_READ, SqlEngineTable

KEY = ("k", "day")
BY_DAY = "SELECT day, count(*), sum(price), avg(price) FROM sales GROUP BY day"
BASE = "SELECT range AS k, range % 5 AS day, CAST(range / 4 AS DECIMAL(7, 2)) AS price, 'w' || range AS word FROM range"
SETS = ("SELECT * REPLACE (price + 1 AS price) FROM ({base}(10, 30))", "({base}(25, 120))")
# Their libraries are fetched only for them.
OF_2022 = [name for name, kind in of_kind(SqlEngineTable).items() if issubclass(kind.needs[0], SparkBefore)]
SLOW = pytest.mark.long(reason="another mode or release of a format takes as long again")
# Each format as shipped, and formats with two modes in the other one as well, which takes as long again.
VARIANTS: Sequence[Any] = [
    *(pytest.param((name, {}), marks=SLOW if name in OF_2022 else (), id=name)
      for name in of_kind(SqlEngineTable)),
    *(pytest.param((name, {"mode": COPY_ON_WRITE}), marks=SLOW, id=f"{name}-cow")
      for name, kind in of_kind(SqlEngineTable).items() if hasattr(kind.Options(), "mode") and name not in OF_2022),
    pytest.param(("iceberg-on-spark", {"mode": MERGE_ON_READ, "format_version": 3}), marks=SLOW, id="v3"),
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the base of 100 rows and two sets: 20 rows that change, then 95 of which 20 are new."""
    folder = tmp_path_factory.mktemp("lakehouses")
    texts = [f"{BASE}(100)", *(text.format(base=BASE) for text in SETS)]
    paths = [folder / f"{number}.parquet" for number in range(3)]
    with duckdb.connect() as connection:
        for path, text in zip(paths, texts, strict=True):
            connection.execute(f"COPY ({text}) TO '{path}' (FORMAT parquet)")
    return paths


@pytest.fixture(params=VARIANTS, ids=lambda each: each[0])
def system(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[SqlEngineTable]:
    name, options = request.param
    kind = of_kind(SqlEngineTable)[name]
    running = {each: servers.get(each) for each in kind.needs}
    directory = tmp_path / "tables"
    directory.mkdir()
    made = kind(Context(directory, running, 1), kind.Options(**options))
    made.open()
    yield made
    made.close()


def run(system: SqlEngineTable, statements: Sequence[str]) -> None:
    for statement in statements:
        assert system.run(statement, "conformance").elapsed_ns > 0


def held(system: SqlEngineTable, files: Sequence[Path]) -> dict[str, Any]:
    """Describe the table `sales` after the sets that follow the first of `files`, in the form that orders use."""
    return {
        "base": f"SELECT * FROM read_parquet('{files[0]}')",
        "merged": [str(path) for path in files[1:]],
        "key": list(KEY),
        "location": str(system.location("sales")),
    }


def words(
    judge: Verifier, system: SqlEngineTable, files: Sequence[Path], answers: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the judge's words on that table, and those on `answers`."""
    order = {
        "do": "judge",
        "folder": str(judge.folder),
        "reader": system.reader,
        "tables": {"sales": held(system, files)},
        "read": True,
    }
    said = judge.ask({**order, "answers": answers})
    assert said["tables"]["sales"]["words"] or said["tables"]["sales"]["found"] > 0
    return said["tables"]["sales"]["words"], said["answers"]


def times(judge: Verifier, system: SqlEngineTable, files: Sequence[Path]) -> dict[str, int]:
    """Return, for each way to that table, the number of times that another engine measured for a query."""
    steps = tuple(Step(QUERY, "by day", number, (BY_DAY,), BY_DAY) for number in (1, 2))
    said = second_engine(judge, system.reader, Phase("queries", steps), {"sales": held(system, files)})
    assert ("reason" in said) == (system.reader == HUDI), said
    found = {way: told["queries"]["by day"] for way, told in said.get("ways", {}).items()}
    assert all(bool(each["ns"]) != bool(each["words"]) for each in found.values()), found
    return {way: len(each["ns"]) for way, each in found.items()}


def test_loaded_merged_and_compacted_table_is_read_independently_of_the_engine(
    system: SqlEngineTable, files: list[Path], workspace: Workspace, tmp_path: Path
) -> None:
    provide_tool(TOOL, workspace)
    judge = Verifier.of(workspace, tmp_path / "judge")
    run(system, system.create("sales", f"SELECT * FROM {system.parquet(files[0])} WHERE day IS NOT NULL", KEY))
    answer = {"by day": {"text": BY_DAY, "rows": system.run(BY_DAY, "by day").rows}}
    said, answers = words(judge, system, files[:1], answer)
    assert said == "" and answers["by day"] == {"rows": 5, "words": ""}
    assert system.footprint("sales").data_files > 0
    assert set(times(judge, system, files[:1]).values()) == ({2} if system.reader in WAYS else set())
    if system.merges:
        for number, path in enumerate(files[1:], 2):
            run(system, system.merge("sales", system.parquet(path), KEY, ("k", "day", "price", "word")))
            assert words(judge, system, files[:number], {})[0] == ""
        run(system, system.compact("sales"))
        assert words(judge, system, files, {})[0] == ""
        wrong, answers = words(judge, system, files[:2], answer)
        assert "rows of 100" in wrong and answers["by day"]["words"]  # compared with the state before the last set
        run(system, ["UPDATE sales SET price = price + 1 WHERE k = 7"])
        assert "other values in price" in words(judge, system, files, {})[0]
        assert set(times(judge, system, files).values()) == ({0} if system.reader in WAYS else set())
    with pytest.raises((ServiceError, TidemarkError), match=r"(?i)not.found|cannot be found"):
        system.run("SELECT * FROM nothing_of_this_name", "refused")
    assert set(system.in_force()) >= {"spark.master", "spark.sql.shuffle.partitions"}
    assert system.versions()
