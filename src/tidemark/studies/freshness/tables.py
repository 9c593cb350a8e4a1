"""Tables of the study: ages of events, each event once after kills, capacity, and read times of streamed tables."""

from __future__ import annotations

from tidemark.analysis.formatting import Cell, MissingCell, listed
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.measure.table_calls import Latencies
from tidemark.planner.frontier import beaten_by
from tidemark.results.tables.table import (
    SYSTEM,
    SYSTEM_OF_SERIES,
    Column,
    ComputedColumn,
    Row,
    Table,
    TableBuilder,
    computed,
    part_column,
    series_columns,
    tables_by,
)
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.freshness.capacity import (
    AGE_P50,
    AGE_P95,
    CAPACITY,
    MILLION,
    STEP_CPU,
    STEP_FILES,
    UNKNOWN,
    Capacity,
    OfStep,
    Step,
    capacity,
    steps,
    why_no_cpu,
)
from tidemark.studies.freshness.frontier import cost_of, maintained, policy_costs, upkeep_of
from tidemark.studies.freshness.metrics import (
    COMMITS,
    CPU,
    FILES,
    MADE_P50,
    MADE_P99,
    PEAK,
    RATE,
    ROWS,
    SEEN_MAX,
    SEEN_P50,
    SEEN_P95,
    SEEN_P99,
    SLOPE,
    STALL,
    UPKEEP_CPU,
    UPKEEP_PEAK,
    UPKEEP_WRITTEN,
    WRITTEN,
    climbed,
    killed,
    policy_of,
    steady,
    unfinished,
)
from tidemark.studies.freshness.record import FreshnessRecord, UpkeepCall, UpkeepRecord
from tidemark.studies.freshness.settings import FreshnessSettings
from tidemark.studies.freshness.upkeep import DONE

UNEQUAL = (
    "Systems do not promise the same, and do not do the same work: Tidemark's consumers keep nothing but the table, "
    "and one process is killed with them; a pipeline keeps its own account of what it has read. Nothing here is ranked."
)
EXACT = "each event once"
LEAST, WITHIN = "a lower bound", "within a factor of 2"
STREAMED, NOT_ASKED = "as streamed", "its table was not read"
POLICY: ComputedColumn[Series] = computed("policy", "Commits", policy_of)
DUE: ComputedColumn[Series] = computed(
    "rate", "Events due", lambda series: FreshnessSettings.of(series).rate, "events/s"
)
ENCODING: ComputedColumn[Series] = computed(
    "encoding", "Encoding", lambda series: FreshnessSettings.of(series).encoding
)
SHOWN = (
    (RATE, "events"), (COMMITS, "commits"), (ROWS, "rows"), (SEEN_P50, "seen_p50"), (SEEN_P95, "seen_p95"),
    (SEEN_P99, "seen_p99"), (SEEN_MAX, "seen_max"), (MADE_P50, "committed_p50"), (MADE_P99, "committed_p99"),
    (SLOPE, "slope"), (CPU, "cpu"), (FILES, "files"),
)  # fmt: skip
KEPT = (
    (SEEN_P50, "seen_p50"), (SEEN_P99, "seen_p99"), (STALL, "stall"), (CPU, "cpu"), (UPKEEP_CPU, "cpu_upkeep"),
    (WRITTEN, "written"), (UPKEEP_WRITTEN, "written_upkeep"), (PEAK, "peak"), (UPKEEP_PEAK, "peak_upkeep"),
)  # fmt: skip
UNBEATEN = "no other"
OF_STEP = {"seen_p50": AGE_P50, "seen_p95": AGE_P95, "cpu": STEP_CPU, "files": STEP_FILES}
AGE_NOTES = (
    "Events are sent at the moments of a schedule, whatever becomes of them; an age is counted from the schedule, "
    "also of an event that was sent late. A reader opens the table again and again and asks how many rows it has: "
    "the age of an event is that at the first answer that counts it. Its age at its commit is by the table's own "
    "history, whose clock stands some milliseconds before others can see the commit.",
    "Events: those due, by the time from the first one's moment until the last was seen. Growth of the lag: how "
    "much older the youngest event of a commit gets with each second, while events arrive; above 0 the table "
    "falls behind. CPU: of consumers or pipeline and of the table's servers, without broker, producer and reader. "
    "Files: data and metadata on the disk.",
    "Tidemark's consumers are processes that write through the table's own client, and commit at the given time "
    "after the first event that waits; pipelines read the topic themselves and commit at the given interval.",
    UNEQUAL,
)
KILL_NOTES = (
    "While events arrive, a consumer or the pipeline is killed (SIGKILL, all its processes) and started again at "
    "once; broker and table go on. Once all events are seen, or the wait has timed out, another client reads all "
    "ids: each must be there, once.",
    UNEQUAL,
)
CLIMB_NOTES = (
    "Events are due at a rate that is doubled step by step, without a pause; ages are counted from the schedule. "
    "Capacity: the highest rate whose lag does not grow, before the first step in which it does (the interval of its "
    "slope lies above 0, or the oldest unseen event is older than a commit's interval and half of the "
    "step). A step with too few commits to judge is no capacity and ends no climb. Growth of the lag: of commits that "
    "lie in the step. Of a series that was measured again, capacity is what all repeats keep up with.",
    "Ages, processor time and files are those of that step. Where the producer was late, or there was no further step, "
    "the table may keep up with more. Producer and broker share the machine's processors with consumers or pipeline.",
)
READS = (
    SYSTEM, POLICY.column, DUE.column, ENCODING.column, Column("state", "State"),
    Column("commits", "Commits made"), Column("files", "Files"),
    Column("count_first", "count(*), first", "s"), Column("count_again", "count(*), again", "s"),
    Column("sum_first", "sum, first", "s"), Column("sum_again", "sum, again", "s"),
    Column("maintained", "Maintenance", "s"),
)  # fmt: skip
READ_NOTES = (
    "At the end of a window, once the pipeline is stopped and the oracle was asked, a client that never wrote to the "
    "table counts its rows (count(*)) and adds up two columns (sum(id), sum(total_amount)), each twice in a row: at "
    "first, when it has to find the table, and again. Each number is of one answer and has no interval. The client is "
    "a separate DuckDB with the format's extension, its extensions loaded before, its threads as many as it takes. "
    "Files are in the page cache, where their writer has left them.",
    "Maintenance is what the table's own client offers, all of it, one operation after the other. Files: data and "
    "metadata on the disk, those of events before the window among them. Each answer was checked against the table's "
    "rows and the sum of their ids.",
    "DuckDB 1.4.4 waits some 40 ms for each answer of a catalog's server on this machine; 1.5.5 does not.",
)


