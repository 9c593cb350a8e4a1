"""Results of requests that a front gathers or that are due by a schedule: ingest-group, ingest-tail, ingest-paced.

Of writers that commit at a set interval, there is a model of refusals:

    share refused = 1 - exp(-exposed * others / interval)

`others` are the other writers of the table. `exposed` is the time in which the commit of another one makes a commit
fail. It is computed from the fewest writers that were measured, and predicts the share for more of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tidemark.analysis.formatting import Cell, attempt, estimate_text, listed, number
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.results.tables.table import SYSTEM_OF_SERIES, Table, TableBuilder, computed, notes_of, tables_by
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import all_hot_runs
from tidemark.studies.ingest import metrics
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, DIRECT, POLICIES, STAGED
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.record import Schedule
from tidemark.studies.ingest.settings import GROUP, ONE, PACED, TAIL, GroupSettings, PacedSettings, TailSettings
from tidemark.studies.ingest.tables.writers import NEAR, UNEQUAL, VERDICT, bound_columns, hot_column, null_share, placed

NOTES = notes_of(__file__)
FURTHER = 4  # times the most writers at a set interval that were measured: what the last column of their table predicts
MEASURED = {
    metrics.ROWS: "", metrics.REQUESTS: "", metrics.COMMITS: "", metrics.P50: "Request: median",
    metrics.P99: "Request: p99", metrics.P999: "Request: p99.9", metrics.ERRORS: "Requests that ended in an error",
    metrics.REQUESTS_A_COMMIT: "", metrics.REQUESTS_A_FILE: "",
}  # fmt: skip


def _group(builder: TableBuilder) -> Table:
    measures, chosen = builder.measures, gathered_series(builder.run_set)
    nulls = [each for each in chosen if each.is_null_baseline]

    def share(series: Series) -> float | None:
        """Return requests per second in percent of the null system's with one commit per request."""
        null = next((each for each in nulls if shape(each) == shape(series) and policy(each) == DIRECT), None)
        return null_share(measures, metrics.REQUESTS, series, metrics.REQUESTS, null)

    def ratio(quantity: Metric, series: Series) -> BootstrapEstimate | None:
        direct = of_shape(chosen, series, DIRECT) if policy(series) != DIRECT else None
        return measures.ratio(quantity, series, direct) if direct and series.runs else None

    columns = (
        SYSTEM_OF_SERIES,
        computed("shape", "Rows a request x clients", shape_words),
        computed("policy", "Policy", policy),
        VERDICT,
        *(hot_column(builder, quantity, title) for quantity, title in MEASURED.items()),
        computed("rows_over_direct", "Rows over direct", lambda own: ratio(metrics.ROWS, own), "x", interval=True),
        computed("p99_over_direct", "p99 over direct", lambda own: ratio(metrics.P99, own), "x", interval=True),
        *bound_columns("Of the null system's requests", share),
    )
    notes = [*NOTES("ingest-group", near=NEAR), UNEQUAL]
    title = "Requests of many clients, committed one by one or gathered"
    return builder.computed_table("ingest-group", title, columns, chosen, all_hot_runs(chosen), notes)


def gathered_series(run_set: RunSet) -> list[Series]:
    """Return the series of the part by shape, then by system, then by policy."""
    found, policies = of_part(run_set, GROUP).select(), list(POLICIES)
    return placed(found, GroupSettings, lambda own, rank: (-own.rows, own.clients, rank, policies.index(own.policy)))


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
            both = (partial(measures.ratio, quantity, series, direct) for quantity in (metrics.ROWS, metrics.P99))
            rate, tail = (attempt("x", compute) for compute in both)
            if isinstance(rate, Estimate):
                found.append((series, rate, tail if isinstance(tail, Estimate) else None))
    return found


HOW = {
    STAGED: "Gathered in a buffer that is one commit (staged)",
    BUNDLED: "With the files of several buffers in one commit (bundled)",
}


