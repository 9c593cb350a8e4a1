"""Columns that the tables of several parts share; results of many writers: speed, scaling, outcomes, findings.

Each finding takes its verb from an interval, or states why it cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from tidemark.analysis.formatting import Cell, MissingCell, estimate_text
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.analysis.text_blocks import SentenceWriter, said, valued
from tidemark.results.tables import table
from tidemark.results.tables.table import SYSTEM_OF_SERIES, Column, ComputedColumn, Table, TableBuilder, computed
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.spec import WorkloadSettings
from tidemark.runs.views import all_hot_runs, all_runs, one_a_system
from tidemark.studies.ingest import metrics
from tidemark.studies.ingest.load.records import ACKED, CONFLICT, FAILED, GIVEN_UP, UNKNOWN
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.record import CommitRecord, OracleRecord
from tidemark.studies.ingest.settings import ONE, OWN, RETRIES, WRITERS, WritersSettings

NOTES = table.notes_of(__file__)
SHARES = (metrics.CONFLICTS, metrics.ABANDONED, metrics.ERRORS, metrics.FLUSHES_FAILED)
NEAR = 20.0  # percent of the null system's rate; above it, a rate is limited in part by the harness
UNEQUAL = (
    "Systems do not promise the same when a commit is acknowledged: see 'At the acknowledgement' before comparing them."
)


def _verdict(series: Series) -> Cell:
    """Return the oracle's verdict on hot runs: MissingCell if the series has no runs, None if it has no hot runs."""
    if not series.runs:
        return MissingCell(series.missing())
    if not series.runs[0].manifest.oracle.applicable:
        return "keeps nothing"
    found = [run.record(OracleRecord).words for run in series.hot_runs]
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


COUNTED_BY = {
    "catalog": "the catalog: transactions that it rolled back",
    "client": "the client: commits that it tried",
    "caller": "the caller: what the client's own retries did not resolve",
}
MEASURED = (
    metrics.COMMITS, metrics.ROWS, metrics.P50, metrics.P99, metrics.P999, metrics.CONFLICTS, metrics.ABANDONED,
    metrics.FAIRNESS, metrics.FILES, metrics.SERVER_CPU, metrics.WRITER_CPU,
)  # fmt: skip


def placed[S: WorkloadSettings](
    found: Sequence[Series], kind: type[S], place: Callable[[S, int], tuple[Any, ...]]
) -> list[Series]:
    """Return series by their `place`, which follows from their settings and the rank of their system in `found`."""
    systems = list(dict.fromkeys(each.system for each in found))
    return sorted(found, key=lambda each: place(kind.of(each), systems.index(each.system)))


def in_order(builder: TableBuilder) -> list[Series]:
    """Return all series of the part `writers`: those of one table by number of writers, then those of a table each."""
    found = of_part(builder.run_set, WRITERS).select()
    return placed(found, WritersSettings, lambda own, _rank: (own.tables == OWN, own.writers))


IDENTITY: tuple[ComputedColumn[Series], ...] = (
    SYSTEM_OF_SERIES,
    computed("writers", "Writers", lambda series: WritersSettings.of(series).writers),
    computed("tables", "Tables", lambda series: "one" if WritersSettings.of(series).tables == ONE else "one each"),
)


def _writers(builder: TableBuilder) -> Table:
    def share(series: Series) -> float | None:
        null = next((each for each in builder.run_set.select(mode=series.mode) if each.is_null_baseline), None)
        return null_share(builder.measures, metrics.COMMITS, series, metrics.COMMITS, null)

    columns = (
        *IDENTITY,
        VERDICT,
        *(hot_column(builder, quantity) for quantity in MEASURED),
        computed("null_share", "Of the rate of the null system", share, "%"),
    )
    notes = [*NOTES("ingest-writers", near=NEAR), UNEQUAL]
    title = "One table, many writers: commits, times, refusals"
    chosen = in_order(builder)
    return builder.computed_table("ingest-writers", title, columns, chosen, all_hot_runs(chosen), notes)


