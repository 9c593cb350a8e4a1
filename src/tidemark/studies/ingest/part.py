"""PaperSection of a part to the study's results, the selection of its runs, and columns that all parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric
from tidemark.results.tables.table import Column, Table, TableBuilder
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.metrics import ABANDONED, CONFLICTS, ERRORS
from tidemark.studies.ingest.parts import part_name
from tidemark.studies.ingest.record import CheckRecord


@dataclass(frozen=True, slots=True)
class PartResults:
    """Results of a part: `tables` yields its tables, and `figures` names its module of figures, if it has one.

    `sentences` are those of the chapter, by name; `findings` are those that open the paper and the report.
    `quantities` are those that no other part has; `code` lists the files of the package that compute them.
    """

    tables: Callable[[TableBuilder], Iterator[Table]]
    sentences: Callable[[Measures], Mapping[str, Written]]
    findings: Callable[[Measures], tuple[Written, ...]] = lambda _measures: ()
    figures: str | None = None
    quantities: tuple[Metric, ...] = ()
    code: tuple[str, ...] = ()


def of_part(run_set: RunSet, part: str) -> RunSet:
    """Return `run_set` with only the series that belong to `part`."""
    return replace(run_set, series=tuple(each for each in run_set.series if part_name(each) == part))


VERDICT = Column("verdict", "Oracle")
SHARES = (CONFLICTS, ABANDONED, ERRORS)
NEAR = 20.0  # percent of the null system's rate; above it, a rate is limited in part by the harness
UNEQUAL = (
    "Systems do not promise the same when a commit is acknowledged: see 'At the acknowledgement' before comparing them."
)


def verdict_of(series: Series) -> Cell:
    """Return the oracle's verdict on hot runs: MissingCell if the series has no runs, None if it has no hot runs."""
    if not series.runs:
        return MissingCell(series.missing())
    if not series.runs[0].manifest.oracle.applicable:
        return "keeps nothing"
    found = [run.record(CheckRecord).oracle.words for run in series.hot_runs]
    return "; ".join(dict.fromkeys(found)) or None


def hot_cell(builder: TableBuilder, quantity: Metric, series: Series) -> Cell:
    """Return the cell of a quantity over hot runs; None without runs, as the oracle's column gives the reason."""
    if not series.runs:
        return None
    unit, factor = _as_shown(quantity)
    return attempt(unit, lambda: builder.measures.hot(quantity, series).scaled(factor))


def _as_shown(quantity: Metric) -> tuple[str, float]:
    """Return the unit in tables and the factor that converts to it; shares are shown in percent."""
    return ("%", 100.0) if quantity in SHARES else (quantity.unit, 1.0)


def column_of(quantity: Metric) -> Column:
    key = quantity.name.replace(" ", "_").replace(".", "_").lower()
    return Column(key, quantity.title, _as_shown(quantity)[0], interval=True)
