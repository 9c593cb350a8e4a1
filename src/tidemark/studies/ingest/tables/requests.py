"""Results of requests that a front gathers or that are due by a schedule: the tables ingest-group and ingest-tail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tidemark.analysis.formatting import Cell, attempt, estimate_text, listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.results.tables.table import SYSTEM_OF_SERIES, Table, TableBuilder, computed, notes_of, tables_by
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.gateway.group_commit import DIRECT, POLICIES
from tidemark.studies.ingest.metrics import (
    CAPACITY,
    CLOSED_P99,
    COMMITS,
    CORRECTED_P99,
    ERRORS,
    OF_SCHEDULES,
    OFFERED,
    P50,
    P99,
    P999,
    REQUESTS,
    REQUESTS_A_COMMIT,
    REQUESTS_A_FILE,
    RESPONSE_P99,
    ROWS,
    is_overloaded,
)
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.record import Schedule
from tidemark.studies.ingest.settings import GROUP, ONE, TAIL, GroupSettings, TailSettings
from tidemark.studies.ingest.tables.writers import (
    NEAR,
    UNEQUAL,
    VERDICT,
    bound_columns,
    hot_column,
    hot_runs,
    null_share,
)

NOTES = notes_of(__file__)
MEASURED = {
    ROWS: "", REQUESTS: "", COMMITS: "", P50: "Request: median", P99: "Request: p99", P999: "Request: p99.9",
    ERRORS: "Requests that ended in an error", REQUESTS_A_COMMIT: "", REQUESTS_A_FILE: "",
}  # fmt: skip


def _group(builder: TableBuilder) -> Table:
    measures, chosen = builder.measures, gathered_series(builder.run_set)
    nulls = [each for each in chosen if each.is_null_baseline]

    def share(series: Series) -> float | None:
        """Return requests per second in percent of the null system's with one commit per request."""
        null = next((each for each in nulls if shape(each) == shape(series) and policy(each) == DIRECT), None)
        return null_share(measures, REQUESTS, series, REQUESTS, null)

    def over_direct(quantity: Metric) -> Callable[[Series], BootstrapEstimate | None]:
        def ratio(series: Series) -> BootstrapEstimate | None:
            direct = of_shape(chosen, series, DIRECT) if policy(series) != DIRECT else None
            return measures.ratio(quantity, series, direct) if direct and series.runs else None

        return ratio

    columns = (
        SYSTEM_OF_SERIES,
        computed("shape", "Rows a request x clients", shape_words),
        computed("policy", "Policy", policy),
        VERDICT,
        *(hot_column(builder, quantity, title) for quantity, title in MEASURED.items()),
        computed("rows_over_direct", "Rows over direct", over_direct(ROWS), "x", interval=True),
        computed("p99_over_direct", "p99 over direct", over_direct(P99), "x", interval=True),
        *bound_columns("Of the null system's requests", share),
    )
    notes = [*NOTES("ingest-group", near=NEAR), UNEQUAL]
    title = "Requests of many clients, committed one by one or gathered"
    return builder.computed_table("ingest-group", title, columns, chosen, hot_runs(chosen), notes)


def gathered_series(run_set: RunSet) -> list[Series]:
    """Return the series of the part by shape, then by system, then by policy."""
    policies = list(POLICIES)
    found = list(of_part(run_set, GROUP).select())
    systems = list(dict.fromkeys(each.system for each in found))

    def place(series: Series) -> tuple[int, int, int, int]:
        given = GroupSettings.of(series)
        return -given.rows, given.clients, systems.index(series.system), policies.index(given.policy)

    return sorted(found, key=place)


def policy(series: Series) -> str:
    return GroupSettings.of(series).policy


def shape(series: Series) -> tuple[int, int]:
    """Return rows per request and number of clients."""
    given = GroupSettings.of(series)
    return given.rows, given.clients


def shape_words(series: Series) -> str:
    return "{:,} x {}".format(*shape(series))


def of_shape(all_series: list[Series], series: Series, wanted: str) -> Series | None:
    """Return the series of the same system and shape under the policy `wanted`, or None."""
    own = [each for each in all_series if each.system == series.system and policy(each) == wanted]
    return next((each for each in own if shape(each) == shape(series)), None)


def gains(measures: Measures, wanted: str) -> list[tuple[Series, Estimate, Estimate | None]]:
    """Return each series under a policy with rows/s and p99 over the direct ones; p99 is None with too few requests."""
    all_series = gathered_series(measures.run_set)
    found = []
    for series in all_series:
        direct = of_shape(all_series, series, DIRECT)
        if policy(series) == wanted and not series.is_null_baseline:
            rate, tail = (attempt("x", partial(measures.ratio, quantity, series, direct)) for quantity in (ROWS, P99))
            if isinstance(rate, Estimate):
                found.append((series, rate, tail if isinstance(tail, Estimate) else None))
    return found