UPKEEP_NOTES = (
    "A policy is when Tidemark's consumer commits, and what is done to the table after how many commits, by its "
    "client's own means. The consumer does it itself, between two commits, and events wait meanwhile; or a process "
    "beside it does, with a client of its own, and each may refuse the other's commits. A refused commit is tried "
    "again. Stall: the longest time in which the consumer takes no events, with a commit and its own upkeep after it.",
    "CPU and written bytes: of the consumer, the process beside it and the table's servers, without broker, producer "
    "and reader; upkeep included. The share of upkeep is what the process that does it spent in it: the part of "
    "servers is not known. Written: bytes that these processes caused to be written to a disk, now or later. Files: "
    "data and metadata on the disk at the end. Peak memory is that of a process, with what it shares.",
    "Beaten by: the policy at the same rate that is no worse in p99 age, CPU and stall, and better in one of them, by "
    "these numbers alone: an interval does not count. A policy whose table does not hold each event once beats none. "
    "What an acknowledgement promises is not the same for all systems.",
)


def _verdict(series: Series) -> str:
    if not series.runs:
        raise NotAvailable(series.missing())
    wrong = [run for run in series.runs if not run.manifest.oracle.verdict]
    words = [f"{'NOT DONE' if unfinished(run) else 'DOES NOT HOLD'}: {run.manifest.marks[0]}" for run in wrong]
    return words[0] if words else EXACT


VERDICT = computed("verdict", "Verdict", _verdict)


def _counted(chosen: list[Series]) -> list[Run]:
    return [run for series in chosen for run in series.counted_runs]


def _ages(builder: TableBuilder) -> Table:
    chosen = steady(builder.run_set)
    columns = [SYSTEM_OF_SERIES, POLICY, DUE, ENCODING, VERDICT, *(builder.metric(key, each) for each, key in SHOWN)]
    title = "How old events are when they are seen"
    return builder.computed_table("freshness", title, columns, chosen, _counted(chosen), AGE_NOTES)


def _kills(builder: TableBuilder) -> Table:
    def again(run: Run) -> float | None:
        return max((kill.again_s for kill in run.record(FreshnessRecord).kills), default=None)

    columns: list[ComputedColumn[Row[Run]]] = [
        *series_columns(SYSTEM_OF_SERIES, POLICY, DUE, ENCODING, VERDICT),
        part_column("kills", "Kills", lambda run: len(run.record(FreshnessRecord).kills)),
        part_column("expected", "Events", lambda run: run.manifest.oracle.expected),
        part_column("missing", "Missing", lambda run: run.manifest.oracle.missing),
        part_column("doubled", "More than once", lambda run: run.manifest.oracle.duplicated),
        part_column("unexpected", "Of no event", lambda run: run.manifest.oracle.unexpected),
        part_column("again", "Started again, worst", again, "s"),
        part_column("oldest", "Oldest when seen", lambda run: builder.measures.of_run(SEEN_MAX, run), "s"),
        part_column("how", "How each is to be there once", lambda run: run.record(FreshnessRecord).exactly_once),
    ]
    rows: list[Row[Run]] = []
    for series in killed(builder.run_set):
        rows += Row.of(series, series.runs, series.missing())
    runs = [row.shown for row in rows if row.shown]
    title = "Whether each event is there once after kills"
    return builder.computed_table("freshness-kills", title, columns, rows, runs, KILL_NOTES)


