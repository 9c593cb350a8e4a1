"""Tables of the study: ages of events, each event once after kills, capacity, and read times of streamed tables."""

from __future__ import annotations

from tidemark.analysis.formatting import Cell, MissingCell, listed
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.measure.table_calls import Latencies
from tidemark.planner.frontier import beaten_by
from tidemark.results.tables import table
from tidemark.results.tables.table import Column, ComputedColumn, Row, Table, TableBuilder, computed, part_column
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import all_runs
from tidemark.studies.freshness import capacity, metrics
from tidemark.studies.freshness.capacity import AGE_P50, AGE_P95, STEP_CPU, STEP_FILES, UNKNOWN, Capacity, Step
from tidemark.studies.freshness.frontier import cost_of, maintained, policy_costs, upkeep_of
from tidemark.studies.freshness.record import FreshnessRecord, UpkeepCall, UpkeepRecord
from tidemark.studies.freshness.settings import FreshnessSettings
from tidemark.studies.freshness.upkeep import DONE

NOTES = table.notes_of(__file__)
EXACT = "each event once"
LEAST, WITHIN = "a lower bound", "within a factor of 2"
STREAMED, NOT_ASKED = "as streamed", "its table was not read"
POLICY: ComputedColumn[Series] = computed("policy", "Commits", metrics.policy_of)
DUE: ComputedColumn[Series] = computed(
    "rate", "Events due", lambda series: FreshnessSettings.of(series).rate, "events/s"
)
ENCODING: ComputedColumn[Series] = computed(
    "encoding", "Encoding", lambda series: FreshnessSettings.of(series).encoding
)
HEAD = (table.SYSTEM_OF_SERIES, POLICY, DUE, ENCODING)
SHOWN = (
    (metrics.RATE, "events"), (metrics.COMMITS, "commits"), (metrics.ROWS, "rows"),
    (metrics.SEEN_P50, "seen_p50"), (metrics.SEEN_P95, "seen_p95"), (metrics.SEEN_P99, "seen_p99"),
    (metrics.SEEN_MAX, "seen_max"), (metrics.MADE_P50, "committed_p50"), (metrics.MADE_P99, "committed_p99"),
    (metrics.SLOPE, "slope"), (metrics.CPU, "cpu"), (metrics.FILES, "files"),
)  # fmt: skip
KEPT = (
    (metrics.SEEN_P50, "seen_p50"), (metrics.SEEN_P99, "seen_p99"), (metrics.STALL, "stall"),
    (metrics.LONGEST_CALL, "longest_call"),
    (metrics.CPU, "cpu"), (metrics.UPKEEP_CPU, "cpu_upkeep"), (metrics.WRITTEN, "written"),
    (metrics.UPKEEP_WRITTEN, "written_upkeep"), (metrics.PEAK, "peak"), (metrics.UPKEEP_PEAK, "peak_upkeep"),
)  # fmt: skip
UNBEATEN = "no other"
OF_STEP = {"seen_p50": AGE_P50, "seen_p95": AGE_P95, "cpu": STEP_CPU, "files": STEP_FILES}
READS = (
    *(each.column for each in HEAD), Column("state", "State"),
    Column("commits", "Commits made"), Column("files", "Files"),
    Column("count_first", "count(*), first", "s"), Column("count_again", "count(*), again", "s"),
    Column("sum_first", "sum, first", "s"), Column("sum_again", "sum, again", "s"),
    Column("maintained", "Maintenance", "s"),
)  # fmt: skip


def _verdict(series: Series) -> str:
    require(series.runs, series.missing())
    wrong = [run for run in series.runs if not run.manifest.oracle.verdict]
    words = [f"{'NOT DONE' if metrics.unfinished(run) else 'DOES NOT HOLD'}: {run.manifest.marks[0]}" for run in wrong]
    return words[0] if words else EXACT


VERDICT = computed("verdict", "Verdict", _verdict)


def _counted(chosen: list[Series]) -> list[Run]:
    return [run for series in chosen for run in series.counted_runs]


def _ages(builder: TableBuilder) -> Table:
    chosen = metrics.steady(builder.run_set)
    columns = [*HEAD, VERDICT, *(builder.metric(key, each) for each, key in SHOWN)]
    title = "How old events are when they are seen"
    return builder.computed_table("freshness", title, columns, chosen, _counted(chosen), NOTES("freshness"))


