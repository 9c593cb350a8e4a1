"""Tables that the thesis does not have: intervals, tails, growth, throughputs, time budget, cold effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations

from tidemark.analysis.formatting import Cell, MissingCell, attempt, comparison, growth_verdict
from tidemark.analysis.metrics import BEYOND, Metric
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.measure.workload import Evict
from tidemark.results.tables.table import IDENTITY, PER_RUN, Column, Table, TableBuilder, notes_of, tables_by
from tidemark.runs.run import STATES, Run
from tidemark.runs.runset import Series
from tidemark.runs.spec import MODES, STAGES
from tidemark.runs.views import twins
from tidemark.studies.streams import metrics
from tidemark.studies.streams.settings import StreamSettings

NOTES = notes_of(__file__)


def _identity(series: Series, run: Run) -> list[Cell]:
    """Return the cells of PER_RUN."""
    return [series.title, series.mode_title, series.repeat_of(run), run.number, run.state]


def _throughput(builder: TableBuilder) -> Table:
    """Return table throughput: both throughputs of every run, and of the typical hot run."""
    measures = builder.measures
    rows: list[list[Cell]] = []
    for series in builder.run_set.select():
        for run in series.runs:
            harness = attempt("events/s", partial(measures.of_run, metrics.HARNESS_RATE, run))
            system = attempt("events/s", partial(measures.of_run, metrics.SYSTEM_RATE, run))
            rows.append([*_identity(series, run), run.manifest.events, harness, system, _share(harness, system)])
        harness = attempt("events/s", partial(measures.hot, metrics.HARNESS_RATE, series))
        system = attempt("events/s", partial(measures.hot, metrics.SYSTEM_RATE, series))
        row: list[Cell] = [series.title, series.mode_title, None, None, "hot runs", None]
        rows.append([*row, harness, system, _share(harness, system)])
    columns = (
        *PER_RUN,
        Column("events", "Events"),
        Column("harness", "Harness throughput", "events/s", interval=True),
        Column("system_rate", "System throughput", "events/s", interval=True),
        Column("share", "Harness / system", "%"),
    )
    title = "Harness and system throughput of every run"
    return builder.table("throughput", title, columns, rows, builder.run_set.runs, NOTES("throughput"))


def _share(part: Estimate | MissingCell, whole: Estimate | MissingCell) -> Cell:
    return None if isinstance(part, MissingCell) or isinstance(whole, MissingCell) else 100 * part.value / whole.value


def _latency(builder: TableBuilder) -> Table:
    """Return table latency: the distribution of the write times of every run, up to its maximum."""
    asked = (
        metrics.WRITE_MEDIAN, metrics.WRITE_IQR, metrics.WRITE_P90, metrics.WRITE_P99, metrics.WRITE_P999,
        metrics.WRITE_MAX, metrics.READ_MEDIAN, metrics.READ_P99,
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for series in builder.run_set.select():
        for run in series.runs:
            cells = [attempt(quantity.unit, partial(builder.measures.of_run, quantity, run)) for quantity in asked]
            rows.append([*_identity(series, run), run.manifest.operations, *cells])
        if not series.runs:
            rows.append([series.title, series.mode_title, *[None] * 4, MissingCell(series.missing()), *[None] * 7])
    columns = (
        *PER_RUN,
        Column("n", "n"),
        *(
            Column(_key(quantity), quantity.name[0].upper() + quantity.name[1:], quantity.unit, interval=True)
            for quantity in asked
        ),
    )
    notes = [*NOTES("latency", beyond=BEYOND), *reading_notes(builder.run_set.select())]
    return builder.table("latency", "Write and read times of every run", columns, rows, builder.run_set.runs, notes)


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


def _key(quantity: Metric) -> str:
    return quantity.name.replace(" ", "_").replace(".", "")


def _growth(builder: TableBuilder) -> Table:
    """Return table growth: the Theil-Sen slope of the write time with the number of commits."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in builder.run_set.select():
        slope = attempt(metrics.GROWTH.unit, partial(builder.measures.hot, metrics.GROWTH, series))
        aged = [
            attempt(each.unit, partial(builder.measures.hot, each, series))
            for each in (*metrics.WRITE_AT.values(), *metrics.GROWTH_TO.values())
        ]
        commits = sum(run.manifest.operations for run in series.hot_runs)
        rows.append(
            [series.title, series.mode_title, len(series.hot_runs), commits, *aged, slope, growth_verdict(slope)]
        )
        runs += series.hot_runs
    columns = (
        *IDENTITY,
        Column("hot_runs", "Hot runs"),
        Column("commits", "Commits"),
        *(
            Column(each.key, each.title, each.unit, interval=True)
            for each in (*metrics.WRITE_AT.values(), *metrics.GROWTH_TO.values())
        ),
        Column("growth", "Growth per 1,000 commits", "ms", interval=True),
        Column("verdict", "Write time"),
    )
    title = "Growth of the write time with the number of commits"
    return builder.table("growth", title, columns, rows, runs, NOTES("growth"))


FLOOR_COLUMNS = (
    Column("write_floor", "Noise floor of write times", "%"),
    Column("rate_floor", "Noise floor of throughput", "%"),
)


