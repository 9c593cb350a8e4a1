"""DuckDB as a second engine runs the queries on the tables that the first engine wrote; a call of the program.

A wrong result has no time. This holds for a query whose answer differs from the one on the base files, and for a query
of a table that is not read correctly, even if its answer is right.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import duckdb

from tidemark.studies.lhbench.data.tpcds import named_in
from tidemark.studies.lhbench.verifier import readers
from tidemark.studies.lhbench.verifier.comparison import Held, answer_difference, canonical_answer, connect, expect


@dataclass(slots=True)
class Asked:
    """Result of one query: nanoseconds of each pass, or in `words` the reason why there are none."""

    ns: list[int] = field(default_factory=list)
    rows: int = 0
    words: str = ""

    def told(self) -> dict[str, Any]:
        return {"ns": [] if self.words else self.ns, "rows": self.rows, "words": self.words}


@dataclass(slots=True)
class Known:
    """Expected answers of the queries by name, or the reason why an answer is unknown."""

    answers: dict[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, queries: Mapping[str, str]) -> Self:
        """Return the answers on a connection in which plain table names refer to the expected tables."""
        made = cls()
        for name, text in queries.items():
            try:
                made.answers[name] = connection.execute(text).fetchall()
            except duckdb.Error as error:
                made.refused[name] = _line(error)
        return made


def ask(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of each way to read the tables of `order`, and the engine's version, threads and memory."""
    folder, given = Path(order["folder"]), order["tables"]
    with connect(folder) as judging:
        expect(judging, given)
        tables = {name: Held.of(judging, name, each) for name, each in given.items()}
        known = Known.of(judging, order["queries"])
        threads = judging.execute("SELECT current_setting('threads')").fetchall()[0][0]
    engine = {"DuckDB": duckdb.__version__, "threads": threads, "memory_mb": order["memory_mb"]}
    return {"engine": engine, "ways": {way: _by(way, order, tables, known) for way in readers.WAYS[order["reader"]]}}


def _by(way: str, order: Mapping[str, Any], tables: Mapping[str, Held], known: Known) -> dict[str, Any]:
    """Return the results of one way: load times if it loads, tables that it reads incorrectly, and all queries."""
    loads: dict[str, int] = {}
    try:
        if way == readers.DUCKLAKE:
            bases = {name: each["base"] for name, each in order["tables"].items()}
            loads = load(Path(order["folder"]), bases, order["memory_mb"])
            tables = {name: replace(held, location=Path(name)) for name, held in tables.items()}
        with opened(way, Path(order["folder"]), order["memory_mb"]) as connection:
            wrong = seen(connection, way, tables)
            queries = answered(connection, order["queries"], order["passes"], wrong, known)
    except (duckdb.Error, AssertionError) as error:  # a missing extension, or a failing lake
        queries, wrong = dict.fromkeys(order["queries"], Asked(words=_line(error))), {}
    told = {name: each.told() for name, each in queries.items()}
    return {"load_ns": loads, "tables": wrong, "queries": told}


@contextmanager
def opened(way: str, folder: Path, memory_mb: int, *, writes: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a DuckDB connection that can read by `way`, with as much memory as the first engine has."""
    with connect(folder, *readers.EXTENSIONS.get(way, ())) as connection:
        connection.execute(f"SET memory_limit = '{memory_mb}MiB'")
        if way == readers.DUCKLAKE:
            # DuckLake's default limit of rows that are inlined in the catalog differs between releases.
            how = f"DATA_PATH '{folder}/lake', DATA_INLINING_ROW_LIMIT 0" if writes else "READ_ONLY"
            connection.execute(f"ATTACH 'ducklake:{folder}/lake.ducklake' AS {readers.LAKE} ({how})")
        yield connection


def load(folder: Path, bases: Mapping[str, str], memory_mb: int) -> dict[str, int]:
    """Create a lake in `folder` from the queries `bases`, by table name; return the nanoseconds of each load."""
    took = {}
    with opened(readers.DUCKLAKE, folder, memory_mb, writes=True) as connection:
        connection.execute(f"CALL {readers.LAKE}.set_option('parquet_compression', 'snappy')")
        for name, base in bases.items():
            start = time.perf_counter_ns()
            connection.execute(f"CREATE TABLE {readers.LAKE}.{name} AS {base}")
            took[name] = time.perf_counter_ns() - start
    return took


def seen(connection: duckdb.DuckDBPyConnection, way: str, tables: Mapping[str, Held]) -> dict[str, str]:
    """Create views of `tables` as `way` reads them; return the differences of incorrect tables, in words."""
    wrong = {}
    for name, held in tables.items():
        if words := held.compared(connection, way)["words"]:
            wrong[name] = words
        else:
            relation = readers.relation(connection, held.name, way, held.location)
            connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {relation}")
    return wrong


def answered(
    connection: duckdb.DuckDBPyConnection,
    queries: Mapping[str, str],
    passes: int,
    wrong: Mapping[str, str],
    known: Known,
) -> dict[str, Asked]:
    """Run all queries one after the other, `passes` times, and compare each answer with the `known` one."""
    asked = {name: Asked(words=known.refused.get(name) or _misread(text, wrong)) for name, text in queries.items()}
    for _ in range(passes):
        found: dict[str, Sequence[Sequence[Any]]] = {}
        for name, each in asked.items():
            if each.words:
                continue
            start = time.perf_counter_ns()
            try:
                found[name] = connection.execute(queries[name]).fetchall()
            except duckdb.Error as error:
                each.words = _line(error)
            each.ns.append(time.perf_counter_ns() - start)
        for name, rows in found.items():  # after the pass, so that nothing runs between its queries
            asked[name].rows = len(rows)
            asked[name].words = answer_difference(canonical_answer(known.answers[name]), canonical_answer(rows))
    return asked


def _misread(text: str, wrong: Mapping[str, str]) -> str:
    return "; ".join(f"{name} is read wrong: {wrong[name]}" for name in named_in(text, wrong))


def _line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