def gained(measures: Measures, wanted: str, how: str) -> str:
    """Return the sentence on rows per second and p99 of the policy `wanted` over those of one commit per request."""
    found = gains(measures, wanted)
    if not found:
        raise NotAvailable(f"no requests were {wanted} and committed one by one as well")
    parts = [
        f"{series.title} {shape_words(series)}: {estimate_text(rate)}"
        + (f" (p99 {estimate_text(tail)})" if tail else "")
        for series, rate, tail in found
    ]
    rates, tails = [rate for _, rate, _ in found], [tail for _, _, tail in found if tail]
    text = (
        f"{how}, requests are taken in at this multiple of the rows a second of one commit a request: "
        f"{'; '.join(parts)}. By their intervals, the rate is higher in {_count(rates, above=True)} and lower in "
        f"{_count(rates, above=False)} of {len(rates)}"
    )
    if tails:
        text += (
            f", and the 99th percentile of requests shorter in {_count(tails, above=False)} and longer in "
            f"{_count(tails, above=True)} of {len(tails)}"
        )
    return f"{text}."


def _count(estimates: list[Estimate], *, above: bool) -> int:
    return sum(each.is_above(1) if above else each.is_below(1) for each in estimates)


def _tail(builder: TableBuilder) -> Table:
    measures, chosen = builder.measures, scheduled_series(builder.run_set)

    def ratio(series: Series) -> BootstrapEstimate | None:
        return understated(measures, series) if series.runs else None

    columns = (
        SYSTEM_OF_SERIES,
        computed("target", "Before the table", lambda series: TailSettings.of(series).target),
        computed("arrivals", "Arrivals", lambda series: TailSettings.of(series).arrivals),
        computed("percent", "Share of the closed loop's rate", lambda series: TailSettings.of(series).percent, "%"),
        VERDICT,
        computed("overloaded", "Overloaded", overload),
        *(hot_column(builder, quantity) for quantity in OF_SCHEDULES),
        computed("open_over_closed", "Response p99 over the closed loop's", ratio, "x", interval=True),
        computed("late", "Due in the window, not begun at its end", late),
        *bound_columns("Of the null system's closed loop", partial(offered_share, measures, chosen)),
    )
    notes = [*NOTES("ingest-tail", near=NEAR), UNEQUAL]
    title = "Requests by a schedule, and in a closed loop"
    return builder.computed_table("ingest-tail", title, columns, chosen, hot_runs(chosen), notes)


def scheduled_series(run_set: RunSet) -> list[Series]:
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
        counts.append(after + run.record(Schedule).not_begun)
    return sum(counts) if counts else None


def understated(measures: Measures, series: Series) -> BootstrapEstimate:
    """Return the p99 of responses over the raw p99 of the closed loop before."""
    return measures.hot(RESPONSE_P99, series).ratio(measures.hot(CLOSED_P99, series))


def offered_share(measures: Measures, all_series: list[Series], series: Series) -> float | None:
    """Return the offered rate in percent of the null system's closed loop; None behind a front, as its timer waits."""
    alone = [each for each in all_series if TailSettings.of(each).target == ONE]
    null = next((each for each in alone if each.is_null_baseline), None)
    return null_share(measures, OFFERED, series, CAPACITY, null) if TailSettings.of(series).target == ONE else None


def omitted(measures: Measures) -> str:
    """Return the sentence on delays that a closed loop misses, and whether the usual correction restores them."""
    found = [each for each in scheduled_series(measures.run_set) if not each.is_null_baseline and each.hot_runs]
    if not found:
        raise NotAvailable("no system was asked by a schedule")
    parts, ratios, corrected = [], [], []
    for series in (each for each in found if not overloaded(each)):
        with suppress(NotAvailable):
            ratio = understated(measures, series).estimate("x")
            ratios.append(ratio)
            parts.append(f"{estimate_text(ratio)} ({_scheduled_name(series)})")
            own = measures.hot(RESPONSE_P99, series).ratio(measures.hot(CORRECTED_P99, series))
            corrected.append(own.estimate("x"))
    if not parts:
        raise NotAvailable(
            "no window by a schedule and closed loop before it had requests enough for a 99th percentile"
        )
    above, below = (sum(each.is_above(1) for each in ratios), sum(each.is_below(1) for each in ratios))
    near = sum(bool(each.contains(1)) for each in corrected)
    return (
        "The 99th percentile by a schedule is this multiple of that of the closed loop before it: "
        f"{listed(parts)}. By their intervals, the closed loop's is too low in {above} and too high in {below} of "
        f"{len(ratios)}; with HdrHistogram's correction it cannot be distinguished from the schedule's in {near} "
        f"of {len(corrected)}."
    )


def _scheduled_name(series: Series) -> str:
    given = TailSettings.of(series)
    return f"{series.title}{'' if given.target == ONE else f', {given.target},'} at {given.percent} %"


build = tables_by(_group, _tail)
