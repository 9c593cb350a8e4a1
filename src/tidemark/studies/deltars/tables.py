"""Tables of the study: times of complete tables next to those that the thesis prints, their parts and their costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from tidemark.analysis.formatting import Cell, MissingCell, attempt, listed
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.deltars import published
from tidemark.studies.deltars.claims import MEASURES, DeltarsClaimData
from tidemark.studies.deltars.metrics import (
    BYTES,
    CPU,
    FIRST,
    MATERIALISE,
    MATERIALISED,
    MEANS,
    MEDIANS,
    PEAK,
    READ_RATE,
    REFUSED,
    SECONDS,
    STEPS,
    UPLOAD,
    UPLOAD_SHARE,
    WITH_SOURCE,
    WRITE_MEAN,
    WRITE_RATE,
    WRITE_SLOWEST,
    by_refusals,
    find,
    in_order,
    limit_of,
    parts,
    sent_and_there,
    tables_of,
    times,
)
from tidemark.studies.deltars.samples import READ, WRITE, TablesRecord
from tidemark.studies.deltars.settings import DeltarsSettings

DATA, CORES, REPETITIONS = Column("data", "Table"), Column("cores", "Processors"), Column("n", "Repetitions")
STAND_INS = (
    "HDFS stands in for HopsFS, whose servers are not published; TLS is off. It keeps one copy of each block, on this "
    "machine, whose processors it shares with the client: if the client has one processor, it has the others."
)
SCOPE = (
    "Our times are of the client's calls, with the rows in memory; the thesis's writes by delta-rs include reading "
    "their source (see deltars-scopes), those of the legacy path do not. Both print means with bootstrapped intervals; "
    "ours also shows the median. Nothing is flushed to the disk."
)
LEGACY = (
    "The legacy path is rebuilt of public parts: rows of pandas as messages of Avro, an application of Spark that is a "
    "process started for each write, a batch of the topic upserted by Hudi's release of today, a Flight server with "
    "DuckDB. Hopsworks itself, YARN and Hudi's streamer are not there."
)
HOW = (
    "Parts follow each other and overlap nowhere; of what goes on at once, the first of these has the time: a stage "
    "that reads the topic, a call of HDFS, another stage, the driver. Calls of HDFS are those of names, and closing "
    "files, in which a client waits until the NameNode knows the last block. What parts leave of a write is its "
    "client's own: for delta-rs behind a topic its whole write."
)
LIMITED = {published.MATERIALISE: "Materialised", published.READ: "Read"}
COSTS = ((CPU, "cpu"), (PEAK, "memory"), (BYTES, "bytes"), (FIRST, "first"), (WRITE_SLOWEST, "slowest"))


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the tables of times and ratios, of closes, scopes, costs and verdicts, and of the thesis itself."""
    yield _times(builder, WRITE, "deltars-writes", "Writing a whole table")
    yield _times(builder, READ, "deltars-reads", "Reading a whole table")
    for table in (_ratios, _cores, _closes, _scopes, _costs, _oracle, _thesis, _steps, _limit):
        yield table(builder)


def ours(builder: TableBuilder, quantity: Metric, series: Series | None) -> Estimate | MissingCell:
    if series is None:
        return MissingCell("not asked for")
    return attempt(quantity.unit, partial(builder.measures.value, quantity, series))


def head(series: Series) -> list[Cell]:
    data, cores = DeltarsSettings.of(series).cell
    return [series.title, data, cores]


def _repetitions(series: Series, operation: str) -> Cell:
    return sum(int((run.words("call") == operation).sum()) for run in series.runs) or None


def _times(builder: TableBuilder, operation: str, name: str, title: str) -> Table:
    """Return a table with a row per system, table and number of processors; the thesis's rows follow each table's."""
    rate = WRITE_RATE if operation == WRITE else READ_RATE
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for data in tables_of(builder.run_set):
        chosen = [each for each in in_order(builder.run_set) if DeltarsSettings.of(each).data == data]
        for series in chosen:
            runs += series.runs
            of_each = [ours(builder, each, series) for each in (MEANS[operation], MEDIANS[operation], rate)]
            rows.append([*head(series), _repetitions(series, operation), *of_each])
        rows += _printed(operation, data)
    columns = (
        SYSTEM, DATA, CORES, REPETITIONS, Column("mean", "Mean", "s", interval=True),
        Column("median", "Median", "s", interval=True), Column("rate", "Rows", "k rows/s", interval=True),
    )  # fmt: skip
    return builder.table(name, f"{title}, compared with the thesis", columns, rows, runs, [STAND_INS, SCOPE, LEGACY])


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
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(builder.run_set):
        data, cores = DeltarsSettings.of(series).cell
        local = find(builder.run_set, "delta-rs-local", data, cores)
        if local is None or series is local or series.is_null_baseline:
            continue
        runs += [*series.runs, *local.runs]
        cells: list[Cell] = []
        for operation in (WRITE, READ):
            pair = (MEANS[operation], MEDIANS[operation])
            cells += [attempt("x", partial(_ratio, builder, quantity, series, local)) for quantity in pair]
            cells.append(_printed_ratio(operation, series.system, data, cores))
        rows.append([*head(series), *cells])
    columns = (
        SYSTEM, DATA, CORES,
        *(
            column
            for operation in (WRITE, READ)
            for column in (
                Column(f"{operation}_means", f"{operation.capitalize()}s: means", "x", interval=True),
                Column(f"{operation}_medians", f"{operation.capitalize()}s: medians", "x", interval=True),
                Column(f"{operation}_thesis", f"{operation.capitalize()}s: the thesis's", "x"),
            )
        ),
    )  # fmt: skip
    notes = ["Above 1: longer than delta-rs on the local disk takes for the same table.", STAND_INS]
    return builder.table("deltars-ratios", "Systems against delta-rs on the local disk", columns, rows, runs, notes)


