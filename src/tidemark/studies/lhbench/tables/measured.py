"""Tables of the measurements: loads, queries, refreshes, merges by size, and the judge's findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tidemark.analysis.measures import Absent
from tidemark.analysis.quantities import Quantity
from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.lhbench.data.micro import expected_share
from tidemark.studies.lhbench.load.settings import LOAD
from tidemark.studies.lhbench.merge.settings import MERGE
from tidemark.studies.lhbench.merge.settings import shape_of as shape_of_merge
from tidemark.studies.lhbench.parts import size_of
from tidemark.studies.lhbench.quantities import (
    BYTES,
    COMPACTING,
    EXECUTION,
    FILES,
    GROWTH,
    LATER,
    LOADING,
    LOADING_CPU,
    MERGING,
    PLANNING,
    QUERIES_AFTER,
    QUERIES_COMPACTED,
    QUERYING,
    STARTUP,
    TOTAL,
    found,
    in_part,
    merging,
    of,
    slowdown,
    subjects,
)
from tidemark.studies.lhbench.refresh.settings import REFRESH
from tidemark.studies.lhbench.refresh.settings import shape_of as shape_of_refresh
from tidemark.studies.lhbench.window.script import BEFORE

LARGE_SAID = (
    "A local disk in place of S3, one machine in place of seventeen, megabytes in place of terabytes: what a statement "
    "costs whatever its size (planning, a session's compiling, small files) weighs more here than in the paper."
)
ALIKE = (
    "All formats on the same engine with the same session settings, heap, processors, source files and texts, Parquet "
    "with snappy; each series in a separate session. What belongs to a format stays as shipped: sizes of files, "
    "statistics, Hudi's indexes and metadata table."
)
SCALE, VERDICT = Column("scale", "Scale factor"), Column("verdict", "Verdict")
FOUR = ("q9", "q67", "q68", "q90")  # queries that the paper shows in figures


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the tables lhb-load, -queries, -query-medians, -refresh, -merges and -oracle."""
    yield _loads(workshop)
    yield _queries(workshop)
    yield _medians(workshop)
    yield _refreshes(workshop)
    yield _merges(workshop)
    yield _oracle(workshop)


def verdict_of(series: Series) -> Cell:
    """Return the judge's verdict: `exact`, or the findings of the first run with an error."""
    if not series.runs:
        return Missing(series.missing())
    wrong = [found(run)["words"] for run in series.runs if not run.manifest.oracle.verdict]
    return f"WRONG: {wrong[0]}" if wrong else "exact"


def cell(workshop: Workshop, quantity: Quantity, series: Series) -> Cell:
    if not series.runs:
        return None
    return attempt(quantity.unit, partial(of, workshop.measures, quantity, series))


def column(quantity: Quantity, title: str = "") -> Column:
    return Column(quantity.key or quantity.name, title or quantity.title, quantity.unit, interval=True)


def _runs(chosen: Sequence[Series]) -> list[Run]:
    return [run for series in chosen for run in series.runs]


def _loads(workshop: Workshop) -> Table:
    chosen = in_part(workshop.run_set, LOAD)
    asked = (LOADING, LOADING_CPU, BYTES, FILES)
    rows: list[list[Cell]] = [
        [each.title, size_of(each.mode), verdict_of(each), *(cell(workshop, what, each) for what in asked)]
        for each in chosen
    ]
    notes = [
        "Load: what CREATE TABLE ... AS SELECT took from Parquet, all tables together, facts without a date left out. "
        "Bytes and files: data and metadata on the disk.",
        ALIKE,
        LARGE_SAID,
    ]
    columns = (SYSTEM, SCALE, VERDICT, *map(column, asked))
    return workshop.table("lhb-load", "Loading TPC-DS", columns, rows, _runs(chosen), notes)


def _queries(workshop: Workshop) -> Table:
    chosen = in_part(workshop.run_set, LOAD)
    asked = (TOTAL, LATER, PLANNING, STARTUP, EXECUTION, *(QUERYING[name] for name in FOUR))
    rows: list[list[Cell]] = []
    for each in chosen:
        counts = {len(subjects(run, BEFORE)) for run in each.runs if run.manifest.oracle.verdict}
        failed = {words for run in each.runs for words in found(run)["failed"]}
        row: list[Cell] = [each.title, size_of(each.mode), max(counts, default=None), "; ".join(sorted(failed))]
        rows.append([*row, *(cell(workshop, what, each) for what in asked)])
    notes = [
        "The sum of medians is the paper's total: of each query the median over its iterations in one session. From "
        "the second time on: without the first, which compiles. Planning: until the plan of execution was there. "
        "Startup: from submitting a query to the start of the first job that bears its name, by the engine's log.",
        ALIKE,
        LARGE_SAID,
    ]
    columns = (SYSTEM, SCALE, Column("queries_asked", "Queries"), Column("failed", "Failed"), *map(column, asked))
    return workshop.table("lhb-queries", "Queries of TPC-DS after the load", columns, rows, _runs(chosen), notes)


