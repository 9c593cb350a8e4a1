"""Tables of the measurements: loads, queries, refreshes, merges by size, many files, two engines, and verification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tidemark.analysis.formatting import Cell, MissingCell
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.tables import table
from tidemark.results.tables.table import SYSTEM, Column, ComputedColumn, Table, TableBuilder, computed, tables_by
from tidemark.runs.runset import Series
from tidemark.runs.views import all_runs
from tidemark.studies.lhbench import metrics, published
from tidemark.studies.lhbench.data.micro import expected_share
from tidemark.studies.lhbench.record import Compared, DataRecord, LakeRecord
from tidemark.studies.lhbench.script import AFTER, BEFORE
from tidemark.studies.lhbench.settings import FILES, LOAD, MERGE, REFRESH, MergeSettings, RefreshSettings, settings_of
from tidemark.studies.lhbench.verifier.readers import CALLED, DUCKLAKE

LARGE_SAID = (
    "A local disk in place of S3, one machine in place of seventeen, megabytes in place of terabytes: what a statement "
    "costs whatever its size (planning, a session's compiling, small files) weighs more here than in the paper."
)
ALIKE = (
    "All formats on the same engine with the same session settings, heap, processors, source files and texts, Parquet "
    "with snappy; each series in a separate session. What belongs to a format stays as shipped: sizes of files, "
    "statistics, Hudi's indexes and metadata table."
)
NOTES = table.notes_of(__file__)
ALL_NOTES = table.notes_of(__file__, ALIKE, LARGE_SAID)  # for tables that compare times
SUMS = (  # columns of operations.parquet: name, title, unit, and factor to that unit
    ("jobs", "Jobs", "", 1.0),
    ("tasks", "Tasks", "", 1.0),
    ("task_ns", "All tasks", "s", 1e-9),
    ("gc_ns", "Of it in collections of garbage", "s", 1e-9),
    ("scan_ns", "Of it in stages that read tables", "s", 1e-9),
    ("scan_bytes", "Read there", "B", 1.0),
    ("shuffle_bytes", "Shuffled", "B", 1.0),
    ("spilled_bytes", "Spilled", "B", 1.0),
)
NAMES = {"startup": "Startup", "execution": "Execution", "whole": "Whole", "first": "First time"}
ALL, LOADS = "all", "load"  # in place of a query's name
OWN_TITLE = "DuckLake (DuckDB)"
NOT_SPARKS = "DuckDB's own tables, of the same files: Spark was not asked"


def _verdict(series: Series) -> Cell:
    """Return the verifier's verdict: `exact`, or the findings of the first run with an error."""
    if not series.runs:
        return MissingCell(series.missing())
    wrong = [run.record(LakeRecord).words for run in series.runs if not run.manifest.oracle.verdict]
    return f"WRONG: {wrong[0]}" if wrong else "exact"


SCALE: ComputedColumn[Series] = computed("scale", "Scale factor", lambda series: settings_of(series).size)
VERDICT = computed("verdict", "Verdict", _verdict)


def _metric(builder: TableBuilder, quantity: Metric, title: str = "") -> ComputedColumn[Series]:
    """Return the column of `quantity`, which is empty for series without runs: the verdict has the reason."""

    def value(series: Series) -> BootstrapEstimate | None:
        return builder.measures.value(quantity, series) if series.runs else None

    return computed(quantity.key or quantity.name, title or quantity.title, value, quantity.unit, interval=True)


def _loads(builder: TableBuilder) -> Table:
    chosen = metrics.in_part(builder.run_set, LOAD)
    asked = (metrics.LOADING, metrics.LOADING_CPU, metrics.BYTES, metrics.FILE_COUNT)
    columns = (table.SYSTEM_OF_SERIES, SCALE, VERDICT, *(_metric(builder, quantity) for quantity in asked))
    notes = ALL_NOTES("lhb-load")
    return builder.computed_table("lhb-load", "Loading TPC-DS", columns, chosen, all_runs(chosen), notes)


def _queries(builder: TableBuilder) -> Table:
    def count(series: Series) -> int | None:
        return max(
            (len(metrics.subjects(run, BEFORE)) for run in series.runs if run.manifest.oracle.verdict), default=None
        )

    def failed(series: Series) -> str:
        return "; ".join(sorted({words for run in series.runs for words in run.record(LakeRecord).failed}))

    chosen = metrics.in_part(builder.run_set, LOAD)
    asked = (metrics.TOTAL, metrics.LATER, metrics.PLANNING, metrics.STARTUP, metrics.EXECUTION, *metrics.FOUR)
    columns = (
        table.SYSTEM_OF_SERIES,
        SCALE,
        computed("queries_asked", "Queries", count),
        computed("failed", "Failed", failed),
        *(_metric(builder, quantity) for quantity in asked),
    )
    title = "Queries of TPC-DS after the load"
    return builder.computed_table("lhb-queries", title, columns, chosen, all_runs(chosen), ALL_NOTES("lhb-queries"))