def _ratio(builder: TableBuilder, quantity: Metric, series: Series, other: Series) -> BootstrapEstimate:
    first, second = (builder.measures.value(quantity, each) for each in (series, other))
    return first.ratio(second)


def _printed_ratio(operation: str, system: str, data: str, cores: int) -> Cell:
    pipeline = published.HEIRS.get(system)
    if pipeline is None or pipeline == published.LOCAL:
        return None
    pair = [published.printed(operation, each, data, cores) for each in (pipeline, published.LOCAL)]
    return pair[0].mean / pair[1].mean if pair[0] and pair[1] else None


def _cores(builder: TableBuilder) -> Table:
    """Return a table of the effect of more processors, as in the thesis: in percent of the latency with one."""
    claim_data = DeltarsClaimData(builder.measures)
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(builder.run_set):
        data, cores = DeltarsSettings.of(series).cell
        if cores == 1 or series.is_null_baseline:
            continue
        runs += series.runs
        cells: list[Cell] = []
        for operation in (WRITE, READ):
            cells.append(attempt("%", partial(_decrease, claim_data, operation, series.system, data, cores)))
            cells.append(_printed_decrease(operation, series.system, data, cores))
        rows.append([*head(series), *cells])
    columns = (
        SYSTEM, DATA, CORES, Column("write", "Writes: less by", "%", interval=True),
        Column("write_thesis", "The thesis's", "%"), Column("read", "Reads: less by", "%", interval=True),
        Column("read_thesis", "The thesis's", "%"),
    )  # fmt: skip
    notes = [
        "Of means: by how many percent the latency is below that with one processor; below 0 it is longer.",
        "The client is bound to its processors before its libraries are loaded. " + STAND_INS,
        *builder.run_set.notes,
    ]
    return builder.table("deltars-cores", "What more processors bring", columns, rows, runs, notes)


def _decrease(claim_data: DeltarsClaimData, operation: str, system: str, data: str, cores: int) -> BootstrapEstimate:
    found, _ = MEASURES["decrease"].compute(claim_data, MEANS[operation], system, data, cores)
    return found


def _printed_decrease(operation: str, system: str, data: str, cores: int) -> Cell:
    pipeline = published.HEIRS.get(system)
    pair = [published.printed(operation, pipeline, data, count) for count in (1, cores)] if pipeline else []
    return 100 * (1 - pair[1].mean / pair[0].mean) if pair and pair[0] and pair[1] else None


def _closes(builder: TableBuilder) -> Table:
    """Return a table of write times by the number of closes that the NameNode refused."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(builder.run_set):
        if not any(run.column("closed").any() for run in series.runs):
            continue
        runs += series.runs
        whole = ours(builder, REFUSED, series)
        for refused, took in by_refusals(series):
            rows.append([*head(series), whole, refused, len(took), float(min(took)), median(took), max(took)])
    columns = (
        SYSTEM, DATA, CORES, Column("mean", "Refused, a write", interval=True), Column("refused", "Refused"),
        Column("n", "Writes"), Column("least", "Shortest", "s"), Column("median", "Median", "s"),
        Column("most", "Longest", "s"),
    )  # fmt: skip
    notes = [
        "A client that closes a file asks the NameNode to complete it, and has to ask again as long as the "
        "DataNode has not reported its last block. delta-rs sleeps half a second before it does, Hadoop's own client, "
        "which Spark has, 0.4 s, whatever the table's size. A commit of Delta's closes a file of data and one of the "
        "log, one of Hudi's some twenty. Counted in the NameNode's log.",
        "The thesis prints 1.2 s more for a small table on HopsFS than on a local disk.",
    ]
    return builder.table("deltars-closes", "Writes by the closes that HDFS refused", columns, rows, runs, notes)


def _scopes(builder: TableBuilder) -> Table:
    """Return a table of the two ways in which the thesis timed a write."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(builder.run_set):
        if series.is_null_baseline:
            continue
        runs += series.runs
        pair = [ours(builder, each, series) for each in (WRITE_MEAN, WITH_SOURCE)]
        rows.append([*head(series), *pair, attempt("x", partial(_scope_ratio, builder, series))])
    columns = (
        SYSTEM, DATA, CORES, Column("write", "The call", "s", interval=True),
        Column("with_source", "With its source", "s", interval=True), Column("ratio", "Ratio", "x", interval=True),
    )  # fmt: skip
    notes = [
        "With its source: a Parquet file is read before the call, in the same window, as in the statement that the "
        "thesis timed for delta-rs. For the legacy path it was read before the clock. It takes both ways for equal."
    ]
    return builder.table("deltars-scopes", "What is timed of a write", columns, rows, runs, notes)