def _ratios(builder: TableBuilder) -> Table:
    """Return table ratios: every pair of systems in a mode, hot runs compared with hot runs."""
    measures = builder.measures
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    with_floors = (metrics.WRITE_MEDIAN, metrics.HARNESS_RATE) if twins(builder.run_set.select(harness=False)) else ()
    for mode in MODES:
        series = [each for each in builder.run_set.select(mode=mode, harness=False) if each.hot_runs]
        runs += [run for each in series for run in each.hot_runs]
        floors = [attempt("%", partial(measures.noise_floor, each, mode)) for each in with_floors]
        for a, b in combinations(series, 2):
            times = attempt("", partial(measures.ratio, metrics.WRITE_MEDIAN, a, b))
            rates = attempt("", partial(measures.ratio, metrics.HARNESS_RATE, a, b))
            delta = attempt("", partial(measures.dominance, "write_ns", a, b))
            verdict = comparison(partial(measures.ratio, metrics.WRITE_MEDIAN, a, b))
            rows.append([a.title, b.title, a.mode_title, times, rates, delta, verdict, *floors])
    columns = (
        Column("a", "A"),
        Column("b", "B"),
        Column("mode", "Mode"),
        Column("write_ratio", "Median write time, A / B", interval=True),
        Column("rate_ratio", "Harness throughput, A / B", interval=True),
        Column("delta", "Cliff's delta of write times", interval=True),
        Column("verdict", "Writes of A"),
        *(FLOOR_COLUMNS if with_floors else ()),
    )
    notes = [*NOTES("ratios"), *(NOTES("floors") if with_floors else [])]
    notes.append(f"Intervals are 95 %. {builder.run_set.coverage}")
    title = "Pairs of systems: ratios of hot runs"
    return builder.table("ratios", title, columns, rows, runs, notes)


def _cold_effect(builder: TableBuilder) -> Table:
    """Return table cold-effect: run 0 compared with the hot runs."""
    measures = builder.measures
    rows: list[list[Cell]] = []
    for series in builder.run_set.select():
        states = dict.fromkeys(run.state for run in series.cold_runs)
        first = series.cold_runs[0].manifest.first_write_ns if series.cold_runs else None
        times = attempt("", partial(measures.cold_effect, metrics.WRITE_MEDIAN, series))
        rows.append(
            [
                series.title,
                series.mode_title,
                ", ".join(states) if states else MissingCell(series.missing(0)),
                attempt("ms", partial(measures.cold, metrics.WRITE_MEDIAN, series)),
                attempt("ms", partial(measures.hot, metrics.WRITE_MEDIAN, series)),
                times,
                attempt("", partial(measures.cold_effect, metrics.WRITE_P99, series)),
                attempt("", partial(measures.cold_effect, metrics.HARNESS_RATE, series)),
                comparison(partial(measures.cold_effect, metrics.WRITE_MEDIAN, series)),
                first / 1e6 if first is not None else None,
                attempt("", partial(measures.cold_start, metrics.FIRST_WRITE, series)),
                *(attempt("s", partial(measures.cold_cost, each, series)) for each in metrics.FIRST_SECONDS.values()),
            ]
        )
    columns = (
        *IDENTITY,
        Column("state", "State of run 0"),
        Column("cold", "Median write, run 0", "ms", interval=True),
        Column("hot", "Median write, hot", "ms", interval=True),
        Column("median_ratio", "Median write, run 0 / hot", interval=True),
        Column("p99_ratio", "p99 write, run 0 / hot", interval=True),
        Column("rate_ratio", "Harness throughput, run 0 / hot", interval=True),
        Column("verdict", "Writes of run 0"),
        Column("first_write", "First write of run 0", "ms"),
        Column("first_write_ratio", "First write, run 0 / median of hot", interval=True),
        *(
            Column(f"cost_{commits}", f"Run 0 less hot, commits 1 to {commits}", "s", interval=True)
            for commits in metrics.FIRST_SECONDS
        ),
    )
    title = "Cost of a cold start: run 0 compared with hot runs"
    return builder.table("cold-effect", title, columns, rows, builder.run_set.runs, NOTES("cold-effect", states=STATES))


def _time_budget(builder: TableBuilder) -> Table:
    """Return table time-budget: the parts of every run's wall-clock time."""
    rows: list[list[Cell]] = []
    for series in builder.run_set.select():
        for run in series.runs:
            budget = dict(run.manifest.time_budget_ns)
            shares = [100 * budget.get(part, 0) / run.manifest.elapsed_ns for part in STAGES]
            rows.append([*_identity(series, run), run.elapsed_s, *shares, 100 - shares[-1]])
    columns = (
        *PER_RUN,
        Column("elapsed", "Window", "s"),
        *(Column(part, part.replace("_", " ").capitalize(), "%") for part in STAGES),
        Column("accounted", "Accounted for", "%"),
    )
    title = "Time budget of each run"
    return builder.table("time-budget", title, columns, rows, builder.run_set.runs)


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
            states = (
                partial(measures.hot, seconds, each),
                partial(measures.cold, seconds, never),
                partial(measures.cold, seconds, each),
            )
            costs = (attempt("s", partial(_less, state, warm)) for state in states)
            rows.append([title, mode, stack, commits, attempt("s", warm), *costs])
    columns = (
        *IDENTITY,
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
    yield from tables_by(_throughput, _latency, _growth, _ratios, _cold_effect, _time_budget)(builder)
    yield from _cold_parts(builder)