def _capacity(builder: TableBuilder) -> Table:
    def most(series: Series) -> Capacity:
        if not series.runs:
            raise NotAvailable(series.missing())
        return capacity(series.counted_runs)

    def at_capacity(key: str, of_step: OfStep) -> ComputedColumn[Series]:
        def value(series: Series) -> BootstrapEstimate:
            return builder.measures.value(of_step.at(most(series).rate), series)

        return computed(key, of_step.title, value, of_step.unit, interval=True)

    columns = [
        SYSTEM_OF_SERIES,
        POLICY,
        ENCODING,
        computed("capacity", CAPACITY.title, lambda series: most(series).rate, CAPACITY.unit),
        *(at_capacity(key, of_step) for key, of_step in OF_STEP.items()),
        computed("bound", "It is", lambda series: ending(most(series))[0]),
        computed("ended", "The next step", lambda series: ending(most(series))[1]),
    ]
    chosen = climbed(builder.run_set)
    title = "At which rate the lag does not grow"
    return builder.computed_table("freshness-capacity", title, columns, chosen, _counted(chosen), CLIMB_NOTES)


def ending(most: Capacity) -> tuple[str, str]:
    """Return whether the capacity is a lower bound, and the verdict on the next step."""
    following = most.following
    if following is None:
        return LEAST, "there was none"
    return LEAST if most.is_least else WITHIN, f"{following.rate:,} events/s: {following.verdict}"


def _steps(builder: TableBuilder) -> Table:
    def cpu(shown: tuple[Run, Step]) -> Cell:
        run, step = shown
        unseen = why_no_cpu(run)
        scale = MILLION / step.events
        return step.cpu_s * scale if step.cpu_s > 0 and not unseen else MissingCell(unseen or "none was seen")

    def files(step: Step) -> Cell:
        return step.files * (MILLION / step.events) if step.files > 0 else MissingCell("no file was counted")

    columns: list[ComputedColumn[Row[tuple[Run, Step]]]] = [
        *series_columns(SYSTEM_OF_SERIES, POLICY, ENCODING),
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
    chosen = climbed(builder.run_set)
    rows: list[Row[tuple[Run, Step]]] = []
    for series in chosen:
        rows += [] if series.runs else [Row(series, None, series.missing())]
        for run in series.counted_runs:
            try:
                rows += [Row(series, (run, step)) for step in steps(run)]
            except NotAvailable as absent:
                rows.append(Row(series, None, str(absent)))
    title = "The lag at each rate of a climb"
    return builder.computed_table("freshness-steps", title, columns, rows, _counted(chosen), CLIMB_NOTES)


def _reads(builder: TableBuilder) -> Table:
    chosen = steady(builder.run_set)
    rows: list[list[Cell]] = []
    for series in chosen:
        head = [each.cell(series) for each in (SYSTEM_OF_SERIES, POLICY, DUE, ENCODING)]
        if not series.runs:
            rows.append([*head, *[MissingCell(series.missing())] * (len(READS) - len(head))])
        for run in series.counted_runs:
            rows += [[*head, *line] for line in lines(run.record(FreshnessRecord))]
    title = "What it takes to read what was streamed"
    return builder.table("freshness-reads", title, READS, rows, _counted(chosen), READ_NOTES)


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
        if not series.runs:
            raise NotAvailable(series.missing())
        kept = [run.record(FreshnessRecord).upkeep for run in series.counted_runs]
        return [record for record in kept if record is not None]

    def refused(series: Series) -> int:
        return sum(record.refused for record in found(series))

    def calls(series: Series) -> list[UpkeepCall]:
        return [call for record in found(series) for call in record.calls]

    def failed(series: Series) -> list[UpkeepCall]:
        return [call for call in calls(series) if call.outcome != DONE]

    def files(series: Series) -> Cell:
        if not series.runs:
            raise NotAvailable(series.missing())
        return series.counted_runs[-1].footprint.files

    def beaten(series: Series) -> Cell:
        stronger = beaten_by(cost_of(builder.measures, series), costs)
        return UNBEATEN if stronger is None else stronger.name

    columns: list[ComputedColumn[Series]] = [
        SYSTEM_OF_SERIES,
        POLICY,
        computed("upkeep", "Upkeep", lambda series: upkeep_of(series).words),
        DUE,
        VERDICT,
        *(builder.metric(key, each) for each, key in KEPT),
        computed("files", "Files at the end", files),
        computed("beaten", "Beaten by", beaten),
        computed("refused", "Commits refused", refused),
        computed("operations", "Operations", lambda each: ", ".join(dict.fromkeys(c.operation for c in calls(each)))),
        computed("calls", "Calls", lambda series: len(calls(series))),
        computed("failed", "Calls failed", lambda series: len(failed(series))),
        computed("said", "First error", lambda series: next((call.said for call in failed(series)), None)),
    ]
    title = "Freshness against cost with upkeep"
    return builder.computed_table("freshness-upkeep", title, columns, chosen, _counted(chosen), UPKEEP_NOTES)


build = tables_by(_ages, _kills, _capacity, _steps, _reads, _upkeep)
