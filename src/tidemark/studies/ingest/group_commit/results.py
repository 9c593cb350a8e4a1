"""Results of requests that a front gathers: the table ingest-group, and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tidemark.analysis.formatting import attempt, estimate_text
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.results.tables.table import SYSTEM_OF_SERIES, Table, TableBuilder, computed
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.columns import NEAR, UNEQUAL, VERDICT, bound_columns, hot_column, hot_runs, null_share
from tidemark.studies.ingest.gateway.policies import DIRECT, POLICIES
from tidemark.studies.ingest.metrics import (
    COMMITS,
    ERRORS,
    P50,
    P99,
    P999,
    REQUESTS,
    REQUESTS_A_COMMIT,
    REQUESTS_A_FILE,
    ROWS,
)
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.settings import GROUP, GroupSettings

MEASURED = {
    ROWS: "", REQUESTS: "", COMMITS: "", P50: "Request: median", P99: "Request: p99", P999: "Request: p99.9",
    ERRORS: "Requests that ended in an error", REQUESTS_A_COMMIT: "", REQUESTS_A_FILE: "",
}  # fmt: skip


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table ingest-group."""
    measures, chosen = builder.measures, in_order(builder.run_set)
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
        computed("shape", "Rows a request x clients", lambda series: "{:,} x {}".format(*shape(series))),
        computed("policy", "Policy", policy),
        VERDICT,
        *(hot_column(builder, quantity, title) for quantity, title in MEASURED.items()),
        computed("rows_over_direct", "Rows over direct", over_direct(ROWS), "x", interval=True),
        computed("p99_over_direct", "p99 over direct", over_direct(P99), "x", interval=True),
        *bound_columns("Of the null system's requests", share),
    )
    notes = [
        "Hot runs, closed loop: a client sends its next request when the last is answered. direct: each request is a "
        "commit, by as many clients of the table as there are clients, at most as many as the section sets. staged: a "
        "buffer is one file and one commit, once it has 8,000 rows, 16 MiB, or a request that is 50 ms old, unless "
        "the section sets others. bundled: several buffers' files are one commit.",
        "The times are those of requests, from the client's sending to the answer, which comes after the commit that "
        "holds the request. Delta's files that are committed together have counts of rows in the log, and no other "
        "statistics.",
        f"The null system commits nothing: its requests without gathering are what clients and front can do. Above "
        f"{NEAR:g} % of them, a rate is in part that of the load generator. Its rows under the other policies are "
        "what their timers leave.",
        UNEQUAL,
    ]
    title = "Requests of many clients, committed one by one or gathered"
    yield builder.computed_table("ingest-group", title, columns, chosen, hot_runs(chosen), notes)


def in_order(run_set: RunSet) -> list[Series]:
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


def of_shape(all_series: list[Series], series: Series, wanted: str) -> Series | None:
    """Return the series of the same system and shape under the policy `wanted`, or None."""
    own = [each for each in all_series if each.system == series.system and policy(each) == wanted]
    return next((each for each in own if shape(each) == shape(series)), None)


def gains(measures: Measures, wanted: str) -> list[tuple[Series, Estimate, Estimate | None]]:
    """Return each series under a policy with rows/s and p99 over the direct ones; p99 is None with too few requests."""
    all_series = in_order(measures.run_set)
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
        f"{_which(series)}: {estimate_text(rate)}" + (f" (p99 {estimate_text(tail)})" if tail else "")
        for series, rate, tail in found
    ]
    rates, tails = [rate for _, rate, _ in found], [tail for _, _, tail in found if tail]
    said = (
        f"{how}, requests are taken in at this multiple of the rows a second of one commit a request: "
        f"{'; '.join(parts)}. By their intervals, the rate is higher in {_count(rates, above=True)} and lower in "
        f"{_count(rates, above=False)} of {len(rates)}"
    )
    if tails:
        said += (
            f", and the 99th percentile of requests shorter in {_count(tails, above=False)} and longer in "
            f"{_count(tails, above=True)} of {len(tails)}"
        )
    return f"{said}."


def _which(series: Series) -> str:
    rows, clients = shape(series)
    return f"{series.title} {rows:,} x {clients}"


def _count(estimates: list[Estimate], *, above: bool) -> int:
    return sum(each.is_above(1) if above else each.is_below(1) for each in estimates)
