"""Tables of the study: times of complete tables next to those that the thesis prints, their parts and their costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from statistics import median

from tidemark.analysis.formatting import Cell, MissingCell, listed
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.results.tables import table
from tidemark.results.tables.table import SYSTEM_OF_SERIES, Column, ComputedColumn, Table, TableBuilder, computed
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import all_runs
from tidemark.studies.deltars import metrics, published
from tidemark.studies.deltars.claims import DeltarsClaimData, decrease
from tidemark.studies.deltars.samples import READ, WRITE, DeltarsSettings, TablesRecord

NOTES = table.notes_of(__file__)
HEAD: tuple[ComputedColumn[Series], ...] = (
    SYSTEM_OF_SERIES,
    computed("data", "Table", lambda series: DeltarsSettings.of(series).data),
    computed("cores", "Processors", lambda series: DeltarsSettings.of(series).cores),
)
HEADINGS = tuple(each.column for each in HEAD)
LIMITED = {published.MATERIALISE: "Materialised", published.READ: "Read"}


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the tables of times and ratios, of closes, scopes, costs and verdicts, and of the thesis itself."""
    yield _times(builder, WRITE, "deltars-writes", "Writing a whole table")
    yield _times(builder, READ, "deltars-reads", "Reading a whole table")
    yield from table.tables_by(_ratios, _cores, _closes, _scopes, _costs, _oracle, _thesis, _steps, _limit)(builder)


def head(series: Series) -> list[Cell]:
    return [each.cell(series) for each in HEAD]


def _times(builder: TableBuilder, operation: str, name: str, title: str) -> Table:
    """Return a table with a row per system, table and number of processors; the thesis's rows follow each table's."""

    def repetitions(series: Series) -> int | None:
        return sum(int((run.words("call") == operation).sum()) for run in series.runs) or None

    columns = (
        *HEAD,
        computed("n", "Repetitions", repetitions),
        builder.metric("mean", metrics.MEANS[operation], "Mean"),
        builder.metric("median", metrics.MEDIANS[operation], "Median"),
        builder.metric("rate", metrics.RATES[operation], "Rows"),
    )
    rows: list[list[Cell]] = []
    for data in metrics.tables_of(builder.run_set):
        rows += [[each.cell(series) for each in columns] for series in metrics.in_order(builder.run_set, data=data)]
        rows += _printed(operation, data)
    title, headings = f"{title}, compared with the thesis", [each.column for each in columns]
    return builder.table(name, title, headings, rows, builder.runs, NOTES("deltars-times"))


def _printed(operation: str, data: str) -> Iterator[list[Cell]]:
    for pipeline, title in published.TITLES.items():
        for cores in published.CORES:
            each = published.printed(operation, pipeline, data, cores)
            if each is not None:
                n = published.REPETITIONS
                mean = Estimate(each.mean, each.low, each.high, n, "s")
                rows = published.THOUSANDS[published.WORDS[data]]
                rate = Estimate(rows / each.mean, rows / each.high, rows / each.low, n, "k rows/s")
                yield [title, data, cores, n, mean, None, rate]


def _ratios(builder: TableBuilder) -> Table:
    """Return each system's ratio to delta-rs on the local disk, and the thesis's for the corresponding pipeline."""

    def local(series: Series) -> Series | None:
        return metrics.find(builder.run_set, "delta-rs-local", *DeltarsSettings.of(series).cell)

    def measured(quantity: Metric, series: Series) -> BootstrapEstimate:
        first, second = (builder.measures.value(quantity, each) for each in (series, local(series)) if each is not None)
        return first.ratio(second)

    def printed(operation: str, series: Series) -> float | None:
        cell = DeltarsSettings.of(series).cell
        is_local = published.HEIRS.get(series.system) == published.LOCAL
        own = None if is_local else published.of_system(series.system, operation, *cell)
        return published.ratio(own, published.printed(operation, published.LOCAL, *cell))

    others = [each for each in metrics.in_order(builder.run_set) if local(each) not in (None, each)]
    chosen = [each for each in others if not each.is_null_baseline]
    columns = list(HEAD)
    for operation in (WRITE, READ):
        said = f"{operation.capitalize()}s"
        for word, quantity in (("means", metrics.MEANS[operation]), ("medians", metrics.MEDIANS[operation])):
            of_word = partial(measured, quantity)
            columns.append(computed(f"{operation}_{word}", f"{said}: {word}", of_word, "x", interval=True))
        columns.append(computed(f"{operation}_thesis", f"{said}: the thesis's", partial(printed, operation), "x"))
    runs = all_runs([*chosen, *(other for each in chosen if (other := local(each)))])
    title = "Systems against delta-rs on the local disk"
    return builder.computed_table("deltars-ratios", title, columns, chosen, runs, NOTES("deltars-ratios"))


