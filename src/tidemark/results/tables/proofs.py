"""Tables on the reliability of runs: cold state, other work on the machine, and number of attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from tidemark.analysis.formatting import Cell, MissingCell
from tidemark.analysis.metrics import NotAvailable
from tidemark.machine.cold import COLD_SHARE, HOT_SHARE
from tidemark.results.tables import table
from tidemark.results.tables.table import Column, ComputedColumn, Row, Table, TableBuilder, computed, part_column
from tidemark.runs.circumstances import Interference
from tidemark.runs.manifest import Manifest
from tidemark.runs.outcome import KILLED
from tidemark.runs.proofs import ColdProof
from tidemark.runs.run import STATES, Run
from tidemark.runs.runset import Kept, Repeat, Series

NOTES = table.notes_of(__file__)
MB = 1e6
DIGITS = 4  # after the point, of cores and seconds: clocks and ticks are no finer
NOT_KNOWN = MissingCell("run files of version 1 do not record it")


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the tables cold-proof, interference and attempts."""
    yield _cold_proof(builder)
    yield _interference(builder)
    yield _attempts(builder)


def _in_order(builder: TableBuilder) -> list[tuple[Repeat, Series]]:
    """Return every repeat with its series, in the order of measurement."""
    repeats = [(repeat, series) for series in builder.run_set.series for repeat in series.repeats]
    return sorted(repeats, key=lambda pair: pair[0].position)


def _rows(builder: TableBuilder) -> list[Row[Run]]:
    """Return a row for each run that counts, in the order of measurement."""
    return [Row(series, run) for repeat, series in _in_order(builder) for run in repeat.runs]


def _repeat(row: Row[Run]) -> Repeat:
    return next(each for each in row.series.repeats if row.shown in each.runs)


def _resident(proof: ColdProof) -> Cell:
    share = proof.resident_share
    return MissingCell(proof.reason or "there was nothing to look at") if share is None else 100 * share


def _cold_proof(builder: TableBuilder) -> Table:
    def recorded(key: str, title: str, cell: Callable[[Manifest], Cell], unit: str = "") -> ComputedColumn[Row[Run]]:
        return part_column(key, title, lambda run: cell(run.manifest), unit)

    def first_write(m: Manifest) -> Cell:
        return None if m.first_write_ns is None else m.first_write_ns / 1e6

    def steady(m: Manifest) -> Cell:
        return None if m.warm_up is None else "yes" if m.warm_up.steady else "NO"

    columns: list[ComputedColumn[Row[Run]]] = [
        computed("position", "Position", lambda row: _repeat(row).position),
        *table.RUN_OF_SWEEPS,
        part_column("state", "Called", lambda run: run.state),
        recorded("method", "Method", lambda m: m.cold_proof.method),
        recorded("verdict", "Before the servers start", lambda m: m.cold_proof.verdict),
        recorded("resident", "In the page cache", lambda m: _resident(m.cold_proof), "%"),
        recorded("opening", "When the window opens", lambda m: m.opening.verdict if m.opening else NOT_KNOWN),
        recorded("opening_resident", "In the page cache", lambda m: _resident(m.opening) if m.opening else None, "%"),
        recorded("first_write", "First write", first_write, "ms"),
        recorded("warm_up", "Warm-up", lambda m: m.warm_up.seconds if m.warm_up else None, "s"),
        recorded("steady", "Steady after it", steady),
        recorded("stretches", "Stretches", lambda m: m.stretches if m.stretches > 1 else None),
        recorded("uptime", "Uptime", lambda m: m.cold_proof.uptime_s, "s"),
        recorded("boot", "Boot id", lambda m: m.cold_proof.boot_id[:8]),
        recorded("cpu_mhz", "CPU clock", lambda m: m.cold_proof.cpu_mhz, "MHz"),
        recorded("temperature", "Temperature", lambda m: m.cold_proof.temperature_c, "°C"),
        recorded("history", "Before it", lambda m: m.history),
        recorded("marks", "Marks", lambda m: "; ".join(m.marks)),
    ]
    notes = NOTES("cold-proof", cold=100 * COLD_SHARE, hot=100 * HOT_SHARE, states=STATES)
    title = "State of each run, in the order of the series"
    return builder.computed_table("cold-proof", title, columns, _rows(builder), builder.run_set.runs, notes)