def _kills(builder: TableBuilder) -> Table:
    def again(run: Run) -> float | None:
        return max((kill.again_s for kill in run.record(FreshnessRecord).kills), default=None)

    columns: list[ComputedColumn[Row[Run]]] = [
        *table.series_columns(*HEAD, VERDICT),
        part_column("kills", "Kills", lambda run: len(run.record(FreshnessRecord).kills)),
        part_column("expected", "Events", lambda run: run.manifest.oracle.expected),
        part_column("missing", "Missing", lambda run: run.manifest.oracle.missing),
        part_column("doubled", "More than once", lambda run: run.manifest.oracle.duplicated),
        part_column("unexpected", "Of no event", lambda run: run.manifest.oracle.unexpected),
        part_column("again", "Started again, worst", again, "s"),
        part_column("oldest", "Oldest when seen", lambda run: builder.measures.of_run(metrics.SEEN_MAX, run), "s"),
        part_column("how", "How each is to be there once", lambda run: run.record(FreshnessRecord).exactly_once),
    ]
    chosen = metrics.killed(builder.run_set)
    rows: list[Row[Run]] = [row for each in chosen for row in Row.of(each, each.runs, each.missing())]
    title = "Whether each event is there once after kills"
    return builder.computed_table("freshness-kills", title, columns, rows, all_runs(chosen), NOTES("freshness-kills"))


def _capacity(builder: TableBuilder) -> Table:
    def most(series: Series) -> Capacity:
        require(series.runs, series.missing())
        return capacity.capacity(series.counted_runs)

    def at_capacity(key: str, of_step: capacity.OfStep) -> ComputedColumn[Series]:
        def value(series: Series) -> BootstrapEstimate:
            return builder.measures.value(of_step.at(most(series).rate), series)

        return computed(key, of_step.title, value, of_step.unit, interval=True)

    columns = [
        table.SYSTEM_OF_SERIES,
        POLICY,
        ENCODING,
        computed("capacity", capacity.CAPACITY.title, lambda series: most(series).rate, capacity.CAPACITY.unit),
        *(at_capacity(key, of_step) for key, of_step in OF_STEP.items()),
        computed("bound", "It is", lambda series: ending(most(series))[0]),
        computed("ended", "The next step", lambda series: ending(most(series))[1]),
    ]
    chosen = metrics.climbed(builder.run_set)
    title = "At which rate the lag does not grow"
    notes = NOTES("freshness-capacity")
    return builder.computed_table("freshness-capacity", title, columns, chosen, _counted(chosen), notes)


def ending(most: Capacity) -> tuple[str, str]:
    """Return whether the capacity is a lower bound, and the verdict on the next step."""
    following = most.following
    if following is None:
        return LEAST, "there was none"
    return LEAST if most.is_least else WITHIN, f"{following.rate:,} events/s: {following.verdict}"


def _steps(builder: TableBuilder) -> Table:
    def cpu(shown: tuple[Run, Step]) -> Cell:
        run, step = shown
        unseen = capacity.why_no_cpu(run)
        scale = capacity.MILLION / step.events
        return step.cpu_s * scale if step.cpu_s > 0 and not unseen else MissingCell(unseen or "none was seen")

    def files(step: Step) -> Cell:
        return step.files * (capacity.MILLION / step.events) if step.files > 0 else MissingCell("no file was counted")

    columns: list[ComputedColumn[Row[tuple[Run, Step]]]] = [
        *table.series_columns(table.SYSTEM_OF_SERIES, POLICY, ENCODING),
        part_column("rate", "Events due", lambda shown: shown[1].rate, "events/s"),
        part_column("events", "Events", lambda shown: shown[1].events),
        part_column("verdict", "Lag", lambda shown: shown[1].verdict),
        part_column(
            "slope", "Growth of the lag", lambda shown: shown[1].growth or MissingCell(UNKNOWN), "s/s", interval=True
        ),
        part_column("lag", "Lag at its end", lambda shown: shown[1].lag_s, "s"),
        part_column("late", "Sent late, worst", lambda shown: shown[1].latest_s, "s"),
        part_column("cpu", STEP_CPU.title, cpu, STEP_CPU.unit),
        part_column("files", STEP_FILES.title, lambda shown: files(shown[1]), STEP_FILES.unit),
    ]
    chosen = metrics.climbed(builder.run_set)
    rows: list[Row[tuple[Run, Step]]] = []
    for series in chosen:
        rows += [] if series.runs else [Row(series, None, series.missing())]
        for run in series.counted_runs:
            try:
                rows += [Row(series, (run, step)) for step in capacity.steps(run)]
            except NotAvailable as absent:
                rows.append(Row(series, None, str(absent)))
    title = "The lag at each rate of a climb"
    return builder.computed_table("freshness-steps", title, columns, rows, _counted(chosen), NOTES("freshness-steps"))