def _cores(builder: TableBuilder) -> Table:
    """Return a table of the effect of more processors, as in the thesis: in percent of the latency with one."""
    claim_data = DeltarsClaimData(builder.measures)

    def measured(operation: str, series: Series) -> BootstrapEstimate:
        return decrease(claim_data, metrics.MEANS[operation], series.system, *DeltarsSettings.of(series).cell)[0]

    def printed(operation: str, series: Series) -> float | None:
        data, cores = DeltarsSettings.of(series).cell
        one, more = (published.of_system(series.system, operation, data, count) for count in (1, cores))
        share = published.ratio(more, one)
        return None if share is None else 100 * (1 - share)

    columns = list(HEAD)
    for operation, title in ((WRITE, "Writes: less by"), (READ, "Reads: less by")):
        columns.append(computed(operation, title, partial(measured, operation), "%", interval=True))
        columns.append(computed(f"{operation}_thesis", "The thesis's", partial(printed, operation), "%"))
    several = [each for each in metrics.in_order(builder.run_set) if DeltarsSettings.of(each).cores != 1]
    chosen = [each for each in several if not each.is_null_baseline]
    notes = [*NOTES("deltars-cores", stand_ins=NOTES("deltars")[0]), *builder.run_set.notes]
    title = "What more processors bring"
    return builder.computed_table("deltars-cores", title, columns, chosen, all_runs(chosen), notes)


def _closes(builder: TableBuilder) -> Table:
    """Return a table of write times by the number of closes that the NameNode refused."""
    mean = builder.metric("mean", metrics.REFUSED, "Refused, a write")
    chosen = [
        each for each in metrics.in_order(builder.run_set) if any(run.column("closed").any() for run in each.runs)
    ]
    rows = [
        [*head(series), mean.cell(series), refused, len(took), float(min(took)), median(took), max(took)]
        for series in chosen
        for refused, took in metrics.by_refusals(series)
    ]
    columns = (
        *HEADINGS, mean.column, Column("refused", "Refused"), Column("n", "Writes"), Column("least", "Shortest", "s"),
        Column("median", "Median", "s"), Column("most", "Longest", "s"),
    )  # fmt: skip
    title = "Writes by the closes that HDFS refused"
    return builder.table("deltars-closes", title, columns, rows, all_runs(chosen), NOTES("deltars-closes"))


def _scopes(builder: TableBuilder) -> Table:
    """Return a table of the two ways in which the thesis timed a write."""
    columns = (
        *HEAD,
        builder.metric("write", metrics.WRITE_MEAN, "The call"),
        builder.metric("with_source", metrics.WITH_SOURCE, "With its source"),
        builder.ratio("ratio", "Ratio", metrics.WITH_SOURCE, metrics.WRITE_MEAN),
    )
    chosen = [each for each in metrics.in_order(builder.run_set) if not each.is_null_baseline]
    title = "What is timed of a write"
    return builder.computed_table("deltars-scopes", title, columns, chosen, all_runs(chosen), NOTES("deltars-scopes"))


def _costs(builder: TableBuilder) -> Table:
    columns = (*HEAD, *(builder.metric(key, each) for key, each in metrics.COSTS.items()))
    title, chosen = "Costs of a complete table other than time", metrics.in_order(builder.run_set)
    return builder.computed_table("deltars-costs", title, columns, chosen, all_runs(chosen), NOTES("deltars-costs"))