def _scaling(builder: TableBuilder) -> Table:
    """Return the table of gains from more writers, and from a table for each of them."""
    chosen, rate = in_order(builder), metrics.COMMITS
    found = {(each.system, (own := WritersSettings.of(each)).tables, own.writers): each for each in chosen}

    def gain(series: Series) -> BootstrapEstimate | None:
        return ratio(series, found.get((series.system, ONE, 1)) if WritersSettings.of(series).writers > 1 else None)

    def efficiency(series: Series) -> BootstrapEstimate | None:
        given = WritersSettings.of(series)
        return ratio(series, found.get((series.system, OWN, given.writers)) if given.tables == ONE else None)

    def ratio(series: Series, other: Series | None) -> BootstrapEstimate | None:
        return builder.measures.ratio(rate, series, other) if other and series.runs else None

    columns = (
        *IDENTITY,
        computed(rate.name, rate.title, lambda series: builder.measures.hot(rate, series), rate.unit, interval=True),
        computed("gain", "Over one writer", gain, "x", interval=True),
        computed("efficiency", "One table over a table each", efficiency, "x", interval=True),
    )
    notes = [*NOTES("ingest-scaling"), UNEQUAL]
    title = "What more writers bring"
    return builder.computed_table("ingest-scaling", title, columns, chosen, all_hot_runs(chosen), notes)


def _outcomes(builder: TableBuilder) -> Table:
    """Return the table of the outcomes of each run's commits, and of its oracle's findings."""
    all_series = in_order(builder)
    rows: list[list[Cell]] = []
    for series in all_series:
        mode = [column.cell(series) for column in IDENTITY]
        for run in series.runs:
            statuses = metrics.outcomes(run)
            counts = [int((statuses == name).sum()) for name in (ACKED, CONFLICT, GIVEN_UP, FAILED, UNKNOWN)]
            oracle, found = run.record(OracleRecord), run.record(CommitRecord)
            refused, tried, by = metrics.refusals(run)
            verdict = oracle.words if run.manifest.oracle.applicable else "keeps nothing"
            rows.append([
                *mode, run.number, run.state, verdict, len(statuses), *counts, tried, refused, COUNTED_BY[by],
                oracle.lost, oracle.doubled, oracle.risen, oracle.phantom, oracle.partial, oracle.done, oracle.not_done,
                run.footprint.data_files, found.referenced_files, "; ".join(found.first_errors)[:200] or None,
            ])  # fmt: skip
        if not series.runs:
            rows.append([*mode, None, MissingCell(series.missing())])
    columns = (
        *(column.column for column in IDENTITY), Column("run", "Run"), Column("state", "State"), VERDICT.column,
        Column("attempts", "Attempts"), Column("acked", "Acknowledged"), Column("conflict", "Conflict, tried again"),
        Column("given_up", "Given up"), Column("failed", "Failed"), Column("unknown", "Unknown"),
        Column("tried", "Commits tried"), Column("refused", "Refused"), Column("counted_by", "Counted by"),
        Column("lost", "Lost rows"), Column("doubled", "Doubled rows"), Column("risen", "Refused and there"),
        Column("phantom", "Written by no writer"), Column("partial", "Batches in part"),
        Column("done", "Unknown: was done"), Column("not_done", "Unknown: was not"),
        Column("files", "Data files"), Column("referenced", "Of the table"), Column("errors", "First errors"),
    )  # fmt: skip
    title = "Final status of commits, and what exists afterwards"
    return builder.table("ingest-outcomes", title, columns, rows, all_runs(all_series), NOTES("ingest-outcomes"))