def _reads(builder: TableBuilder) -> Table:
    chosen = metrics.steady(builder.run_set)
    rows: list[list[Cell]] = []
    for series in chosen:
        head = [each.cell(series) for each in HEAD]
        if not series.runs:
            rows.append([*head, *[MissingCell(series.missing())] * (len(READS) - len(head))])
        for run in series.counted_runs:
            rows += [[*head, *line] for line in lines(run.record(FreshnessRecord))]
    title = "What it takes to read what was streamed"
    return builder.table("freshness-reads", title, READS, rows, _counted(chosen), NOTES("freshness-reads"))


def lines(record: FreshnessRecord) -> list[list[Cell]]:
    """Return the cells from the state on: as streamed and after maintenance, or one row with the reason if unread."""
    reads = record.reads
    if reads is None:
        return [[MissingCell(NOT_ASKED)] * 8]
    before: list[Cell] = [STREAMED, record.commits, reads.files, *_answers(reads.before, reads.why_not), None]
    if reads.before is None:
        return [before]
    took: Cell = float(sum(seconds for _, seconds in reads.maintained)) if reads.maintained else None
    if reads.after is None:
        why: Cell = MissingCell(reads.why_not_after)
        return [before, [why] * 7 + [took or why]]
    names = listed([name for name, _ in reads.maintained])
    return [before, [f"after {names}", record.commits, reads.files_after, *_answers(reads.after, ""), took]]


def _answers(latencies: Latencies | None, why_not: str) -> list[Cell]:
    return [MissingCell(why_not)] * 4 if latencies is None else [*latencies.count_s, *latencies.sum_s]


def _upkeep(builder: TableBuilder) -> Table:
    chosen = maintained(builder.run_set)
    costs = [cost for _, cost in policy_costs(builder.measures)]

    def found(series: Series) -> list[UpkeepRecord]:
        require(series.runs, series.missing())
        kept = [run.record(FreshnessRecord).upkeep for run in series.counted_runs]
        return [record for record in kept if record is not None]

    def calls(series: Series) -> list[UpkeepCall]:
        return [call for record in found(series) for call in record.calls]

    def failed(series: Series) -> list[UpkeepCall]:
        return [call for call in calls(series) if call.outcome != DONE]

    def files(series: Series) -> Cell:
        require(series.runs, series.missing())
        return series.counted_runs[-1].footprint.files

    def beaten(series: Series) -> Cell:
        stronger = beaten_by(cost_of(builder.measures, series), costs)
        return UNBEATEN if stronger is None else stronger.name

    columns: list[ComputedColumn[Series]] = [
        table.SYSTEM_OF_SERIES,
        POLICY,
        computed("upkeep", "Upkeep", lambda series: upkeep_of(series).words),
        DUE,
        VERDICT,
        *(builder.metric(key, each) for each, key in KEPT),
        computed("files", "Files at the end", files),
        computed("beaten", "Beaten by", beaten),
        computed("refused", "Commits refused", lambda series: sum(record.refused for record in found(series))),
        computed("operations", "Operations", lambda each: ", ".join(dict.fromkeys(c.operation for c in calls(each)))),
        computed("calls", "Calls", lambda series: len(calls(series))),
        computed("failed", "Calls failed", lambda series: len(failed(series))),
        computed("said", "First error", lambda series: next((call.said for call in failed(series)), None)),
    ]
    title = "Freshness against cost with upkeep"
    notes = NOTES("freshness-upkeep")
    return builder.computed_table("freshness-upkeep", title, columns, chosen, _counted(chosen), notes)


build = table.tables_by(_ages, _kills, _capacity, _steps, _reads, _upkeep)