def _oracle(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    for series in metrics.in_order(builder.run_set):
        for run in series.runs:
            oracle = run.manifest.oracle
            held = "holds" if oracle.verdict else f"DOES NOT HOLD: {run.manifest.marks[0]}"
            rows.append([
                *head(series), held if oracle.applicable else "nothing is kept", oracle.expected, oracle.found,
                oracle.missing, oracle.duplicated, oracle.unexpected,
                listed(list(run.record(TablesRecord).departures)) or "none", oracle.reader,
            ])  # fmt: skip
        if not series.runs:
            rows.append([*head(series), MissingCell(series.missing()), *[None] * 7])
    columns = (
        *HEADINGS, Column("verdict", "Verdict"), Column("expected", "Rows compared"),
        Column("found", "Found"), Column("missing", "Missing"), Column("doubled", "Keys more than once"),
        Column("unexpected", "Of no source"), Column("types", "Types that changed"), Column("reader", "Read by"),
    )  # fmt: skip
    notes = NOTES("deltars-oracle")
    return builder.table("deltars-oracle", "Whether tables hold what was written", columns, rows, builder.runs, notes)


def _thesis(builder: TableBuilder) -> Table:
    """Return a table of disagreements of the thesis's numbers and sentences, recomputed from its appendices."""
    rows = [["Misprint", each] for each in published.misprints()]
    hopsfs, legacy = (published.seconds(READ, each, "lineitem_sf10") for each in (published.HOPSFS, published.LEGACY))
    rows.append([
        "Latency called throughput",
        f"60M rows are read in {hopsfs:.2f} s as against {legacy:.2f} s: the latency is "
        f"{100 * (1 - hopsfs / legacy):.1f} % lower, the throughput {100 * (legacy / hopsfs - 1):.1f} % higher; the "
        "text calls 46 % and 47 % the latency",
    ])  # fmt: skip
    for operation, word in ((READ, "reading"), (published.MATERIALISE, "materialising")):
        six, sixty = (
            published.seconds(operation, published.LEGACY, each) for each in ("lineitem_sf1", "lineitem_sf10")
        )
        rows.append([
            "Rows that may not be there",
            f"on the legacy path {word} 60M rows takes {sixty:.1f} s, and 6M rows {six:.1f} s. Hudi's streamer "
            f"reads {published.LIMIT:,} messages of Kafka at most in a run unless it is set otherwise: both would be "
            "of that many rows (see deltars-limit). Nothing was counted, so that this is inferred and not shown",
        ])  # fmt: skip
    few, many = (
        published.seconds(WRITE, published.HOPSFS, data) - published.seconds(WRITE, published.LOCAL, data)
        for data in ("supplier_sf1", "supplier_sf10")
    )
    rows.append([
        "A constant",
        f"writing to HopsFS takes {few:.3f} s longer than to a local disk for 10K rows, and {many:.3f} s "
        "for 100K: what does not grow with rows is no cost of distributing them (see deltars-closes)",
    ])  # fmt: skip
    columns = (Column("what", "What"), Column("found", "Found"))
    return builder.table("deltars-thesis", "What the thesis's own tables say of it", columns, rows, ())


def _steps(builder: TableBuilder) -> Table:
    """Return the parts of a write that goes through servers, next to the two parts that the thesis prints."""
    shown = (
        builder.metric("uploaded", metrics.UPLOAD, "Upload"),
        builder.metric("materialised", metrics.MATERIALISED, "Materialised"),
        builder.metric("share", metrics.UPLOAD_SHARE, "Upload, of the write"),
    )
    rows: list[list[Cell]] = []
    chosen: list[Series] = []
    for data in metrics.tables_of(builder.run_set):
        for series in metrics.in_order(builder.run_set, data=data):
            with suppress(NotAvailable):
                parts = [each or None for each in metrics.mean_parts(series.runs).values()]
                rows.append([*head(series), *parts, *(each.cell(series) for each in shown)])
                chosen.append(series)
        for cores in published.CORES:
            if legacy := published.legacy_parts(data, cores):
                nothing: list[Cell] = [None] * (len(metrics.STEPS) + 1)
                share = 100 * legacy[0] / sum(legacy)
                rows.append([published.TITLES[published.LEGACY], data, cores, *nothing, *legacy, share])
    parted = (Column(step, title, "s") for step, title in {**metrics.STEPS, "rest": "Rest"}.items())
    columns = (*HEADINGS, *parted, *(each.column for each in shown))
    notes = NOTES("deltars-steps")
    return builder.table("deltars-steps", "What a write is made of", columns, rows, all_runs(chosen), notes)


def _limit(builder: TableBuilder) -> Table:
    """Return the legacy path's times by the rows in the table, if an application takes a limited number of messages."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in metrics.in_order(builder.run_set):
        for run in series.runs:
            limit = metrics.limit_of(run)
            if limit is not None:
                runs.append(run)
                sent, there = metrics.sent_and_there(run)
                held = f"{limit:,}" if limit else "none"
                rows.append([*head(series), sent, held, there, *_by_row(sent, there, _seconds(run))])
    for data, sent in published.ROWS.items():
        times = tuple(published.seconds(each, published.LEGACY, data) for each in LIMITED)
        there, held = min(sent, published.LIMIT), f"{published.LIMIT:,}, if it held"
        rows.append([published.TITLES[published.LEGACY], data, 1, sent, held, there, *_by_row(sent, there, times)])
    columns = (
        *HEADINGS, Column("sent", "Rows sent"), Column("limit", "Limit"), Column("there", "Rows there"),
        *(
            column
            for operation, title in LIMITED.items()
            for column in (
                Column(operation, title, "s"), Column(f"{operation}_sent", "A row sent", "µs"),
                Column(f"{operation}_there", "A row there", "µs"),
            )
        ),
    )  # fmt: skip
    notes = NOTES("deltars-limit", limit=published.LIMIT, limited=published.limited())
    return builder.table("deltars-limit", "Times by the rows that a limit leaves", columns, rows, runs, notes)


def _seconds(run: Run) -> tuple[float, ...]:
    """Return the mean seconds of materialising and of reading, even for tables that differ from their source."""
    calls = run.words("call")
    materialised = sum(float(run.column(f"{step}_ns")[calls == WRITE].mean()) for step in metrics.MATERIALISE)
    return metrics.SECONDS * materialised, metrics.SECONDS * float(run.column("elapsed_ns")[calls == READ].mean())


def _by_row(sent: int, there: int, times: tuple[float, ...]) -> list[Cell]:
    """Return each time in seconds, followed by microseconds per row sent and per row in the table."""
    return [
        cell
        for seconds in times
        for cell in (seconds, *(published.MICROSECONDS * seconds / rows if rows else None for rows in (sent, there)))
    ]