def _settings(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    run_set = of_part(builder.run_set, WRITERS)
    for series in one_a_system(run_set):
        system = series.runs[0].manifest.system
        options = dict(system.options)
        retries = [options.get(name) for name in ("commit_retries", "retry_wait_ms")]
        own = "commit-retry" in system.capabilities
        row: list[Cell] = [series.title, f"{system.client}", system.catalog, "yes" if own else "no"]
        row += ["as shipped" if value is None else value for value in retries]
        rows.append([*row, system.durability, "; ".join(system.notes)])
    columns = (
        table.SYSTEM, Column("client", "Client"), Column("catalog", "Catalog"), Column("own", "Retries by itself"),
        Column("retries", "Retries of a commit"), Column("wait", "First wait", "ms"),
        Column("durability", "At the acknowledgement"), Column("notes", "Notes"),
    )  # fmt: skip
    notes = NOTES("ingest-settings")
    title = "Retries of refused commits, and what an acknowledgement promises"
    return builder.table("ingest-settings", title, columns, rows, all_hot_runs(run_set.select()), notes)


class Writer(SentenceWriter):
    """Sentences on the part `writers`."""

    @property
    def run_set(self) -> RunSet:
        return of_part(self.measures.run_set, WRITERS)

    def _of_one_table(self) -> dict[int, list[Series]]:
        """Return the series whose writers share one table, by number of writers."""
        found: dict[int, list[Series]] = {}
        for each in self.run_set.select(harness=False):
            given = WritersSettings.of(each)
            if given.tables == ONE:
                found.setdefault(given.writers, []).append(each)
        return found

    def _of_most(self) -> tuple[int, list[Series]]:
        """Return the most writers of one table and their series; raise NotAvailable if no table had several writers."""
        found = self._of_one_table()
        most = max(found, default=1)
        require(most != 1, "no table had several writers")
        return most, found[most]

    def scaling(self) -> str:
        """Return the sentence on commits of the most writers over one, by systems that hold what they acknowledged."""
        most, series_of_most = self._of_most()
        alone = {each.system: each for each in self._of_one_table().get(1, [])}
        ratio = partial(self.measures.ratio, metrics.COMMITS)
        gains = valued(lambda each: ratio(each, alone.get(each.system)), series_of_most, "x")
        require(gains, "no system was measured with one writer and with several")
        more = sum(gain.is_above(1) for _, gain in gains)
        fewer = sum(gain.is_below(1) for _, gain in gains)
        return (
            f"With {most} writers, one table takes this multiple of the commits of one writer: "
            f"{said(gains, reverse=True)}. By their intervals, that is more in {more}, fewer in {fewer}, and not "
            f"distinguishable in {len(gains) - more - fewer} of {len(gains)}."
        )

    def conflicts(self) -> str:
        most, series_of_most = self._of_most()
        shares = valued(lambda each: self.measures.hot(metrics.CONFLICTS, each).scaled(100), series_of_most, "%")
        require(shares, "no system tells")
        return (
            f"Of the commits that {most} writers tried, as far as catalog or client tell, these shares were refused "
            f"because another one came first: {said(shares, reverse=True)}."
        )

    def retrying(self) -> str:
        """Return the sentence on the effect of users' own retry settings, if a variant has them."""
        most, series_of_most = self._of_most()
        shipped = {each.runs[0].manifest.system.base: each for each in series_of_most if each.runs and not _set(each)}
        parts = []
        for series in series_of_most:
            if series.runs and _set(series):
                base = shipped.get(series.runs[0].manifest.system.base)
                with suppress(NotAvailable):
                    rate = self.measures.ratio(metrics.COMMITS, series, base).estimate("x")
                    words = f"{series.title} {estimate_text(rate)} the commits"
                    with suppress(NotAvailable):
                        tail = self.measures.ratio(metrics.P50, series, base).estimate("x")
                        words += f", each of which takes {estimate_text(tail)} the time at the median"
                    parts.append(words)
        require(parts, "no system was measured with other settings of retries")
        return (
            f"With retries as users set them, against the same client as shipped, {most} writers: {'; '.join(parts)}."
        )

    def lost(self) -> str:
        """Return the sentence on systems that lose or double what they acknowledged, and on how to reproduce it."""
        parts: dict[str, list[str]] = {}
        for series in self.run_set.select(harness=False):
            for run in series.runs:
                if run.manifest.oracle.applicable and not run.manifest.oracle.verdict:
                    oracle, writers = run.record(OracleRecord), WritersSettings.of(series).writers
                    words = f"{writers} writers: {oracle.words} of {oracle.expected:,} acknowledged"
                    parts.setdefault(f"{series.title} ({series.system})", []).append(words)
        checked = {each.system for each in self.run_set.select(harness=False) if each.runs}
        require(checked, "no run could be checked")
        if not parts:
            return "No system lost or doubled a row that it had acknowledged."
        text = "; ".join(f"{name}: {', '.join(dict.fromkeys(words))}" for name, words in parts.items())
        names = ", ".join(name.rpartition("(")[2].rstrip(")") + ": {}" for name in parts)
        return (
            f"Of {len(checked)} systems, {len(parts)} did not keep what was acknowledged. {text}. To see it again: "
            f"./tidemark all --config 'studies=[ingest]' 'ingest.systems={{{names}}}'. Speeds of such runs are no "
            "results, and are given nowhere."
        )


def _set(series: Series) -> bool:
    """Return True if the series has other retry settings than the client as shipped."""
    options = dict(series.runs[0].manifest.system.options)
    return any(options.get(name) is not None for name in RETRIES)


build = table.tables_by(_writers, _scaling, _outcomes, _settings)
