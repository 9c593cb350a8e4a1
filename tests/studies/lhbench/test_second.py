"""Tests of a second engine on tables of another one: correct reads have times, and wrong reads have a reason."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from tests.studies.lhbench.records import record_of

from tidemark.analysis.formatting import MissingCell
from tidemark.analysis.metrics import NotAvailable
from tidemark.results.tables.table import TableBuilder
from tidemark.runs.run import Run
from tidemark.studies.lhbench import tables as lake_tables
from tidemark.studies.lhbench.metrics import LOADED, LOADED_TABLES, second_s, total_by
from tidemark.studies.lhbench.script import BEFORE
from tidemark.studies.lhbench.verifier import duckdb_queries, readers
from tidemark.studies.lhbench.verifier.readers import DELTA, DUCKLAKE, PARQUET

BASE = {
    "item": "SELECT range AS k, CAST(range / 4 AS DECIMAL(7, 2)) AS price, 'w' || range AS word FROM range(100)",
    "reason": "SELECT range AS k, range % 7 AS v FROM range(50)",
}
# Makes a row wrong in a column that no query reads.
TAMPERED = "SELECT * REPLACE (IF(k = 7, 'other', word) AS word) FROM '{path}'"
QUERIES = {
    "q1": "SELECT count(*), sum(price) FROM item",
    "q2": "SELECT v, count(*) FROM reason GROUP BY v",
    "q3": "SELECT nothing FROM reason",
}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    """Return base files, and tables in separate folders with the same rows, in the form of an order."""
    made = {}
    with duckdb.connect() as connection:
        for name, query in BASE.items():
            path, location = tmp_path / f"{name}.parquet", tmp_path / "tables" / name
            location.mkdir(parents=True)
            for target in (path, location / "part-0.parquet"):
                connection.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet)")
            base = f"SELECT * FROM read_parquet('{path}')"
            made[name] = {"base": base, "merged": [], "key": ["k"], "location": str(location)}
    return made


def tamper(path: Path) -> None:
    with duckdb.connect() as connection:
        wrong = connection.execute(TAMPERED.format(path=path)).fetch_arrow_table()
    pq.write_table(wrong, path)


def ask(tables: dict[str, Any], folder: Path, reader: str = PARQUET) -> dict[str, Any]:
    order = {"folder": str(folder), "reader": reader, "tables": tables, "queries": QUERIES, "passes": 2}
    said: dict[str, Any] = duckdb_queries.ask({**order, "memory_mb": 512})["ways"]
    return said


def times(told: dict[str, Any]) -> dict[str, int]:
    """Return the number of times of each query."""
    return {name: len(each["ns"]) for name, each in told["queries"].items()}


def test_each_query_is_timed_in_each_pass_and_failures_state_the_reason(tables: dict[str, Any], tmp_path: Path) -> None:
    said = ask(tables, tmp_path)
    assert list(said) == [PARQUET, DUCKLAKE]
    for told in said.values():
        assert times(told) == {"q1": 2, "q2": 2, "q3": 0} and not told["tables"]
        assert all(took > 0 for name in ("q1", "q2") for took in told["queries"][name]["ns"])
        assert [each["rows"] for each in told["queries"].values()] == [1, 7, 0]
        assert '"nothing" not found' in told["queries"]["q3"]["words"]
    assert not said[PARQUET]["load_ns"] and set(said[DUCKLAKE]["load_ns"]) == set(BASE)


@pytest.mark.parametrize("reader", [PARQUET, DELTA])
def test_a_wrong_row_leaves_queries_of_its_table_without_a_time(
    tables: dict[str, Any], tmp_path: Path, reader: str
) -> None:
    """This holds even if no answer shows it: the sum of prices is correct."""
    for given in tables.values():
        path = Path(given["location"]) / "part-0.parquet"
        if reader == DELTA:
            rows = pq.read_table(path)
            path.unlink()
            write_deltalake(given["location"], rows)
    folder = Path(tables["item"]["location"])
    assert times(ask(tables, tmp_path, reader)[reader]) == {"q1": 2, "q2": 2, "q3": 0}
    (path,) = folder.glob("*.parquet")
    tamper(path)
    (tmp_path / "again").mkdir()
    told = ask(tables, tmp_path / "again", reader)[reader]
    assert times(told) == {"q1": 0, "q2": 2, "q3": 0} and "word" in told["tables"]["item"]
    assert told["queries"]["q1"]["words"].startswith("item is read wrong: ")


def test_lake_that_lost_or_changed_rows_has_no_times(
    tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = duckdb_queries.load

    def tampered(folder: Path, bases: dict[str, str], memory_mb: int) -> dict[str, int]:
        return load(folder, {**bases, "item": f"SELECT * REPLACE (k + 1 AS k) FROM ({bases['item']})"}, memory_mb)

    monkeypatch.setattr(duckdb_queries, "load", tampered)
    told = ask(tables, tmp_path)[DUCKLAKE]
    assert times(told) == {"q1": 0, "q2": 2, "q3": 0} and "k" in told["tables"]["item"]


def test_an_answer_that_differs_has_no_time() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS k")
        known = duckdb_queries.Known({"q": [(2,)], "right": [(1,)]})
        asked = duckdb_queries.answered(connection, {"q": "FROM t", "right": "FROM t"}, 3, {}, known)
    assert {name: each.told()["ns"] == [] for name, each in asked.items()} == {"q": True, "right": False}
    assert asked["q"].words.startswith("1 of 1 rows differ") and len(asked["right"].ns) == 3


def test_missing_reader_is_a_reason(tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(readers.EXTENSIONS, DELTA, ("of_none",))
    told = ask(tables, tmp_path, DELTA)[DELTA]
    assert {each["words"] for each in told["queries"].values()} == {"of_none"}


def run_of(second: dict[str, Any], *, verdict: bool = True) -> Run:
    """Return a run whose second engine was queried after the load."""
    manifest = SimpleNamespace(oracle=SimpleNamespace(verdict=verdict))
    return cast(Run, SimpleNamespace(manifest=manifest, record=record_of(second={BEFORE: second})))


def told(ns: Sequence[int], words: str = "") -> dict[str, Any]:
    return {"ns": list(ns), "rows": 1, "words": words}


def test_times_are_medians_and_reasons_are_no_numbers() -> None:
    right = {"q1": told([4_000_000, 2_000_000, 9_000_000]), "q2": told([1_000_000])}
    lake = {"load_ns": {"item": 5_000_000, "reason": 1_000_000}, "tables": {}, "queries": right}
    wrong = {"load_ns": {}, "tables": {}, "queries": {**right, "q2": told([], "item is read wrong: 2 rows of 3")}}
    run = run_of({"ways": {PARQUET: wrong, DUCKLAKE: lake}})
    for way in (PARQUET, None):
        assert second_s(run, BEFORE, way, ("q1",)).value == pytest.approx(0.004)
    assert cast(Any, total_by(DUCKLAKE, BEFORE).how)(run).value == pytest.approx(0.005)
    assert cast(Any, LOADED.how)(run).value == pytest.approx(0.006)
    for how in (LOADED_TABLES.how, total_by(PARQUET, BEFORE).how):
        with pytest.raises(NotAvailable, match="q2: item is read wrong: 2 rows of 3"):
            cast(Any, how)(run)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (run_of({"reason": "nobody reads it"}), "nobody reads it"),
        (
            cast(Run, SimpleNamespace(manifest=run_of({}).manifest, record=record_of())),
            "no second engine",
        ),
        (run_of({"ways": {}}, verdict=False), "not what it must be"),
    ],
)
def test_reason_for_missing_times_is_stated(run: Run, words: str) -> None:
    with pytest.raises(NotAvailable, match=words):
        cast(Any, LOADED_TABLES.how)(run)


class Asked(SimpleNamespace):
    """Run of the part `load`: the first engine's two queries, run once, 8 ms each."""

    columns: ClassVar[dict[str, Any]] = {
        "kind": ["query", "query"], "phase": [BEFORE] * 2, "subject": ["q1", "q2"], "error": ["", ""],
        "iteration": [1, 1], "elapsed_ns": [8_000_000] * 2,
    }  # fmt: skip

    def words(self, name: str) -> Any:
        return np.array(self.columns[name])

    column = words