def gained(measures: Measures, wanted: str) -> str:
    """Return the sentence on rows per second and p99 of the policy `wanted` over those of one commit per request."""
    found = require(gains(measures, wanted), f"no requests were {wanted} and committed one by one as well")
    parts = [
        f"{series.title} {shape_words(series)}: {estimate_text(rate)}"
        + (f" (p99 {estimate_text(tail)})" if tail else "")
        for series, rate, tail in found
    ]
    rates, tails = [rate for _, rate, _ in found], [tail for _, _, tail in found if tail]
    text = (
        f"{HOW[wanted]}, requests are taken in at this multiple of the rows a second of one commit a request: "
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
        *(hot_column(builder, quantity) for quantity in metrics.OF_SCHEDULES),
        computed("open_over_closed", "Response p99 over the closed loop's", ratio, "x", interval=True),
        computed("late", "Due in the window, not begun at its end", late),
        *bound_columns("Of the null system's closed loop", partial(offered_share, measures, chosen)),
    )
    notes = [*NOTES("ingest-tail", near=NEAR), UNEQUAL]
    title = "Requests by a schedule, and in a closed loop"
    return builder.computed_table("ingest-tail", title, columns, chosen, all_hot_runs(chosen), notes)


def scheduled_series(run_set: RunSet) -> list[Series]:
    """Return the series of the part by target, then by system, arrivals and rate."""
    found = of_part(run_set, TAIL).select()
    return placed(found, TailSettings, lambda own, rank: (own.target != ONE, rank, own.arrivals, own.percent))


def overloaded(series: Series) -> list[Run]:
    """Return the hot runs that were given up as overloaded."""
    return [run for run in series.hot_runs if run.record(Schedule).overloaded]


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
    return measures.hot(metrics.RESPONSE_P99, series).ratio(measures.hot(metrics.CLOSED_P99, series))


def offered_share(measures: Measures, all_series: list[Series], series: Series) -> float | None:
    """Return the offered rate in percent of the null system's closed loop; None behind a front, as its timer waits."""
    alone = [each for each in all_series if TailSettings.of(each).target == ONE]
    if TailSettings.of(series).target != ONE:
        return None
    null = next((each for each in alone if each.is_null_baseline), None)
    return null_share(measures, metrics.OFFERED, series, metrics.CAPACITY, null)


def omitted(measures: Measures) -> str:
    """Return the sentence on delays that a closed loop misses, and whether the usual correction restores them."""
    found = [each for each in scheduled_series(measures.run_set) if not each.is_null_baseline and each.hot_runs]
    require(found, "no system was asked by a schedule")
    parts, ratios, corrected = [], [], []
    for series in (each for each in found if not overloaded(each)):
        with suppress(NotAvailable):
            ratio, given = understated(measures, series).estimate("x"), TailSettings.of(series)
            ratios.append(ratio)
            name = f"{series.title}{'' if given.target == ONE else f', {given.target},'} at {given.percent} %"
            parts.append(f"{estimate_text(ratio)} ({name})")
            own = measures.hot(metrics.RESPONSE_P99, series).ratio(measures.hot(metrics.CORRECTED_P99, series))
            corrected.append(own.estimate("x"))
    require(parts, "no window by a schedule and closed loop before it had requests enough for a 99th percentile")
    above, below = (sum(each.is_above(1) for each in ratios), sum(each.is_below(1) for each in ratios))
    near = sum(bool(each.contains(1)) for each in corrected)
    return (
        "The 99th percentile by a schedule is this multiple of that of the closed loop before it: "
        f"{listed(parts)}. By their intervals, the closed loop's is too low in {above} and too high in {below} of "
        f"{len(ratios)}; with HdrHistogram's correction it cannot be distinguished from the schedule's in {near} "
        f"of {len(corrected)}."
    )


def paced_series(run_set: RunSet) -> list[Series]:
    """Return the series of the part by system, then by interval, then by number of writers."""
    found = of_part(run_set, PACED).select(harness=False)
    return placed(found, PacedSettings, lambda own, rank: (rank, own.every_seconds, own.writers))


def due_a_second(series: Series) -> float:
    """Return the commits of all writers that fall due in a second."""
    given = PacedSettings.of(series)
    return given.writers / given.every_seconds


def refused(measures: Measures, series: Series) -> float:
    """Return the share of tried commits that were refused."""
    return measures.hot(metrics.CONFLICTS, series).value


def exposed_s(share: float, given: PacedSettings) -> float:
    """Return the seconds in which another commit makes one fail, from the `share` of tries that were refused."""
    require(given.writers >= 2, "one writer is never refused")
    require(share > 0, "nothing was refused")
    require(share < 1, "every try was refused")
    return -math.log(1 - share) * given.every_seconds / (given.writers - 1)


