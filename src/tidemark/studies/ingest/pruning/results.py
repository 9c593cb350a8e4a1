"""Results of filtered queries: quantities and the table ingest-pruning. The files read are no speed of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.formatting import Cell
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import LOWER, Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, counted
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.ingest.columns import VERDICT, hot_runs
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.settings import PRUNING, PruningSettings
from tidemark.systems.pruning_dataset import BY_NAME, PREDICATES


def files_read(run: Run, predicate: str) -> int:
    """Return the most files that a query with `predicate` was left to read.

    Raise NotAvailable for runs of another part.
    """
    if dict(run.manifest.config).get("part") != PRUNING:
        raise NotAvailable("no query is asked")
    return int(run.column("files")[run.words("predicate") == predicate].max())


def _files(run: Run, predicate: str) -> BootstrapEstimate:
    return counted(files_read(run, predicate))


QUANTITIES = tuple(
    Metric(f"files read: {each.name}", "files", f"Files read: {each.name}", partial(_files, predicate=each.name), LOWER)
    for each in PREDICATES
)


def series_of(measures: Measures) -> list[Series]:
    """Return all series of the part, tables with fewer files first."""
    return sorted(of_part(measures.run_set, PRUNING).select(harness=False), key=files_of)


def files_of(series: Series) -> int:
    """Return the number of files in the table."""
    return PruningSettings.of(series).files


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table: a row per system and number of files, a column per predicate; the least possible comes first."""
    rows: list[list[Cell]] = []
    found = series_of(builder.measures)
    for files in sorted({files_of(each) for each in found}):
        rows.append(["(files with rows that fit)", files, None, *(each.files(files) for each in PREDICATES)])
        if files == 10:
            rows.append(["kyma, as printed", files, None, *(each.best for each in PREDICATES)])
        for each in found:
            if files_of(each) == files:
                run = next(iter(each.hot_runs), None)
                counts: list[Cell] = [None if run is None else files_read(run, name) for name in BY_NAME]
                rows.append([each.title, files, VERDICT.cell(each), *counts])
    columns = (
        SYSTEM, Column("table_files", "Files"), VERDICT.column,
        *(Column(each.name.replace(" ", "_"), each.name) for each in PREDICATES),
    )  # fmt: skip
    notes = [
        "Data files that a query was left to read by what the format keeps of each file (lowest and highest value). "
        "File i holds hour i, one region, one integer and one word, so that files are as separate as they can be. "
        "DuckLake and Iceberg by DuckDB: 'Total Files Read' of the plan that was carried out; PyIceberg: the files of "
        "its plan; delta-rs: those that its log left to DataFusion. Rows were checked.",
        "DuckDB 1.4.4 writes no lowest and highest values into the manifests of an Iceberg table, so that its files "
        "cannot be distinguished; of a table that PyIceberg wrote, it reads no more files than PyIceberg does.",
        "kyma keeps an index of values and of words; no format here has one, and PyIceberg has no filter for a text "
        "that contains another.",
    ]
    yield builder.table("ingest-pruning", "Files that a query is left to read", columns, rows, hot_runs(found), notes)
