"""Columns that the tables of several parts share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidemark.analysis.formatting import Cell, MissingCell
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.tables.table import ComputedColumn, TableBuilder, computed
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.ingest.metrics import ABANDONED, CONFLICTS, ERRORS
from tidemark.studies.ingest.record import CheckRecord

SHARES = (CONFLICTS, ABANDONED, ERRORS)
NEAR = 20.0  # percent of the null system's rate; above it, a rate is limited in part by the harness
UNEQUAL = (
    "Systems do not promise the same when a commit is acknowledged: see 'At the acknowledgement' before comparing them."
)


def hot_runs(all_series: Sequence[Series]) -> list[Run]:
    return [run for series in all_series for run in series.hot_runs]


def _verdict(series: Series) -> Cell:
    """Return the oracle's verdict on hot runs: MissingCell if the series has no runs, None if it has no hot runs."""
    if not series.runs:
        return MissingCell(series.missing())
    if not series.runs[0].manifest.oracle.applicable:
        return "keeps nothing"
    found = [run.record(CheckRecord).oracle.words for run in series.hot_runs]
    return "; ".join(dict.fromkeys(found)) or None


VERDICT: ComputedColumn[Series] = computed("verdict", "Oracle", _verdict)


def hot_column(builder: TableBuilder, quantity: Metric, title: str = "") -> ComputedColumn[Series]:
    """Return the column of a quantity over hot runs, shares in percent; empty without runs: VERDICT has the reason."""
    unit, factor = ("%", 100.0) if quantity in SHARES else (quantity.unit, 1.0)

    def value(series: Series) -> BootstrapEstimate | None:
        return builder.measures.hot(quantity, series).scaled(factor) if series.runs else None

    key = quantity.name.replace(" ", "_").replace(".", "_").lower()
    return computed(key, title or quantity.title, value, unit, interval=True)


def null_share(measures: Measures, own: Metric, series: Series, of: Metric, null: Series | None) -> float | None:
    """Return `own` of `series` in percent of `of` of the null system's series; None for that itself or without runs."""
    if null is None or series.is_null_baseline or not series.runs:
        return None
    return 100 * measures.hot(own, series).value / measures.hot(of, null).value


def bound_columns(title: str, share: Callable[[Series], float | None]) -> tuple[ComputedColumn[Series], ...]:
    """Return the column of `share`, a percentage of the null system's rate, and that of what follows from it."""
    shares = computed("null_share", title, share, "%")

    def bound(series: Series) -> Cell:
        found = shares.cell(series)
        return ("harness-bound" if found > NEAR else "no") if isinstance(found, float) else None

    return shares, computed("bound", "Bound by the load generator", bound)