def _medians(builder: TableBuilder) -> Table:
    """Return a table with a row per query and a column per system."""
    chosen = [each for each in metrics.in_part(builder.run_set, LOAD) if each.runs]
    rows: dict[tuple[float, str], None] = {}  # scale factor and query
    for each in chosen:  # sorted by scale factor
        for run in each.runs:
            with suppress(NotAvailable):
                rows |= dict.fromkeys((settings_of(each).size, name) for name in metrics.subjects(run, BEFORE))
    own = {(each.system, settings_of(each).size): each for each in chosen}

    def column(system: str, title: str) -> ComputedColumn[tuple[float, str]]:
        def value(row: tuple[float, str]) -> BootstrapEstimate | None:
            series = own.get((system, row[0]))
            return builder.measures.value(metrics.QUERYING[row[1]], series) if series else None

        return computed(system, title, value, "s", interval=True)

    columns = (
        computed("scale", "Scale factor", lambda row: row[0]),
        computed("query", "Query", lambda row: row[1]),
        *(column(*names) for names in dict.fromkeys((each.system, each.title) for each in chosen)),
    )
    notes = [*NOTES("lhb-query-medians"), ALIKE]
    title = "Each query, by format"
    return builder.computed_table("lhb-query-medians", title, columns, list(rows), all_runs(chosen), notes)


def _refreshes(builder: TableBuilder) -> Table:
    chosen = metrics.in_part(builder.run_set, REFRESH)

    def longest_at(series: Series) -> str | None:
        numbers = [1 + int(np.argmax(metrics.merges_s(run))) for run in series.runs]
        return ", ".join(map(str, numbers)) or None

    titles = {
        metrics.TOTAL: "Queries before",
        metrics.QUERIES_AFTER: "Queries after",
        metrics.QUERIES_COMPACTED: "Queries after compaction",
    }
    columns = (
        table.SYSTEM_OF_SERIES,
        SCALE,
        computed("refreshes", "Refreshes", lambda series: RefreshSettings.of(series).refreshes),
        VERDICT,
        *(_metric(builder, quantity, titles.get(quantity, "")) for quantity in (*metrics.OF_REFRESH, metrics.GROWTH)),
        _metric(builder, metrics.LONGEST),
        computed("longest_at", "Which was longest, by run", longest_at),
    )
    title = "Refreshes, and queries around them"
    return builder.computed_table("lhb-refresh", title, columns, chosen, all_runs(chosen), ALL_NOTES("lhb-refresh"))


@dataclass(frozen=True, slots=True)
class _Merge:
    """One merge of a series; size 0 stands for a series without runs."""

    series: Series
    size: int = 0
    touched: int = 0  # files

    @property
    def settings(self) -> MergeSettings:
        return MergeSettings.of(self.series)

    def data_files(self, phase: str) -> Cell:
        """Return the data files of its table after a phase; None if it was not measured."""
        tables = self.series.runs[0].record(LakeRecord).sizes.get(f"{phase} {self.size}") if self.size else None
        return sum(each.data_files for each in tables.values()) if tables is not None else None


def _merges(builder: TableBuilder) -> Table:
    chosen = metrics.in_part(builder.run_set, MERGE)
    rows = []
    for each in chosen:
        sets = each.runs[0].record(DataRecord).data.sets if each.runs else ()
        by_size = sorted((int(size), of_size.touched) for size, of_size in sets)
        rows += [_Merge(each, size, touched) for size, touched in by_size] if each.runs else [_Merge(each)]

    def measured(value: Callable[[_Merge], Cell | BootstrapEstimate]) -> Callable[[_Merge], Cell | BootstrapEstimate]:
        return lambda row: value(row) if row.size else None

    def metric(key: str, title: str, unit: str, quantity: Callable[[int], Metric]) -> ComputedColumn[_Merge]:
        value = measured(lambda row: builder.measures.value(quantity(row.size), row.series))
        return computed(key, title, value, unit, interval=True)

    by_name = {(each.stack, each.mode, each.system): each for each in chosen}

    def over_reading(row: _Merge) -> BootstrapEstimate | None:
        """Return the merge of the same format that copies files over this one; None if it was not measured."""
        other = by_name.get((row.series.stack, row.series.mode, f"{row.series.system}-cow"))
        if other is None:
            return None
        copied, read = (builder.measures.value(metrics.merging(row.size), each) for each in (other, row.series))
        return copied.ratio(read)

    columns: tuple[ComputedColumn[_Merge], ...] = (
        computed("system", SYSTEM.title, lambda row: row.series.title),
        computed("rows", "Rows", lambda row: row.settings.rows),
        computed("files", "Files asked for", lambda row: row.settings.files),
        computed("updates", "Updates", lambda row: row.size or None),
        computed("updates_a_file", "Updates a file", measured(lambda row: row.size / row.settings.files)),
        computed("touched", "Share of files touched", measured(lambda row: row.touched / row.settings.files)),
        computed("touched_expected", "Expected", measured(lambda row: expected_share(row.settings.files, row.size))),
        computed("verdict", "Verdict", lambda row: _verdict(row.series)),
        metric("merge", "Merge", "s", metrics.merging),
        computed("copying", "Copying files over it", measured(over_reading), "x", interval=True),
        metric("slowdown", "Queries after over before", "x", metrics.slowdown),
        computed("files_before", "Data files before", lambda row: row.data_files("load")),
        computed("files_after", "Data files after", lambda row: row.data_files("merge")),
    )
    title = "One merge, from few rows to many"
    return builder.computed_table("lhb-merges", title, columns, rows, all_runs(chosen), ALL_NOTES("lhb-merges"))