def _medians(workshop: Workshop) -> Table:
    """Return a table with a row per query and a column per system."""
    chosen = [each for each in in_part(workshop.run_set, LOAD) if each.runs]
    rows: list[list[Cell]] = []
    scales = sorted({size_of(each.mode) for each in chosen})
    titles = list(dict.fromkeys((each.system, each.title) for each in chosen))
    for scale in scales:
        own = {each.system: each for each in chosen if size_of(each.mode) == scale}
        names: dict[str, None] = {}
        for each in own.values():
            for run in each.runs:
                try:
                    names |= dict.fromkeys(subjects(run, BEFORE))
                except Absent:
                    continue
        for name in names:
            cells = [cell(workshop, QUERYING[name], own[system]) if system in own else None for system, _ in titles]
            rows.append([scale, name, *cells])
    columns = (
        SCALE, Column("query", "Query"), *(Column(system, title, "s", interval=True) for system, title in titles)
    )  # fmt: skip
    notes = ["The median over a session's iterations.", ALIKE]
    return workshop.table("lhb-query-medians", "Each query, by format", columns, rows, _runs(chosen), notes)


def _refreshes(workshop: Workshop) -> Table:
    chosen = in_part(workshop.run_set, REFRESH)
    asked = (LOADING, TOTAL, MERGING, QUERIES_AFTER, COMPACTING, QUERIES_COMPACTED, GROWTH)
    heads = {TOTAL: "Queries before", QUERIES_AFTER: "Queries after", QUERIES_COMPACTED: "Queries after compaction"}
    rows: list[list[Cell]] = [
        [
            each.title, size_of(each.mode), shape_of_refresh(each.mode), verdict_of(each),
            *(cell(workshop, what, each) for what in asked),
        ]
        for each in chosen
    ]  # fmt: skip
    notes = [
        "A refresh: what MERGE took, all merged tables together; the median over refreshes. Sets are synthesised, "
        "since no generator here makes the standard's: a share of each table's rows, some of them updates of "
        "measures, the rest copies with their own order numbers (of inventory: weeks).",
        "After each refresh every merged table is read without the engine and compared with base and sets.",
        ALIKE,
        LARGE_SAID,
    ]
    columns = (
        SYSTEM, SCALE, Column("refreshes", "Refreshes"), VERDICT, *(column(what, heads.get(what, "")) for what in asked)
    )  # fmt: skip
    return workshop.table("lhb-refresh", "Refreshes, and queries around them", columns, rows, _runs(chosen), notes)


def _merges(workshop: Workshop) -> Table:
    chosen = in_part(workshop.run_set, MERGE)
    rows: list[list[Cell]] = []
    for each in chosen:
        whole, files = shape_of_merge(each.mode)
        if not each.runs:
            rows.append([each.title, whole, files, *[None] * 4, verdict_of(each), *[None] * 4])
            continue
        stages = found(each.runs[0])["footprints"]
        for size, told in sorted(found(each.runs[0])["data"]["sets"].items(), key=lambda item: int(item[0])):
            weights = [_files_of(stages, f"{phase} {size}") for phase in ("load", "merge")]
            rows.append(
                [
                    each.title, whole, files, int(size), int(size) / files, told["touched"] / files,
                    expected_share(files, int(size)), verdict_of(each),
                    cell(workshop, merging(int(size)), each), cell(workshop, slowdown(int(size)), each), *weights,
                ]
            )  # fmt: skip
    columns = (
        SYSTEM, Column("rows", "Rows"), Column("files", "Files asked for"), Column("updates", "Updates"),
        Column("updates_a_file", "Updates a file"), Column("touched", "Share of files touched"),
        Column("touched_expected", "Expected"), VERDICT, Column("merge", "Merge", "s", interval=True),
        Column("slowdown", "Queries after over before", "x", interval=True),
        Column("files_before", "Data files before"), Column("files_after", "Data files after"),
    )  # fmt: skip
    notes = [
        "Each size on a fresh table, with as many new rows as updates, after a merge into a separate table that is "
        "not counted. Files touched follow from the keys that were drawn, where a table has the files that it was "
        "asked to be written in. A merge that copies files may leave fewer of them: then a scan gets faster by it.",
        ALIKE,
        LARGE_SAID,
    ]
    return workshop.table("lhb-merges", "One merge, from few rows to many", columns, rows, _runs(chosen), notes)


def _files_of(stages: dict[str, dict[str, dict[str, int]]], phase: str) -> Cell:
    return sum(each["data_files"] for each in stages[phase].values()) if phase in stages else None


def _oracle(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    chosen = [each for each in workshop.run_set.select() if each.runs]
    for each in chosen:
        for run in each.runs:
            said, oracle = found(run), run.manifest.oracle
            tables = sum(len(phase) for phase in said["tables"].values())
            answers = [told for phase in said["answers"].values() for told in phase.values()]
            empty = sum(not told["rows"] for told in answers)
            rows.append(
                [
                    each.title, each.mode, each.repeat_of(run), tables, oracle.expected, oracle.found, len(answers),
                    empty, said["words"], oracle.reader, oracle.seconds,
                ]
            )  # fmt: skip
    columns = (
        SYSTEM, Column("mode", "Series"), Column("repeat", "Repeat"), Column("tables", "Tables read"),
        Column("expected", "Rows expected"), Column("found", "Rows found"), Column("answers", "Answers compared"),
        Column("empty", "Of them without a row"), VERDICT, Column("reader", "Reader"), Column("seconds", "Took", "s"),
    )  # fmt: skip
    notes = [
        "What a table must hold DuckDB makes of base and refresh files alone; both are put into one form and compared "
        "by checksums over rows and over each column, which know no order. Rows of a table count as often as it was "
        "read.",
        "Answers are compared with DuckDB's own to the same text on what the tables must hold; numbers to a millionth.",
        "An answer without a row shows little at this scale.",
    ]
    return workshop.table("lhb-oracle", "What a judge without the engine found", columns, rows, _runs(chosen), notes)
