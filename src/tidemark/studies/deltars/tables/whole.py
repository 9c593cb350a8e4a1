"""Main tables of the study: times of writing and reading a complete table, next to those that the thesis prints."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.quantities import Quantity
from tidemark.analysis.statistics import Estimate, Replicates
from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.deltars import published
from tidemark.studies.deltars.measures import MEASURES, DeltarsEvidence
from tidemark.studies.deltars.parts import find, in_order, of, tables_of
from tidemark.studies.deltars.quantities import MEANS, MEDIANS, READ_RATE, WRITE_RATE
from tidemark.studies.deltars.settings import shape_of
from tidemark.studies.deltars.window.samples import READ, WRITE

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


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the tables deltars-writes, deltars-reads, deltars-ratios and deltars-cores."""
    yield _beside(workshop, WRITE, "deltars-writes", "Writing a whole table")
    yield _beside(workshop, READ, "deltars-reads", "Reading a whole table")
    yield _ratios(workshop)
    yield _cores(workshop)


def ours(workshop: Workshop, quantity: Quantity, series: Series | None) -> Estimate | Missing:
    if series is None:
        return Missing("not asked for")
    return attempt(quantity.unit, partial(of, workshop.measures, quantity, series))


def head(series: Series) -> list[Cell]:
    data, cores = shape_of(series.mode)
    return [series.title, data, cores]


def _repetitions(series: Series, operation: str) -> Cell:
    return sum(int((run.words("call") == operation).sum()) for run in series.runs) or None


def _beside(workshop: Workshop, operation: str, name: str, title: str) -> Table:
    """Return a table with a row per system, table and number of processors; the thesis's rows follow each table's."""
    rate = WRITE_RATE if operation == WRITE else READ_RATE
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for data in tables_of(workshop.run_set):
        chosen = [each for each in in_order(workshop.run_set) if shape_of(each.mode)[0] == data]
        for series in chosen:
            runs += series.runs
            of_each = [ours(workshop, each, series) for each in (MEANS[operation], MEDIANS[operation], rate)]
            rows.append([*head(series), _repetitions(series, operation), *of_each])
        rows += _printed(operation, data)
    columns = (
        SYSTEM, DATA, CORES, REPETITIONS, Column("mean", "Mean", "s", interval=True),
        Column("median", "Median", "s", interval=True), Column("rate", "Rows", "k rows/s", interval=True),
    )  # fmt: skip
    return workshop.table(name, f"{title}, compared with the thesis", columns, rows, runs, [STAND_INS, SCOPE, LEGACY])


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


def _ratios(workshop: Workshop) -> Table:
    """Return each system's ratio to delta-rs on the local disk, and the thesis's for the corresponding pipeline."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(workshop.run_set):
        data, cores = shape_of(series.mode)
        local = find(workshop.run_set, "delta-rs-local", data, cores)
        if local is None or series is local or series.is_harness:
            continue
        runs += [*series.runs, *local.runs]
        cells: list[Cell] = []
        for operation in (WRITE, READ):
            pair = (MEANS[operation], MEDIANS[operation])
            cells += [attempt("x", partial(_ratio, workshop, quantity, series, local)) for quantity in pair]
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
    return workshop.table("deltars-ratios", "Systems against delta-rs on the local disk", columns, rows, runs, notes)


def _ratio(workshop: Workshop, quantity: Quantity, series: Series, other: Series) -> Replicates:
    first, second = (of(workshop.measures, quantity, each) for each in (series, other))
    return first.ratio(second)


def _printed_ratio(operation: str, system: str, data: str, cores: int) -> Cell:
    pipeline = published.HEIRS.get(system)
    if pipeline is None or pipeline == published.LOCAL:
        return None
    pair = [published.printed(operation, each, data, cores) for each in (pipeline, published.LOCAL)]
    return pair[0].mean / pair[1].mean if pair[0] and pair[1] else None


def _cores(workshop: Workshop) -> Table:
    """Return a table of the effect of more processors, as in the thesis: in percent of the latency with one."""
    evidence = DeltarsEvidence(workshop.measures)
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(workshop.run_set):
        data, cores = shape_of(series.mode)
        if cores == 1 or series.is_harness:
            continue
        runs += series.runs
        cells: list[Cell] = []
        for operation in (WRITE, READ):
            cells.append(attempt("%", partial(_decrease, evidence, operation, series.system, data, cores)))
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
        *workshop.run_set.notes,
    ]
    return workshop.table("deltars-cores", "What more processors bring", columns, rows, runs, notes)


def _decrease(evidence: DeltarsEvidence, operation: str, system: str, data: str, cores: int) -> Replicates:
    found, _ = MEASURES["decrease"].compute(evidence, MEANS[operation], system, data, cores)
    return found


def _printed_decrease(operation: str, system: str, data: str, cores: int) -> Cell:
    pipeline = published.HEIRS.get(system)
    pair = [published.printed(operation, pipeline, data, count) for count in (1, cores)] if pipeline else []
    return 100 * (1 - pair[1].mean / pair[0].mean) if pair and pair[0] and pair[1] else None