def rows_of(*found: tuple[str, dict[str, Any]]) -> dict[tuple[str, str, str], list[Any]]:
    """Return the table's rows by system, way and query: times of both engines, and the ratio."""
    series = [
        SimpleNamespace(
            title=title, mode="load-sf0p01", settings=(), hot_runs=(), runs=[Asked(**vars(run_of(second)))],
        )
        for title, second in found
    ]  # fmt: skip
    builder = SimpleNamespace(
        run_set=SimpleNamespace(select=lambda **_: series),
        measures=SimpleNamespace(value=lambda quantity, each: quantity.how(each.runs[0])),
        table=lambda _name, _title, _columns, rows, _runs, _notes: rows,
    )
    vars(builder)["ratio"] = partial(TableBuilder.ratio, cast(TableBuilder, builder))
    rows = cast(Any, lake_tables.second_engine(cast(TableBuilder, builder)))
    return {(title, way, query): rest for title, _, _, way, query, *rest in rows}


def test_each_engine_has_a_time_or_a_reason_per_query() -> None:
    lake = {"load_ns": {"item": 5_000_000}, "tables": {}, "queries": {"q1": told([2_000_000]), "q2": told([1_000_000])}}
    wrong = {"load_ns": {}, "tables": {}, "queries": {"q1": told([2_000_000]), "q2": told([], "2 rows of 3")}}
    rows = rows_of(("Files", {"ways": {PARQUET: wrong, DUCKLAKE: lake}}), ("Hudi", {"reason": "no reader"}))
    shown = {key: [getattr(each, "value", each) for each in cells] for key, cells in rows.items()}
    assert shown["Files", "read_parquet", "q1"] == pytest.approx([0.008, 0.002, 4.0])
    spark, ours, ratio = shown["Files", "read_parquet", "q2"]
    assert spark == pytest.approx(0.008) and ours == ratio == MissingCell("q2: 2 rows of 3")
    assert shown["Files", "read_parquet", "all"][1] == MissingCell("q2: 2 rows of 3")
    assert shown["DuckLake (DuckDB)", "DuckLake", "load"][1] == pytest.approx(0.005)
    assert shown["DuckLake (DuckDB)", "DuckLake", "all"][1] == pytest.approx(0.003)
    assert shown["Hudi", "", "all"][1:] == [MissingCell("no reader"), None]