def _interference(builder: TableBuilder) -> Table:
    def found(key: str, title: str, value: Callable[[Interference], Cell], unit: str = "") -> ComputedColumn[Row[Run]]:
        def cell(run: Run) -> Cell:
            seen = run.manifest.interference
            return value(seen) if seen is not None else NOT_KNOWN if key == "foreign" else None

        return part_column(key, title, cell, unit)

    def rounded(counted: float | None) -> float | None:
        return None if counted is None else round(counted, DIGITS) + 0.0  # no -0.0

    def again(row: Row[Run]) -> str | None:
        numbers = {each.number for each in _repeat(row).disturbed}
        return "yes" if row.shown and row.shown.number in numbers else None

    columns: list[ComputedColumn[Row[Run]]] = [
        *table.RUN_OF_SWEEPS,
        found("foreign", "Foreign", lambda seen: rounded(seen.foreign_cores), "cores"),
        found("steal", "Stolen", lambda seen: rounded(seen.steal_cores), "cores"),
        found("kernel", "Kernel's threads", lambda seen: rounded(seen.kernel_cores), "cores"),
        found("suspended", "Suspended", lambda seen: rounded(seen.suspended_seconds), "s"),
        found("clock_step", "Clock set by", lambda seen: rounded(seen.clock_step_seconds), "s"),
        found(
            "foreign_disk", "Others wrote", lambda i: None if i.foreign_bytes is None else i.foreign_bytes / MB, "MB"
        ),
        found("disturbed", "DISTURBED by", lambda seen: "; ".join(seen.disturbed) or None),
        computed("again", "Measured again", again),
    ]
    title, rows = "Other work on the machine during each run", _rows(builder)
    return builder.computed_table("interference", title, columns, rows, builder.run_set.runs, NOTES("interference"))


def _attempts(builder: TableBuilder) -> Table:
    leading = {each.quantities.leading for each in builder.parts or (builder.measures,)}
    first = builder.quantities.leading
    rows: list[list[Cell]] = []
    for repeat, series in _in_order(builder):
        number = repeat.number if len(series.repeats) > 1 else None
        identity: list[Cell] = [series.title, series.mode_title, series.sweep, number]
        for attempt in repeat.failures:
            code = None if attempt.status == KILLED else attempt.exit_code  # older run files have 0 for killed attempts
            ending: list[Cell] = [attempt.status, attempt.reason or "no reason is known", code]
            which = f"{attempt.number} of {len(repeat.attempts)}"
            rows.append([*identity, which, None, attempt.started_at, attempt.ended_at, *ending, *[None] * 4])
        rows += [[*identity, *_disturbed(builder, repeat, each)] for each in repeat.disturbed]
    columns: tuple[Column, ...] = (
        *table.OF_SWEEPS,
        Column("attempt", "Attempt"),
        table.RUN,
        Column("started", "Started"),
        Column("ended", "Ended"),
        Column("status", "Outcome"),
        Column("reason", "Reason"),
        Column("exit_code", "Exit code"),
        Column("kept", "Kept in results/"),
    )
    if len(leading) > 1:
        columns += (Column("quantity", "Quantity"), Column("median", "Disturbed"), Column("median_counted", "Counted"))
    else:
        columns += (
            Column("median", f"{first.title}, disturbed", first.beside_title),
            Column("median_counted", f"{first.title}, counted", first.beside_title),
        )
        rows = [[*row[:-3], *row[-2:]] for row in rows]
    notes = NOTES("attempts")
    if not rows:
        known = any(repeat.attempts for repeat in builder.run_set.repeats)
        notes.append("There is none." if known else "Run files of version 1 do not record attempts.")
    title = "Failed attempts and disturbed runs"
    runs = [*builder.run_set.runs, *builder.run_set.kept_runs]
    return builder.table("attempts", title, columns, rows, runs, notes)


def _disturbed(builder: TableBuilder, repeat: Repeat, each: Kept) -> list[Cell]:
    counts = next((run for run in repeat.runs if run.number == each.number), None)
    return [
        _attempt_of(repeat, each),
        each.number,
        each.run.manifest.started_at if each.run else None,
        None,
        "disturbed, measured again",
        "; ".join(each.reasons),
        None,
        each.directory.relative_to(builder.run_set.results).as_posix(),
        _quantity(builder, counts or each.run),
        _leading(builder, each.run) if each.run else MissingCell("its files no longer exist"),
        _leading(builder, counts) if counts else None,
    ]


def _quantity(builder: TableBuilder, run: Run | None) -> Cell:
    """Return the title of the leading quantity of the run's study, with its unit."""
    if run is None:
        return None
    leading = builder.measures_of(run).quantities.leading
    return f"{leading.title} [{leading.beside_title}]" if leading.beside_title else leading.title


def _attempt_of(repeat: Repeat, each: Kept) -> Cell:
    """Return the attempt at the series in which a run was disturbed: the last attempt that started before it."""
    if each.run is None:
        return None
    began = datetime.fromisoformat(each.run.manifest.started_at)
    before = [attempt.number for attempt in repeat.attempts if datetime.fromisoformat(attempt.started_at) <= began]
    return f"{before[-1]} of {len(repeat.attempts)}" if before else None


def _leading(builder: TableBuilder, run: Run) -> Cell:
    measures = builder.measures_of(run)
    try:
        return measures.of_run(measures.quantities.leading, run).value
    except NotAvailable as absent:
        return MissingCell(str(absent))
