"""Table ingest-tail: times of requests by a schedule, next to those of the closed loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.open_loop.metrics import (
    CAPACITY,
    CLOSED_P99,
    CORRECTED_P99,
    OFFERED,
    RESPONSE_MAX,
    RESPONSE_P50,
    RESPONSE_P90,
    RESPONSE_P99,
    RESPONSE_P999,
    RESPONSE_P9999,
    SERVICE_P99,
    UTILISATION,
    WAIT_P99,
    is_overloaded,
)
from tidemark.studies.ingest.part import NEAR, UNEQUAL, VERDICT, column_of, hot_cell, of_part, verdict_of
from tidemark.studies.ingest.record import ScheduleRecord
from tidemark.studies.ingest.settings import ONE, TAIL, TailSettings

RATES = (CAPACITY, OFFERED, UTILISATION)
TIMES = (
    RESPONSE_P50, RESPONSE_P90, RESPONSE_P99, RESPONSE_P999, RESPONSE_P9999, RESPONSE_MAX, SERVICE_P99, WAIT_P99,
    CLOSED_P99, CORRECTED_P99,
)  # fmt: skip


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table ingest-tail."""
    all_series = in_order(builder.run_set)
    rows: list[list[Cell]] = []
    for series in all_series:
        given = TailSettings.of(series)
        share = null_share(builder.measures, all_series, series)
        near = ("harness-bound" if share > NEAR else "no") if isinstance(share, float) else None
        ratio = partial(understated, builder.measures, series)
        rows.append([
            series.title, given.target, given.arrivals, given.percent, verdict_of(series), overload(series),
            *(hot_cell(builder, quantity, series) for quantity in (*RATES, *TIMES)),
            attempt("x", ratio) if series.runs else None, late(series), share, near,
        ])  # fmt: skip
    columns = (
        SYSTEM, Column("target", "Before the table"), Column("arrivals", "Arrivals"),
        Column("percent", "Share of the closed loop's rate", "%"), VERDICT, Column("overloaded", "Overloaded"),
        *(column_of(quantity) for quantity in (*RATES, *TIMES)),
        Column("open_over_closed", "Response p99 over the closed loop's", "x", interval=True),
        Column("late", "Due in the window, not begun at its end"),
        Column("null_share", "Of the null system's closed loop", "%"), Column("bound", "Bound by the load generator"),
    )  # fmt: skip
    notes = [
        "Hot runs. Requests are due by a schedule: Poisson arrivals from the seed, or gaps of one length (constant). "
        "A free writer (one) or client of the front (staged) takes the oldest that is due. Response: from the "
        "intended start to the acknowledgement; wait: the part before the first try; service: the rest. All requests "
        "that were due in the window count, those too that began after its end.",
        "Before each window, the same writer or clients ask in a closed loop on the same table, not counted among "
        "the responses: the offered rate is a share of the rate that they reach. Its p99 is from the raw times, then "
        "with what HdrHistogram's rule adds where a request is expected every median cycle. p99.9 and p99.99 need ten "
        "requests beyond them.",
        "Offered, of what the service allows: the offered rate times the mean service in the window, where one writer "
        "takes one request after the other. Above the share of the closed loop's rate, commits took longer than in the "
        "closed loop, as they do where they slow down with every commit before; from 100 % on, the queue grows.",
        "Overloaded: more than 100,000 requests were due and not begun, or the oldest had waited longer than the "
        "section allows; the run ended there, and its times are lower bounds.",
        f"The null system commits nothing: its closed loop is what the load generator can do. Offered rates above "
        f"{NEAR:g} % of that are in part the load generator's, and the null system's waits are its own lateness. "
        "Behind a front that gathers, its rate is what the front's timer leaves: ingest-group has what a front can do.",
        UNEQUAL,
    ]
    runs = [run for series in all_series for run in series.hot_runs]
    yield builder.table("ingest-tail", "Requests by a schedule, and in a closed loop", columns, rows, runs, notes)


def in_order(run_set: RunSet) -> list[Series]:
    """Return the series of the part by target, then by system, arrivals and rate."""
    found = list(of_part(run_set, TAIL).select())
    systems = list(dict.fromkeys(each.system for each in found))

    def place(series: Series) -> tuple[bool, int, str, int]:
        given = TailSettings.of(series)
        return given.target != ONE, systems.index(series.system), given.arrivals, given.percent

    return sorted(found, key=place)


def overloaded(series: Series) -> list[Run]:
    """Return the hot runs that were given up as overloaded."""
    return [run for run in series.hot_runs if is_overloaded(run)]


def overload(series: Series) -> Cell:
    if not series.hot_runs:
        return None
    count = len(overloaded(series))
    return f"{count} of {len(series.hot_runs)} runs: lower bounds" if count else "no"


def late(series: Series) -> Cell:
    """Return the number of requests of all hot runs that were due in a window and did not begin inside it."""
    counts = []
    for run in series.hot_runs:
        begins = run.column("start_ns")[run.column("attempt") == 1]
        after = int((begins > run.manifest.elapsed_ns).sum())
        counts.append(after + run.record(ScheduleRecord).schedule.not_begun)
    return sum(counts) if counts else None


def understated(measures: Measures, series: Series) -> BootstrapEstimate:
    """Return the p99 of responses over the raw p99 of the closed loop before."""
    return measures.hot(RESPONSE_P99, series).ratio(measures.hot(CLOSED_P99, series))


def null_share(measures: Measures, all_series: list[Series], series: Series) -> Cell:
    """Return the offered rate in percent of the null system's closed loop; None behind a front, as its timer waits."""
    null = next((each for each in all_series if each.is_null_baseline and TailSettings.of(each).target == ONE), None)
    if null is None or series.is_null_baseline or not series.runs or TailSettings.of(series).target != ONE:
        return None
    try:
        return 100 * measures.hot(OFFERED, series).value / measures.hot(CAPACITY, null).value
    except NotAvailable as absent:
        return MissingCell(str(absent))