def _oracle(builder: TableBuilder) -> Table:
    chosen = [each for each in builder.run_set.select() if each.runs]
    rows: list[list[Cell]] = []
    for each in chosen:
        for run in each.runs:
            record, oracle = run.record(LakeRecord), run.manifest.oracle
            answers = [answer for _, phase in record.answers for _, answer in phase]
            rows.append([
                each.title, each.mode, each.repeat_of(run), sum(len(phase) for _, phase in record.tables),
                oracle.expected, oracle.found, len(answers), sum(not answer.rows for answer in answers),
                record.words, oracle.reader, oracle.seconds,
            ])  # fmt: skip
    columns = (
        SYSTEM, Column("mode", "Series"), Column("repeat", "Repeat"), Column("tables", "Tables read"),
        Column("expected", "Rows expected"), Column("found", "Rows found"), Column("answers", "Answers compared"),
        Column("empty", "Of them without a row"), VERDICT.column, Column("reader", "Reader"),
        Column("seconds", "Took", "s"),
    )  # fmt: skip
    title = "What a judge without the engine found"
    return builder.table("lhb-oracle", title, columns, rows, all_runs(chosen), NOTES("lhb-oracle"))


def _files(builder: TableBuilder) -> Table:
    """Return a table with a row per system, number of files and query, and the paper's value where it has one."""
    chosen = metrics.in_part(builder.run_set, FILES)
    rows: list[list[Cell]] = []
    for each in chosen:
        files = int(settings_of(each).size)
        if not each.runs:
            rows.append([each.title, files, None, _verdict(each)])
            continue
        (size,) = (found for tables in each.runs[0].record(LakeRecord).sizes.values() for found in tables.values())
        for query, quantities in metrics.OF_FILES.items():
            cells = [_metric(builder, quantity).cell(each) for quantity in quantities]
            cells += [_printed(each.system, query, files), size.metadata_files, size.metadata_bytes]
            rows.append([each.title, files, query, _verdict(each), *cells])
    columns = (
        SYSTEM, Column("files", "Files"), Column("query", "Query"), VERDICT.column,
        *(Column(name, title, "s", interval=True) for name, title in NAMES.items()),
        Column("printed", "Startup in the paper", "s"), Column("metadata_files", "Files of metadata"),
        Column("metadata_bytes", "Bytes of metadata", "B"),
    )  # fmt: skip
    title = "What queries cost before they read many files"
    return builder.table("lhb-files", title, columns, rows, all_runs(chosen), NOTES("lhb-files"))


def _printed(system: str, query: str, files: int) -> Cell:
    """Return the startup that the paper prints, in seconds; None if it prints none."""
    theirs = next((name for name, like in published.LIKE.items() if like == system), "")
    known = dict(published.along(4, f"{query} startup", theirs))
    return known[files] / 1_000 if files in known else None


def _engine(builder: TableBuilder) -> Table:
    chosen = [each for each in builder.run_set.select() if each.runs]
    rows: list[list[Cell]] = [
        [each.title, each.mode, kind, *(_sum(each, kind, name, factor) for name, *_, factor in SUMS)]
        for each in chosen
        for kind in dict.fromkeys(each.runs[0].words("kind").tolist())
    ]
    columns = (
        SYSTEM, Column("mode", "Series"), Column("kind", "Steps"),
        *(Column(name.removesuffix("_ns"), title, unit) for name, title, unit, _ in SUMS),
    )  # fmt: skip
    title = "What the engine did for each format"
    return builder.table("lhb-engine", title, columns, rows, all_runs(chosen), NOTES("lhb-engine"))