def _scope_ratio(builder: TableBuilder, series: Series) -> BootstrapEstimate:
    return builder.measures.value(WITH_SOURCE, series).ratio(builder.measures.value(WRITE_MEAN, series))


def _costs(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(builder.run_set):
        runs += series.runs
        rows.append([*head(series), *(ours(builder, each, series) for each, _ in COSTS)])
    columns = (SYSTEM, DATA, CORES, *(Column(key, each.title, each.unit, interval=True) for each, key in COSTS))
    notes = ["Memory: resident, of the client's process in any of its operations, with what it shares with others."]
    return builder.table("deltars-costs", "Costs of a complete table other than time", columns, rows, runs, notes)


def _oracle(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(builder.run_set):
        for run in series.runs:
            runs.append(run)
            oracle = run.manifest.oracle
            held: Cell = "holds" if oracle.verdict else f"DOES NOT HOLD: {run.manifest.marks[0]}"
            departures = listed(list(run.record(TablesRecord).departures)) or "none"
            counts: list[Cell] = [oracle.expected, oracle.found, oracle.missing, oracle.duplicated, oracle.unexpected]
            rows.append([*head(series), held if oracle.applicable else "nothing is kept", *counts, departures,
                         oracle.reader])  # fmt: skip
        if not series.runs:
            rows.append([*head(series), MissingCell(series.missing()), *[None] * 7])
    columns = (
        SYSTEM, DATA, CORES, Column("verdict", "Verdict"), Column("expected", "Rows compared"),
        Column("found", "Found"), Column("missing", "Missing"), Column("doubled", "Keys more than once"),
        Column("unexpected", "Of no source"), Column("types", "Types that changed"), Column("reader", "Read by"),
    )  # fmt: skip
    notes = [
        "Each table is compared with the Parquet file that it was made of, by another engine than wrote it, and so is "
        "what the client read last: rows, keys, and an order-free checksum over all columns. Of large tables the first "
        "and the last; of the others between, rows by the log, whose files must exist in the sizes that it names. The "
        "thesis counted nothing."
    ]
    return builder.table("deltars-oracle", "Whether tables hold what was written", columns, rows, runs, notes)


def _thesis(builder: TableBuilder) -> Table:
    """Return a table of disagreements of the thesis's numbers and sentences, recomputed from its appendices."""
    rows: list[list[Cell]] = [["Misprint", each] for each in published.misprints()]
    hopsfs, legacy = (published.seconds(READ, each, "lineitem_sf10") for each in (published.HOPSFS, published.LEGACY))
    rows.append([
        "Latency called throughput",
        f"60M rows are read in {hopsfs:.2f} s as against {legacy:.2f} s: the latency is "
        f"{100 * (1 - hopsfs / legacy):.1f} % lower, the throughput {100 * (legacy / hopsfs - 1):.1f} % higher; the "
        "text calls 46 % and 47 % the latency",
    ])  # fmt: skip
    for operation, word in ((READ, "reading"), (published.MATERIALISE, "materialising")):
        pair = [published.seconds(operation, published.LEGACY, each) for each in ("lineitem_sf1", "lineitem_sf10")]
        rows.append([
            "Rows that may not be there",
            f"on the legacy path {word} 60M rows takes {pair[1]:.1f} s, and 6M rows {pair[0]:.1f} s. Hudi's streamer "
            f"reads {published.LIMIT:,} messages of Kafka at most in a run unless it is set otherwise: both would be "
            "of that many rows (see deltars-limit). Nothing was counted, so that this is inferred and not shown",
        ])  # fmt: skip
    floors = [
        published.seconds(WRITE, published.HOPSFS, data) - published.seconds(WRITE, published.LOCAL, data)
        for data in ("supplier_sf1", "supplier_sf10")
    ]
    rows.append([
        "A constant",
        f"writing to HopsFS takes {floors[0]:.3f} s longer than to a local disk for 10K rows, and {floors[1]:.3f} s "
        "for 100K: what does not grow with rows is no cost of distributing them (see deltars-closes)",
    ])  # fmt: skip
    columns = (Column("what", "What"), Column("found", "Found"))
    return builder.table("deltars-thesis", "What the thesis's own tables say of it", columns, rows, [], [])


def _steps(builder: TableBuilder) -> Table:
    """Return the parts of a write that goes through servers, next to the two parts that the thesis prints."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for data in tables_of(builder.run_set):
        for series in in_order(builder.run_set):
            if DeltarsSettings.of(series).data != data:
                continue
            try:
                by_step = [parts(run) for run in series.runs]
                whole = sum(float(times(run, WRITE).mean()) for run in series.runs)
            except NotAvailable:
                continue
            if not by_step:
                continue
            runs += series.runs
            means = [sum(float(each[step].mean()) for each in by_step) for step in STEPS]
            cells: list[Cell] = [each / len(by_step) or None for each in (*means, whole - sum(means))]
            of_each = [ours(builder, each, series) for each in (UPLOAD, MATERIALISED, UPLOAD_SHARE)]
            rows.append([*head(series), *cells, *of_each])
        rows += _printed_steps(data)
    columns = (
        SYSTEM, DATA, CORES, *(Column(step, title, "s") for step, title in STEPS.items()), Column("rest", "Rest", "s"),
        Column("uploaded", "Upload", "s", interval=True), Column("materialised", "Materialised", "s", interval=True),
        Column("share", "Upload, of the write", "%", interval=True),
    )  # fmt: skip
    return builder.table("deltars-steps", "What a write is made of", columns, rows, runs, [HOW, LEGACY, STAND_INS])


def _printed_steps(data: str) -> Iterator[list[Cell]]:
    for cores in published.CORES:
        pair = [
            published.printed(each, published.LEGACY, data, cores) for each in (published.UPLOAD, published.MATERIALISE)
        ]
        if pair[0] and pair[1]:
            upload, materialise = pair[0].mean, pair[1].mean
            nothing: list[Cell] = [None] * (len(STEPS) + 1)
            share = 100 * upload / (upload + materialise)
            yield [published.TITLES[published.LEGACY], data, cores, *nothing, upload, materialise, share]


def _limit(builder: TableBuilder) -> Table:
    """Return the legacy path's times by the rows in the table, if an application takes a limited number of messages."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(builder.run_set):
        for run in series.runs:
            limit = limit_of(run)
            if limit is not None:
                runs.append(run)
                sent, there = sent_and_there(run)
                held = f"{limit:,}" if limit else "none"
                rows.append([*head(series), sent, held, there, *_by_row(sent, there, _seconds(run))])
    rows += _printed_limit()
    columns = (
        SYSTEM, DATA, CORES, Column("sent", "Rows sent"), Column("limit", "Limit"), Column("there", "Rows there"),
        *(
            column
            for operation, title in LIMITED.items()
            for column in (
                Column(operation, title, "s"), Column(f"{operation}_sent", "A row sent", "µs"),
                Column(f"{operation}_there", "A row there", "µs"),
            )
        ),
    )  # fmt: skip
    notes = [
        f"Hudi's streamer takes {published.LIMIT:,} messages of a topic in a run unless it is set otherwise. The "
        "thesis does not mention it and counted no rows: its tables are shown with the rows that such a limit would "
        "leave.",
        published.limited(),
        "Tidemark's rows are counted: those that were sent, and those that the client read back. A table that lacks "
        "rows fails the oracle, and its times are shown nowhere else.",
        LEGACY,
    ]
    return builder.table("deltars-limit", "Times by the rows that a limit leaves", columns, rows, runs, notes)


def _seconds(run: Run) -> tuple[float, ...]:
    """Return the mean seconds of materialising and of reading, even for tables that differ from their source."""
    calls = run.words("call")
    materialised = sum(float(run.column(f"{step}_ns")[calls == WRITE].mean()) for step in MATERIALISE)
    return SECONDS * materialised, SECONDS * float(run.column("elapsed_ns")[calls == READ].mean())


def _by_row(sent: int, there: int, times: tuple[float, ...]) -> list[Cell]:
    """Return each time in seconds, followed by microseconds per row sent and per row in the table."""
    return [
        cell
        for seconds in times
        for cell in (seconds, *(published.MICROSECONDS * seconds / rows if rows else None for rows in (sent, there)))
    ]


def _printed_limit() -> Iterator[list[Cell]]:
    for data, sent in published.ROWS.items():
        times = tuple(published.seconds(each, published.LEGACY, data) for each in LIMITED)
        there = min(sent, published.LIMIT)
        held = f"{published.LIMIT:,}, if it held"
        yield [published.TITLES[published.LEGACY], data, 1, sent, held, there, *_by_row(sent, there, times)]
