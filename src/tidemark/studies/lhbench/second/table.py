"""Table of the second engine: the same queries on the same tables, and on DuckLake's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.runset import Series
from tidemark.studies.lhbench.judge.readers import DUCKLAKE
from tidemark.studies.lhbench.load.settings import LOAD
from tidemark.studies.lhbench.parts import size_of
from tidemark.studies.lhbench.quantities import QUERIES_AFTER, TOTAL, in_part, of, querying, subjects
from tidemark.studies.lhbench.refresh.settings import REFRESH
from tidemark.studies.lhbench.second.quantities import LOADED, query_by, total_by, ways_of
from tidemark.studies.lhbench.second.ways import CALLED
from tidemark.studies.lhbench.tables.measured import cell
from tidemark.studies.lhbench.window.script import AFTER, BEFORE

ALL, LOADING = "all", "load"  # in place of a query's name
OWN_TITLE = "DuckLake (DuckDB)"
NOT_SPARKS = "DuckDB's own tables, of the same files: Spark was not asked"


@dataclass(frozen=True, slots=True)
class Asking:
    """Phase and part after which the second engine ran, and the first engine's total for the same queries."""

    part: str
    phase: str
    words: str
    whole: Quantity


ASKED = (Asking(LOAD, BEFORE, "as loaded", TOTAL), Asking(REFRESH, AFTER, "after all refreshes", QUERIES_AFTER))


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the table lhb-second-engine."""
    chosen = [(asking, each) for asking in ASKED for each in in_part(workshop.run_set, asking.part)]
    rows = [row for asking, each in chosen for row in _rows(workshop, asking, each)]
    columns = (
        SYSTEM, Column("scale", "Scale factor"), Column("state", "Tables"), Column("read", "Read by DuckDB as"),
        Column("query", "Query"), Column("spark", "Spark", "s", interval=True),
        Column("duckdb", "DuckDB", "s", interval=True), Column("ratio", "Spark over DuckDB", "x", interval=True),
    )  # fmt: skip
    notes = [
        "DuckDB in a separate process, on as many threads as there are processors and with as much memory as Spark's "
        "heap, runs the same texts on the very tables that Spark wrote, as often, while Spark is idle; the "
        "median of both. A table is read from its metadata on at each query: nothing is attached or kept.",
        "Two engines, and no comparison of formats: Spark plans for many machines, and its first time compiles.",
        "Before, each table is read completely and compared with the base files and what was merged; every answer of "
        "every pass is compared with DuckDB's own to these. What is read or answered wrong has no time, but a reason.",
        "DuckLake: tables that DuckDB loaded itself of the same Parquet files, catalog in a file of DuckDB's, no rows "
        "in the catalog; 'load' is what all CREATE TABLE ... AS SELECT took together.",
    ]
    runs = [run for _, each in chosen for run in each.runs]
    yield workshop.table("lhb-second-engine", "DuckDB on the tables that Spark wrote", columns, rows, runs, notes)


def _rows(workshop: Workshop, asking: Asking, series: Series) -> Iterator[list[Cell]]:
    """Yield a row for all queries together and for each, by each way; or one row with the reason if there is none."""
    told: list[Cell] = [size_of(series.mode), asking.words]
    try:
        if not series.runs:
            raise Absent(series.missing())
        ways = list(ways_of(series.runs[0], asking.phase))
        asked = subjects(series.runs[0], asking.phase)
    except Absent as absent:
        yield [series.title, *told, "", ALL, cell(workshop, asking.whole, series), Missing(str(absent)), None]
        return
    for way in ways:
        own = way == DUCKLAKE
        head: list[Cell] = [OWN_TITLE if own else series.title, *told, CALLED[way]]
        if own:
            yield [*head, LOADING, Missing(NOT_SPARKS), cell(workshop, LOADED, series), None]
        pairs = [(ALL, asking.whole, total_by(way, asking.phase))]
        pairs += [(name, querying(asking.phase, name), query_by(way, asking.phase, name)) for name in asked]
        for name, theirs, ours in pairs:
            first = Missing(NOT_SPARKS) if own else cell(workshop, theirs, series)
            ratio = None if own else attempt("x", _ratio(workshop, theirs, ours, series))
            yield [*head, name, first, cell(workshop, ours, series), ratio]


def _ratio(workshop: Workshop, theirs: Quantity, ours: Quantity, series: Series) -> Callable[[], Replicates]:
    return lambda: of(workshop.measures, theirs, series).ratio(of(workshop.measures, ours, series))