def _sum(series: Series, kind: str, name: str, factor: float) -> float | None:
    """Return the sum of a column over steps of `kind`, as the median over runs; None if no run kept a log."""
    kept = [run for run in series.runs if run.has(name)]
    if not kept:
        return None
    return float(np.median([run.column(name)[run.words("kind") == kind].sum() for run in kept])) * factor


def _readers(builder: TableBuilder) -> Table:
    """Return a table with a row per series and additional reader."""
    chosen = [each for each in builder.run_set.select() if each.runs]
    rows: list[list[Cell]] = []
    for each in chosen:
        by_reader: dict[str, list[tuple[str, Compared]]] = {}
        for run in each.runs:
            for phase, readers in run.record(LakeRecord).beside:
                for reader, tables in readers:
                    by_reader.setdefault(reader, []).extend((f"{phase}, {name}", found) for name, found in tables)
        for reader, cases in by_reader.items():
            wrong: list[list[Cell]] = [
                [f"WRONG: {found.words}", where, found.expected, found.found] for where, found in cases if found.words
            ]
            rows.append([each.title, each.mode, reader, len(cases), len(wrong), *next(iter(wrong), ["exact", ""])])
    columns = (
        SYSTEM, Column("mode", "Series"), Column("reader", "Reader"), Column("tables", "Tables read"),
        Column("wrong", "Of them wrong"), VERDICT.column, Column("where", "First after"),
        Column("expected", "Rows expected"), Column("found", "Rows found"),
    )  # fmt: skip
    title = "Other readers of the same tables"
    return builder.table("lhb-readers", title, columns, rows, all_runs(chosen), NOTES("lhb-readers"))


@dataclass(frozen=True, slots=True)
class _Asking:
    """Phase and part after which the second engine ran, and the first engine's total for the same queries."""

    part: str
    phase: str
    words: str
    whole: Metric


ASKED = (
    _Asking(LOAD, BEFORE, "as loaded", metrics.TOTAL),
    _Asking(REFRESH, AFTER, "after all refreshes", metrics.QUERIES_AFTER),
)


def second_engine(builder: TableBuilder) -> Table:
    """Return a table with the same queries on the same tables by a second engine, and on DuckLake's."""
    chosen = [(asking, each) for asking in ASKED for each in metrics.in_part(builder.run_set, asking.part)]
    rows = [row for asking, each in chosen for row in _by_two_engines(builder, asking, each)]
    columns = (
        SYSTEM, SCALE.column, Column("state", "Tables"), Column("read", "Read by DuckDB as"),
        Column("query", "Query"), Column("spark", "Spark", "s", interval=True),
        Column("duckdb", "DuckDB", "s", interval=True), Column("ratio", "Spark over DuckDB", "x", interval=True),
    )  # fmt: skip
    notes = NOTES("lhb-second-engine")
    title = "DuckDB on the tables that Spark wrote"
    return builder.table("lhb-second-engine", title, columns, rows, all_runs(each for _, each in chosen), notes)


def _by_two_engines(builder: TableBuilder, asking: _Asking, series: Series) -> Iterator[list[Cell]]:
    """Yield a row for all queries together and for each, by each way; or one row with the reason if there is none."""

    def cell(quantity: Metric) -> Cell:
        return _metric(builder, quantity).cell(series)

    first_cells: list[Cell] = [settings_of(series).size, asking.words]
    try:
        if not series.runs:
            raise NotAvailable(series.missing())
        ways = list(metrics.ways_of(series.runs[0], asking.phase))
        asked = metrics.subjects(series.runs[0], asking.phase)
    except NotAvailable as absent:
        yield [series.title, *first_cells, "", ALL, cell(asking.whole), MissingCell(str(absent)), None]
        return
    for way in ways:
        pairs = [(ALL, asking.whole, metrics.total_by(way, asking.phase))]
        pairs += [
            (name, metrics.querying(asking.phase, name), metrics.query_by(way, asking.phase, name)) for name in asked
        ]
        if way == DUCKLAKE:
            head: Sequence[Cell] = (OWN_TITLE, *first_cells, CALLED[way])
            yield [*head, LOADS, MissingCell(NOT_SPARKS), cell(metrics.LOADED), None]
            for name, _, duckdb in pairs:
                yield [*head, name, MissingCell(NOT_SPARKS), cell(duckdb), None]
            continue
        for name, spark, duckdb in pairs:
            ratio = builder.ratio("ratio", "Spark over DuckDB", spark, duckdb).cell(series)
            yield [series.title, *first_cells, CALLED[way], name, cell(spark), cell(duckdb), ratio]


build = tables_by(_loads, _queries, _medians, _refreshes, _merges, _oracle, _files, _engine, _readers, second_engine)
