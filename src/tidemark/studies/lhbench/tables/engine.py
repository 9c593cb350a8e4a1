"""Further tables of the study: the engine's work from its log, queries of many files, and other readers' rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tidemark.analysis.words import Cell, Missing
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.files.settings import FILES
from tidemark.studies.lhbench.parts import size_of
from tidemark.studies.lhbench.quantities import OF_FILES, found, in_part
from tidemark.studies.lhbench.tables.measured import VERDICT, cell, verdict_of

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
THEIRS = {"delta-on-spark": published.DELTA, "iceberg-on-spark": published.ICEBERG}


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the tables lhb-files, lhb-engine and lhb-readers."""
    yield _files(workshop)
    yield _engine(workshop)
    yield _readers(workshop)


def _files(workshop: Workshop) -> Table:
    """Return a table with a row per system, number of files and query, and the paper's value where it has one."""
    chosen = in_part(workshop.run_set, FILES)
    rows: list[list[Cell]] = []
    for each in chosen:
        files = int(size_of(each.mode))
        if not each.runs:
            rows.append([each.title, files, None, Missing(each.missing()), *[None] * 7])
            continue
        for query, quantities in OF_FILES.items():
            cells = [cell(workshop, quantity, each) for quantity in quantities]
            printed = _printed(each.system, query, files)
            rows.append([each.title, files, query, verdict_of(each), *cells, printed, *_metadata(each.runs[0])])
    columns = (
        SYSTEM, Column("files", "Files"), Column("query", "Query"), VERDICT,
        *(Column(name, title, "s", interval=True) for name, title in NAMES.items()),
        Column("printed", "Startup in the paper", "s"), Column("metadata_files", "Files of metadata"),
        Column("metadata_bytes", "Bytes of metadata", "B"),
    )  # fmt: skip
    notes = [
        "Startup, as the paper's program has it: from submitting a query to the start of the first job whose "
        "description begins with the query's name, of the engine's log, to a millisecond; jobs by which a format finds "
        "out what to read belong to it. Execution is the rest. A query that is answered without a job has no startup. "
        "The median over its iterations but the first, on a session that was warmed up by other work.",
        "All formats name the same Parquet files, which none of their engines wrote: one a partition, with the "
        "columns of store_sales and values derived from row numbers, as in LHBench's program. Delta's log is one "
        "commit without a checkpoint, as its program leaves it; Iceberg's manifests are rewritten by Iceberg itself; "
        "of Parquet alone the folders are listed once a session, before. Sizes of files play no part: they are tiny.",
        "Each answer is compared with the result of arithmetic; where there are no more than 20,000 files a reader "
        "without the engine reads all rows, too.",
    ]
    runs = [run for each in chosen for run in each.runs]
    return workshop.table("lhb-files", "What queries cost before they read many files", columns, rows, runs, notes)


def _printed(system: str, query: str, files: int) -> Cell:
    """Return the startup that the paper prints, in seconds; None if it prints none."""
    known = dict(published.along(4, f"{query} startup", THEIRS.get(system, "")))
    return known[files] / 1_000 if files in known else None


def _metadata(run: Run) -> tuple[int, int]:
    (told,) = (each for tables in found(run)["footprints"].values() for each in tables.values())
    return told["metadata_files"], told["metadata_bytes"]


def _engine(workshop: Workshop) -> Table:
    chosen = [each for each in workshop.run_set.select() if each.runs]
    rows: list[list[Cell]] = []
    for each in chosen:
        for kind in dict.fromkeys(each.runs[0].words("kind").tolist()):
            sums = [_sum(each, kind, name) for name, *_ in SUMS]
            values = [None if total is None else total * scale for total, (*_, scale) in zip(sums, SUMS, strict=True)]
            rows.append([each.title, each.mode, kind, *values])
    columns = (
        SYSTEM, Column("mode", "Series"), Column("kind", "Steps"),
        *(Column(name.removesuffix("_ns"), title, unit) for name, title, unit, _ in SUMS),
    )  # fmt: skip
    notes = [
        "Sums over all steps of a kind, by the engine's own log of events; the median over runs. A task waits for "
        "processors while others run, and tasks that run at the same time tell of the same collection of garbage. Each "
        "stage has a row in the file stages.parquet of its run.",
        "Read: bytes of stages of a query's own jobs that have rows of input.",
    ]
    runs = [run for each in chosen for run in each.runs]
    return workshop.table("lhb-engine", "What the engine did for each format", columns, rows, runs, notes)


def _sum(series: Series, kind: str, name: str) -> float | None:
    """Return the sum of a column over steps of `kind`, as the median over runs; None if no run kept a log."""
    kept = [run for run in series.runs if run.has(name)]
    if not kept:
        return None
    return float(np.median([run.column(name)[run.words("kind") == kind].sum() for run in kept]))


def _readers(workshop: Workshop) -> Table:
    """Return a table with a row per series and additional reader."""
    chosen = [each for each in workshop.run_set.select() if each.runs]
    rows: list[list[Cell]] = []
    for each in chosen:
        told: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for run in each.runs:
            for phase, readers in found(run).get("beside", {}).items():
                for reader, tables in readers.items():
                    told.setdefault(reader, []).extend((f"{phase}, {name}", said) for name, said in tables.items())
        for reader, cases in told.items():
            wrong = [(where, said) for where, said in cases if said["words"]]
            where, said = wrong[0] if wrong else ("", {"expected": None, "found": None, "words": ""})
            verdict = f"WRONG: {said['words']}" if wrong else "exact"
            rows.append(
                [each.title, each.mode, reader, len(cases), len(wrong), verdict, where, said["expected"], said["found"]]
            )
    columns = (
        SYSTEM, Column("mode", "Series"), Column("reader", "Reader"), Column("tables", "Tables read"),
        Column("wrong", "Of them wrong"), VERDICT, Column("where", "First after"), Column("expected", "Rows expected"),
        Column("found", "Rows found"),
    )  # fmt: skip
    notes = [
        "The same tables at the same moments, read by others than the judge, whose own verdict is in lhb-oracle. "
        "Where that is 'exact', what is wrong here is the reader: DuckDB 1.5.5's iceberg_scan was seen to apply a "
        "deletion vector to another data file than its own, where one Puffin file holds several.",
    ]
    runs = [run for each in chosen for run in each.runs]
    return workshop.table("lhb-readers", "Other readers of the same tables", columns, rows, runs, notes)
