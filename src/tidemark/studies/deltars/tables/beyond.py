"""Further tables of the study: refused closes, timing scopes, costs, verdicts on tables, the thesis's own errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tidemark.analysis.statistics import Replicates
from tidemark.analysis.words import Cell, Missing, attempt, listed
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.deltars import published
from tidemark.studies.deltars.parts import in_order, of
from tidemark.studies.deltars.quantities import (
    BYTES,
    CPU,
    FIRST,
    PEAK,
    REFUSED,
    WITH_SOURCE,
    WRITE_MEAN,
    WRITE_SLOWEST,
    found,
)
from tidemark.studies.deltars.tables.whole import CORES, DATA, head, ours
from tidemark.studies.deltars.window.samples import READ, WRITE


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the tables deltars-closes, deltars-scopes, deltars-costs, deltars-oracle and deltars-thesis."""
    yield _closes(workshop)
    yield _scopes(workshop)
    yield _costs(workshop)
    yield _oracle(workshop)
    yield _thesis(workshop)


def _closes(workshop: Workshop) -> Table:
    """Return a table of write times by the number of closes that the NameNode refused."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(workshop.run_set):
        if not any(run.column("closed").any() for run in series.runs):
            continue
        runs += series.runs
        whole = ours(workshop, REFUSED, series)
        for refused, times in _by_refusals(series):
            rows.append([*head(series), whole, refused, len(times), float(min(times)), _middle(times), max(times)])
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
    return workshop.table("deltars-closes", "Writes by the closes that HDFS refused", columns, rows, runs, notes)


def _by_refusals(series: Series) -> Iterator[tuple[int, Sequence[float]]]:
    found: dict[int, list[float]] = {}
    for run in series.runs:
        writes = run.words("call") == WRITE
        pairs = zip(run.column("refused")[writes], run.column("elapsed_ns")[writes], strict=True)
        for refused, elapsed_ns in pairs:
            found.setdefault(int(refused), []).append(float(elapsed_ns) / 1e9)
    yield from sorted(found.items())


def _middle(times: Sequence[float]) -> float:
    ordered = sorted(times)
    return (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2


def _scopes(workshop: Workshop) -> Table:
    """Return a table of the two ways in which the thesis timed a write."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(workshop.run_set):
        if series.is_harness:
            continue
        runs += series.runs
        pair = [ours(workshop, each, series) for each in (WRITE_MEAN, WITH_SOURCE)]
        rows.append([*head(series), *pair, attempt("x", partial(_scope_ratio, workshop, series))])
    columns = (
        SYSTEM, DATA, CORES, Column("write", "The call", "s", interval=True),
        Column("with_source", "With its source", "s", interval=True), Column("ratio", "Ratio", "x", interval=True),
    )  # fmt: skip
    notes = [
        "With its source: a Parquet file is read before the call, in the same window, as in the statement that the "
        "thesis timed for delta-rs. For the legacy path it was read before the clock. It takes both ways for equal."
    ]
    return workshop.table("deltars-scopes", "What is timed of a write", columns, rows, runs, notes)


def _scope_ratio(workshop: Workshop, series: Series) -> Replicates:
    return of(workshop.measures, WITH_SOURCE, series).ratio(of(workshop.measures, WRITE_MEAN, series))


COSTS = ((CPU, "cpu"), (PEAK, "memory"), (BYTES, "bytes"), (FIRST, "first"), (WRITE_SLOWEST, "slowest"))


def _costs(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(workshop.run_set):
        runs += series.runs
        rows.append([*head(series), *(ours(workshop, each, series) for each, _ in COSTS)])
    columns = (SYSTEM, DATA, CORES, *(Column(key, each.title, each.unit, interval=True) for each, key in COSTS))
    notes = ["Memory: resident, of the client's process in any of its operations, with what it shares with others."]
    return workshop.table("deltars-costs", "Costs of a complete table other than time", columns, rows, runs, notes)


def _oracle(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(workshop.run_set):
        for run in series.runs:
            runs.append(run)
            oracle, told = run.manifest.oracle, found(run)
            held: Cell = "holds" if oracle.verdict else f"DOES NOT HOLD: {run.manifest.marks[0]}"
            departures = listed(list(told["departures"])) or "none"
            counts: list[Cell] = [oracle.expected, oracle.found, oracle.missing, oracle.duplicated, oracle.unexpected]
            rows.append([*head(series), held if oracle.applicable else "nothing is kept", *counts, departures,
                         oracle.reader])  # fmt: skip
        if not series.runs:
            rows.append([*head(series), Missing(series.missing()), *[None] * 7])
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
    return workshop.table("deltars-oracle", "Whether tables hold what was written", columns, rows, runs, notes)


def _thesis(workshop: Workshop) -> Table:
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
    return workshop.table("deltars-thesis", "What the thesis's own tables say of it", columns, rows, [], [])
