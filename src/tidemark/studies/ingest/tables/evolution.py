"""Table ingest-evolution: what it costs to add a column, and who can go on writing; and its sentence."""

from __future__ import annotations

from tidemark.analysis.formatting import estimate_text, listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.results.tables.table import SYSTEM_OF_SERIES, Table, TableBuilder, computed, tables_by
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.metrics import ADD_COLUMN, REWRITTEN
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.record import EvolutionRecord
from tidemark.studies.ingest.settings import EVOLUTION, EvolutionSettings
from tidemark.studies.ingest.tables.writers import VERDICT, hot_column, hot_runs
from tidemark.studies.ingest.window.evolution import ACCEPTED, EARLIER


def evolved(run_set: RunSet) -> list[Series]:
    """Return the series of the part."""
    return list(of_part(run_set, EVOLUTION).select(harness=False))


def earlier_writer(series: Series) -> str | None:
    """Return how a writer that knows no added column fared, in all hot runs; None without runs."""
    found = dict.fromkeys(run.record(EvolutionRecord).earlier_writer for run in series.hot_runs)
    return "; ".join(found) or None


def _evolution(builder: TableBuilder) -> Table:
    chosen = evolved(builder.run_set)
    columns = (
        SYSTEM_OF_SERIES,
        computed("columns", "Columns added", lambda series: EvolutionSettings.of(series).columns),
        VERDICT,
        *(hot_column(builder, each) for each in (ADD_COLUMN, REWRITTEN)),
        computed("earlier_writer", "A writer that knows no added column", earlier_writer),
    )
    notes = [
        f"Hot runs. To a table with {EARLIER} commits, columns are added one after the other, each followed by a "
        "commit with it. The oracle compares all ids, and the values of all added columns: null in older rows. Files "
        "rewritten: data files that a change replaced; metadata is written by each change.",
        "A writer that knows no added column: another client, which opened the table before the first change and "
        "writes rows without the added columns after the last one. Accepted: its rows are there, null in these "
        "columns.",
    ]
    title = "Columns added to a table with rows: time, files rewritten, and earlier writers"
    return builder.computed_table("ingest-evolution", title, columns, chosen, hot_runs(chosen), notes)


def change_sentence(measures: Measures) -> str:
    """Return the sentence on the time of a change by system, and on writers that do not know the column."""
    chosen = [each for each in evolved(measures.run_set) if each.hot_runs]
    if not chosen:
        raise NotAvailable("no column was added to a table")
    found = sorted(((measures.hot(ADD_COLUMN, each), each.title) for each in chosen), key=lambda pair: pair[0].value)
    rewriting = [each.title for each in chosen if measures.hot(REWRITTEN, each).value]
    refused = [each.title for each in chosen if earlier_writer(each) != ACCEPTED]
    said = listed([f"{title} {estimate_text(time.estimate('ms'))}" for time, title in found])
    rewrite = f"{listed(rewriting)} rewrote data files for it" if rewriting else "no system rewrote a data file for it"
    others = (
        f"a writer that does not know the column is refused by {listed(refused)}"
        if refused
        else "writers that do not know the column go on"
    )
    return f"To add a column takes {said}; {rewrite}, and {others}."


build = tables_by(_evolution)
