"""Tables that the thesis does not have: intervals, tails, growth, throughputs, time budget, cold effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import combinations

from tidemark.analysis.formatting import Cell, MissingCell, attempt, comparison, growth_verdict
from tidemark.analysis.metrics import BEYOND, Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.measure.workload import Evict
from tidemark.results.tables import table
from tidemark.results.tables.table import Column, ComputedColumn, Row, Table, TableBuilder, computed, part_column
from tidemark.runs.run import STATES, Run
from tidemark.runs.runset import Series
from tidemark.runs.spec import MODES, STAGES
from tidemark.runs.views import all_hot_runs, twins
from tidemark.studies.streams import metrics
from tidemark.studies.streams.settings import StreamSettings

NOTES = table.notes_of(__file__)
IDENTITY = (table.SYSTEM_OF_SERIES, table.MODE_OF_SERIES)
HOT_RUNS: ComputedColumn[Series] = computed("hot_runs", "Hot runs", lambda series: len(series.hot_runs))
STATE: ComputedColumn[Row[Run]] = part_column("state", "State", lambda run: run.state)
PER_RUN: list[ComputedColumn[Row[Run]]] = [*table.series_columns(*IDENTITY), *table.OF_RUN, STATE]


def _throughput(builder: TableBuilder) -> Table:
    """Return table throughput: both throughputs of every run, and of the typical hot run."""
    measures = builder.measures

    def rate(quantity: Metric, row: Row[Run]) -> BootstrapEstimate:
        return measures.of_run(quantity, row.shown) if row.shown else measures.hot(quantity, row.series)

    def share(row: Row[Run]) -> float | None:
        with suppress(NotAvailable):
            return 100 * rate(metrics.HARNESS_RATE, row).value / rate(metrics.SYSTEM_RATE, row).value
        return None

    columns: list[ComputedColumn[Row[Run]]] = [
        *table.series_columns(*IDENTITY),
        *table.OF_RUN,
        computed("state", "State", lambda row: row.shown.state if row.shown else "hot runs"),
        part_column("events", "Events", lambda run: run.manifest.events),
        computed("harness", "Harness throughput", partial(rate, metrics.HARNESS_RATE), "events/s", interval=True),
        computed("system_rate", "System throughput", partial(rate, metrics.SYSTEM_RATE), "events/s", interval=True),
        computed("share", "Harness / system", share, "%"),
    ]
    rows: list[Row[Run]] = [Row(series, run) for series in builder.run_set.select() for run in (*series.runs, None)]
    title = "Harness and system throughput of every run"
    return builder.computed_table("throughput", title, columns, rows, builder.run_set.runs, NOTES("throughput"))


def _latency(builder: TableBuilder) -> Table:
    """Return table latency: the distribution of the write times of every run, up to its maximum."""
    asked = (
        metrics.WRITE_MEDIAN, metrics.WRITE_IQR, metrics.WRITE_P90, metrics.WRITE_P99, metrics.WRITE_P999,
        metrics.WRITE_MAX, metrics.READ_MEDIAN, metrics.READ_P99,
    )  # fmt: skip

    def column(quantity: Metric) -> ComputedColumn[Row[Run]]:
        key, title = quantity.name.replace(" ", "_").replace(".", ""), quantity.name[0].upper() + quantity.name[1:]
        return part_column(key, title, partial(builder.measures.of_run, quantity), quantity.unit, interval=True)

    columns: list[ComputedColumn[Row[Run]]] = [
        *PER_RUN,
        part_column("n", "n", lambda run: run.manifest.operations),
        table.with_reason(column(asked[0])),
        *map(column, asked[1:]),
    ]
    chosen = builder.run_set.select()
    rows: list[Row[Run]] = [row for series in chosen for row in Row.of(series, series.runs)]
    notes = [*NOTES("latency", beyond=BEYOND), *reading_notes(chosen)]
    title = "Write and read times of every run"
    return builder.computed_table("latency", title, columns, rows, builder.run_set.runs, notes)


def reading_notes(series: Sequence[Series]) -> tuple[str, ...]:
    """Return the notes required next to read times; none if single events were read one at a time."""
    most = max((each.read_ahead for each in series if each.reads_in_goes), default=1)
    if most == 1:
        return ()
    return (
        f"In single mode, one read returns up to {most:,} events (a read batch), and each event is assigned an equal "
        "share of the read time. Read times are therefore means over read batches, with shorter tails than those of "
        "single events. The sweep 'reads' reads one event at a time.",
    )


def _growth(builder: TableBuilder) -> Table:
    """Return table growth: the Theil-Sen slope of the write time with the number of commits."""
    measures = builder.measures

    def slope(series: Series) -> Estimate | MissingCell:
        return attempt(metrics.GROWTH.unit, partial(measures.hot, metrics.GROWTH, series))

    columns: list[ComputedColumn[Series]] = [
        *IDENTITY,
        HOT_RUNS,
        computed("commits", "Commits", lambda series: sum(run.manifest.operations for run in series.hot_runs)),
        *(
            computed(each.key, each.title, partial(measures.hot, each), each.unit, interval=True)
            for each in (*metrics.WRITE_AT.values(), *metrics.GROWTH_TO.values())
        ),
        computed("growth", "Growth per 1,000 commits", slope, "ms", interval=True),
        computed("verdict", "Write time", lambda series: growth_verdict(slope(series))),
    ]
    chosen = builder.run_set.select()
    title = "Growth of the write time with the number of commits"
    return builder.computed_table("growth", title, columns, chosen, all_hot_runs(chosen), NOTES("growth"))


def _ratios(builder: TableBuilder) -> Table:
    """Return table ratios: every pair of systems in a mode, hot runs compared with hot runs."""
    measures, run_set = builder.measures, builder.run_set

    def ratio(quantity: Metric, pair: tuple[Series, Series]) -> BootstrapEstimate:
        return measures.ratio(quantity, *pair)

    noise_floor = cache(measures.noise_floor)  # one for all pairs of a mode

    def floor(quantity: Metric, pair: tuple[Series, Series]) -> BootstrapEstimate:
        return noise_floor(quantity, pair[0].mode)

    columns: list[ComputedColumn[tuple[Series, Series]]] = [
        computed("a", "A", lambda pair: pair[0].title),
        computed("b", "B", lambda pair: pair[1].title),
        computed("mode", "Mode", lambda pair: pair[0].mode_title),
        computed("write_ratio", "Median write time, A / B", partial(ratio, metrics.WRITE_MEDIAN), interval=True),
        computed("rate_ratio", "Harness throughput, A / B", partial(ratio, metrics.HARNESS_RATE), interval=True),
        computed(
            "delta", "Cliff's delta of write times", lambda pair: measures.dominance("write_ns", *pair), interval=True
        ),
        computed("verdict", "Writes of A", lambda pair: comparison(partial(ratio, metrics.WRITE_MEDIAN, pair))),
    ]
    notes = [*NOTES("ratios")]
    if twins(run_set.select(harness=False)):
        columns += [
            computed("write_floor", "Noise floor of write times", partial(floor, metrics.WRITE_MEDIAN), "%"),
            computed("rate_floor", "Noise floor of throughput", partial(floor, metrics.HARNESS_RATE), "%"),
        ]
        notes += NOTES("floors")
    notes.append(f"Intervals are 95 %. {run_set.coverage}")
    hot = [[each for each in run_set.select(mode=mode, harness=False) if each.hot_runs] for mode in MODES]
    pairs = [pair for of_mode in hot for pair in combinations(of_mode, 2)]
    runs = [run for of_mode in hot for run in all_hot_runs(of_mode)]
    return builder.computed_table("ratios", "Pairs of systems: ratios of hot runs", columns, pairs, runs, notes)


def _cold_effect(builder: TableBuilder) -> Table:
    """Return table cold-effect: run 0 compared with the hot runs."""
    measures = builder.measures

    def state(series: Series) -> str:
        return require(", ".join(dict.fromkeys(run.state for run in series.cold_runs)), series.missing(0))

    def first_write(series: Series) -> float | None:
        first = series.cold_runs[0].manifest.first_write_ns if series.cold_runs else None
        return first / 1e6 if first is not None else None

    def estimated(
        key: str, title: str, measure: Callable[[Metric, Series], BootstrapEstimate], quantity: Metric, unit: str = ""
    ) -> ComputedColumn[Series]:
        return computed(key, title, lambda series: measure(quantity, series), unit, interval=True)

    effect, median = measures.cold_effect, metrics.WRITE_MEDIAN
    columns: list[ComputedColumn[Series]] = [
        *IDENTITY,
        computed("state", "State of run 0", state),
        estimated("cold", "Median write, run 0", measures.cold, median, "ms"),
        estimated("hot", "Median write, hot", measures.hot, median, "ms"),
        estimated("median_ratio", "Median write, run 0 / hot", effect, median),
        estimated("p99_ratio", "p99 write, run 0 / hot", effect, metrics.WRITE_P99),
        estimated("rate_ratio", "Harness throughput, run 0 / hot", effect, metrics.HARNESS_RATE),
        computed("verdict", "Writes of run 0", lambda series: comparison(partial(effect, median, series))),
        computed("first_write", "First write of run 0", first_write, "ms"),
        estimated("first_write_ratio", "First write, run 0 / median of hot", measures.cold_start, metrics.FIRST_WRITE),
        *(
            estimated(f"cost_{commits}", f"Run 0 less hot, commits 1 to {commits}", measures.cold_cost, seconds, "s")
            for commits, seconds in metrics.FIRST_SECONDS.items()
        ),
    ]
    title = "Cost of a cold start: run 0 compared with hot runs"
    chosen, notes = builder.run_set.select(), NOTES("cold-effect", states=STATES)
    return builder.computed_table("cold-effect", title, columns, chosen, builder.run_set.runs, notes)


def _time_budget(builder: TableBuilder) -> Table:
    """Return table time-budget: the parts of every run's wall-clock time."""

    def share(part: str, run: Run) -> float:
        return 100 * dict(run.manifest.time_budget_ns).get(part, 0) / run.manifest.elapsed_ns

    columns: list[ComputedColumn[Row[Run]]] = [
        *PER_RUN,
        part_column("elapsed", "Window", lambda run: run.elapsed_s, "s"),
        *(part_column(part, part.replace("_", " ").capitalize(), partial(share, part), "%") for part in STAGES),
        part_column("accounted", "Accounted for", lambda run: 100 - share(STAGES[-1], run), "%"),
    ]
    rows: list[Row[Run]] = [Row(series, run) for series in builder.run_set.select() for run in series.runs]
    return builder.computed_table("time-budget", "Time budget of each run", columns, rows, builder.run_set.runs)


