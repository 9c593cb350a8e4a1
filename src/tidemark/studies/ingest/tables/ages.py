"""Table ingest-ages: what a commit, a plan and a read take in a table of a number of commits; and its sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.formatting import estimate_text, listed, number
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, generator, quantile
from tidemark.results.tables.table import (
    SYSTEM_OF_SERIES,
    ComputedColumn,
    Row,
    Table,
    TableBuilder,
    part_column,
    series_columns,
    tables_by,
)
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import all_runs
from tidemark.studies.ingest.metrics import NOT_COMPARABLE
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.record import AgesRecord, SizeAtAge
from tidemark.studies.ingest.settings import AGES, COMMITS_AT_AGE, AgesSettings
from tidemark.studies.ingest.window.ages import COMMIT, PLAN, READ, READERS


@dataclass(frozen=True, slots=True)
class Age:
    """A table of `age` commits in the only run of its series; it may not have been reached."""

    run: Run
    age: int

    @property
    def found(self) -> AgesRecord:
        return self.run.record(AgesRecord)

    @property
    def size(self) -> SizeAtAge:
        """The table's size; raise NotAvailable, with the reason, if the age was not reached."""
        for each in self.found.at_ages:
            if each.age == self.age:
                return each
        raise NotAvailable(self.found.ended)

    def times_ms(self, operation: str) -> NDArray[np.float64]:
        """Return the times of an operation in milliseconds; raise NotAvailable if there are none, or rows are wrong."""
        if not self.run.manifest.oracle.verdict:
            raise NotAvailable(NOT_COMPARABLE)
        chosen = (self.run.column("age") == self.age) & (self.run.words("what") == operation)
        if not chosen.any():
            raise NotAvailable(self.found.ended)
        times: NDArray[np.float64] = self.run.column("elapsed_ns")[chosen] / 1e6
        return times

    def median(self, operation: str) -> BootstrapEstimate:
        sample = BlockSample.prepare(self.times_ms(operation), generator(self.run.label, self.age, operation))
        return quantile(sample, 0.5)


def aged_series(run_set: RunSet) -> list[Series]:
    """Return the series of the part, including those without runs."""
    return list(of_part(run_set, AGES).select(harness=False))


def ages_of(series: Series) -> list[Age]:
    """Return all ages of a series, the youngest first; none without a run."""
    return [Age(run, age) for run in series.runs[:1] for age in AgesSettings.of(series).numbers]


def _made(age: Age) -> str:
    at_once = age.found.at_once
    return "its client" if at_once == 1 or age.age == 1 else f"the format's files, {at_once:,} commits at once"


def _ages(builder: TableBuilder) -> Table:
    chosen, rows = aged_series(builder.run_set), list[Row[Age]]()
    for series in chosen:
        rows += Row.of(series, ages_of(series), "" if series.runs else series.missing())
    columns: list[ComputedColumn[Row[Age]]] = [
        *series_columns(SYSTEM_OF_SERIES),
        part_column("age", "Commits before", lambda age: age.age),
        part_column("verdict", "Oracle", lambda age: age.found.oracle.words),
        part_column("made", "Made older by", _made),
        part_column("commit", "Commit: median", lambda age: age.median(COMMIT), "ms", interval=True),
        part_column("commit_max", "Commit: longest", lambda age: float(age.times_ms(COMMIT).max()), "ms"),
        part_column("plan", "Open and plan", lambda age: float(np.median(age.times_ms(PLAN))), "ms"),
        part_column("read", "Open and read all rows", lambda age: float(np.median(age.times_ms(READ))), "ms"),
        part_column("metadata_files", "Metadata files", lambda age: age.size.metadata_files),
        part_column("metadata_bytes", "Metadata", lambda age: age.size.metadata_bytes / 1e6, "MB"),
        part_column("catalog_bytes", "Catalog's database", _catalog_mb, "MB"),
        part_column("data_files", "Data files", lambda age: age.size.data_files),
        part_column("made_s", "Time to make it", lambda age: age.size.made_s, "s"),
    ]
    notes = [
        f"One table of each system, in one run. Commits are of one row, by one client. At each age {COMMITS_AT_AGE} of "
        f"them are timed after {READERS} plans and {READERS} reads, each by a new DuckDB that opens the table. Times "
        "are medians. A plan is EXPLAIN of a query of all ids, and reads no rows; a read returns all ids, which were "
        "compared. The ids and the number of commits were compared once more at the end, by an independent reader.",
        "Made older by the format's files: entries of Delta's log, or Iceberg's manifests and snapshots, in place of "
        "commits that would take hours. Then metadata is less than a client leaves: of Iceberg's table metadata and "
        "lists of manifests, and of Delta's checkpoints, there is one for so many commits, not one for each or for "
        "every ten. Readers of the current table use none of those that are left out.",
        "Time to make it: since the age before, outside of the window. An age that was not reached has the reason. A "
        "catalog in a DuckDB file is read on a copy, and opening it replays the file's log.",
    ]
    title = "Old tables: a commit, a plan and a read, and the metadata, by the number of commits before"
    return builder.computed_table("ingest-ages", title, columns, rows, all_runs(chosen), notes)


def _catalog_mb(age: Age) -> float | None:
    size = age.size.catalog_bytes
    return None if size is None else size / 1e6


def aged_sentence(run_set: RunSet) -> str:
    """Return the sentence on the time of a commit at the oldest age that each system reached."""
    parts = []
    for series in aged_series(run_set):
        reached = [age for age in ages_of(series) if _has(age, COMMIT)]
        if len(reached) < 2:
            continue
        first, last = reached[0], reached[-1]
        median = last.median(COMMIT)
        times = f"{number(median.value / first.median(COMMIT).value, 2)} times that at {first.age:,}"
        parts.append(f"{series.title} {estimate_text(median.estimate('ms'))} at {last.age:,} ({times})")
    if not parts:
        raise NotAvailable("no table was measured at two ages")
    return f"A commit to a table with so many commits before takes {listed(parts)}."


def _has(age: Age, operation: str) -> bool:
    try:
        return bool(len(age.times_ms(operation)))
    except NotAvailable:
        return False


build = tables_by(_ages)