def predicted(exposed: float, writers: int, every_seconds: int) -> float:
    """Return the share of tries that are refused, by the model above."""
    return 1 - math.exp(-exposed * (writers - 1) / every_seconds)


def _fewest(all_series: list[Series], series: Series) -> Series:
    """Return the series of the same system and interval with the fewest writers, at least two, that has hot runs."""
    given = PacedSettings.of(series)
    for each in all_series:
        own = PacedSettings.of(each)
        is_own = each.system == series.system and own.every_seconds == given.every_seconds
        if is_own and own.writers > 1 and each.hot_runs:
            return each
    raise NotAvailable("not measured with two writers or more")


def from_fewest(measures: Measures, all_series: list[Series], series: Series, times: int = 1) -> float:
    """Return the predicted share for `times` the writers of `series`, from the fewest writers with its interval.

    Raise NotAvailable if these are the writers to predict.
    """
    first, given = _fewest(all_series, series), PacedSettings.of(series)
    require(first is not series or times != 1, "the fewest writers, which predict the others")
    exposed = exposed_s(refused(measures, first), PacedSettings.of(first))
    return predicted(exposed, times * given.writers, given.every_seconds)


def _paced(builder: TableBuilder) -> Table:
    measures, chosen = builder.measures, paced_series(builder.run_set)

    def of_schedule(value: Callable[[Schedule], int]) -> Callable[[Series], int | None]:
        return lambda series: sum(value(run.record(Schedule)) for run in series.hot_runs) if series.hot_runs else None

    def exposed(series: Series) -> float | None:
        return 1000 * exposed_s(refused(measures, series), PacedSettings.of(series)) if series.runs else None

    def expected(series: Series) -> float | None:
        return 100 * from_fewest(measures, chosen, series) if series.runs else None

    def off(series: Series) -> float | None:
        share = expected(series)
        return None if share is None else share - 100 * refused(measures, series)

    def further(series: Series) -> float | None:
        return 100 * from_fewest(measures, chosen, series, FURTHER) if series.runs else None

    columns = (
        SYSTEM_OF_SERIES,
        computed("writers", "Writers", lambda series: PacedSettings.of(series).writers),
        computed("every", "A commit every", lambda series: PacedSettings.of(series).every_seconds, "s"),
        VERDICT,
        computed("due", "Commits due", of_schedule(lambda found: found.scheduled)),
        computed("not_begun", "Not begun", of_schedule(lambda found: found.not_begun)),
        *(hot_column(builder, each) for each in metrics.OF_PACE),
        computed("exposed", "Exposed to others", exposed, "ms"),
        computed("predicted", "Refused, predicted from the fewest writers", expected, "%"),
        computed("off", "Prediction off by", off, "points"),
        computed("further", f"Refused with {FURTHER} times the writers, predicted", further, "%"),
    )
    notes = [*NOTES("ingest-paced"), UNEQUAL]
    title = "Writers that commit at a set interval: refusals, and how they grow with writers"
    return builder.computed_table("ingest-paced", title, columns, chosen, all_hot_runs(chosen), notes)


def refused_sentence(measures: Measures) -> str:
    """Return the sentence on the share of refused commits with the most writers and the shortest interval."""
    chosen = [each for each in paced_series(measures.run_set) if each.hot_runs]
    require(chosen, "no writers committed at a set interval")
    every = min(PacedSettings.of(each).every_seconds for each in chosen)
    most = max(PacedSettings.of(each).writers for each in chosen)
    parts = []
    for series in chosen:
        given = PacedSettings.of(series)
        if (given.every_seconds, given.writers) == (every, most):
            with suppress(NotAvailable):
                share = 100 * refused(measures, series)
                text = f"{number(share, 2)} % in {series.title}"
                with suppress(NotAvailable):
                    text += (
                        f" ({number(100 * from_fewest(measures, chosen, series), 2)} % predicted from fewer writers)"
                    )
                parts.append((share, text))
    require(parts, "no system with the most writers tells")
    return (
        f"With {most} writers that each commit every {every} s, this share of the commits tried was refused because "
        f"another one came first: {listed([text for _, text in sorted(parts)])}."
    )


build = tables_by(_paced, _group, _tail)