def _cold_parts(builder: TableBuilder) -> Iterator[Table]:
    """Yield table cold-parts, if the sweep was measured: the cost of evicted files and of new processes, each alone."""
    measures, run_set = builder.measures, builder.run_set
    found: dict[tuple[str, str, str], dict[str, Series]] = {}
    for series in run_set.series:
        if run_set.axis_of(series.sweep) == "evict":
            place = found.setdefault((series.stack, series.title, series.mode_title), {})
            place[StreamSettings.of(series).evict] = series
    rows: list[list[Cell]] = []
    for (stack, title, mode), evicted in found.items():
        if not {Evict.EACH, Evict.NEVER} <= evicted.keys():
            continue
        each, never = evicted[Evict.EACH], evicted[Evict.NEVER]
        for commits, seconds in metrics.FIRST_SECONDS.items():
            warm = partial(measures.hot, seconds, never)
            states = ((measures.hot, each), (measures.cold, never), (measures.cold, each))
            costs = (attempt("s", partial(_less, partial(of, seconds, series), warm)) for of, series in states)
            rows.append([title, mode, stack, commits, attempt("s", warm), *costs])
    columns = (
        *table.IDENTITY,
        Column("stack", "Stack"),
        Column("commits", "First commits"),
        Column("warm", "All warm", "s", interval=True),
        Column("files", "Files evicted", "s", interval=True),
        Column("processes", "Processes new", "s", interval=True),
        Column("both", "Both", "s", interval=True),
    )
    if rows:
        title = "Cost of a cold start by its cause: files out of memory, and new processes and connections"
        yield builder.table("cold-parts", title, columns, rows, run_set.runs, NOTES("cold-parts"))


def _less(state: Callable[[], BootstrapEstimate], warm: Callable[[], BootstrapEstimate]) -> BootstrapEstimate:
    return state().difference(warm())


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the tables that the thesis does not have, and cold-parts if there are runs for it."""
    yield from table.tables_by(_throughput, _latency, _growth, _ratios, _cold_effect, _time_budget)(builder)
    yield from _cold_parts(builder)
