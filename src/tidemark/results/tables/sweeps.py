"""Tables of sweeps: headline quantities of every series, compared with the series that differs only in the axis.

Also the table "Then and now": each system under one software stack, compared with the same under another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tidemark.analysis.formatting import Cell, MissingCell, attempt, comparison, listed
from tidemark.analysis.metrics import Metric, require
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.tables.table import IDENTITY, Column, ComputedColumn, Table, TableBuilder, computed, notes_of
from tidemark.runs.run import Run
from tidemark.runs.runset import ASSUMED, RunSet, Series
from tidemark.runs.serde import spelt
from tidemark.runs.spec import MAIN
from tidemark.runs.views import counterparts

NOTES = notes_of(__file__)

HOT, COLD = "hot runs", "run 0"

type Pair = tuple[Series, Series]  # of one system under two stacks


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield one table for each sweep with series, named after it, such as sweep-threads or sweep-batch-size."""
    for sweep in dict.fromkeys(series.sweep for series in builder.run_set.series):
        axis = builder.run_set.axis_of(sweep)
        if sweep != MAIN and axis is not None:
            yield _table(builder, sweep, axis)


def value_of(series: Series, axis: str) -> str | None:
    """Return the value of the axis in a series, as spelled in the configuration; None without runs or such a key."""
    if not series.runs:
        return None
    config = dict(series.runs[0].manifest.config)
    return spelt(config[axis]) if axis in config else None


def baseline(run_set: RunSet, series: Series, axis: str) -> Series | None:
    """Return the series with runs that differs only in the axis, from the main or else the same sweep; None if none."""
    main = run_set.config.spelt(axis)
    for sweep in (MAIN, series.sweep):
        for other in run_set.select(mode=series.mode, sweep=sweep, stack=series.stack):
            same = other.system == series.system and (axis == "batch_size" or other.batch_size == series.batch_size)
            if same and other.runs and (sweep == MAIN or value_of(other, axis) == main):
                return other
    return None


def compared(builder: TableBuilder, quantity: Metric, series: Series, base: Series | None) -> BootstrapEstimate:
    """Return `quantity` of `series` over that of `base`: of hot runs if both have them, else of run 0."""
    base = require(base, "the main configuration has no run to compare with")
    return builder.measures.counted_ratio(quantity, series, base)


def _table(builder: TableBuilder, sweep: str, axis: str) -> Table:
    run_set = builder.run_set
    runs: list[Run] = []
    series = [each for stack in run_set.stacks for each in run_set.select(sweep=sweep, stack=stack)]
    rows = [_row(builder, each, axis, runs) for each in series]
    words = axis.replace("_", " ")
    columns = [
        *IDENTITY,
        Column("stack", "Stack"),
        Column("value", words.capitalize()),
        Column("runs", "Runs"),
        Column("window", "Window", "s"),
        *(Column(each.key, each.title, each.beside_title, interval=True) for each in builder.quantities.headline),
        Column("main", f"{words.capitalize()} compared with"),
        Column("window_main", "Window compared with", "s"),
        Column("compared", "Runs compared"),
        *(Column(f"{each.key}_ratio", f"{each.title}, ratio", interval=True) for each in _with_ratios(builder)),
        *(Column(f"{each.key}_verdict", f"{each.subjects} are") for each in _with_verdicts(builder)),
    ]
    title = f"Sweep '{sweep}': results by {words}"
    return builder.table(f"sweep-{sweep}", title, columns, rows, runs, _notes(builder))


def _with_ratios(builder: TableBuilder) -> list[Metric]:
    return [quantity for quantity in builder.quantities.headline if not quantity.signed]


def _with_verdicts(builder: TableBuilder) -> list[Metric]:
    return [quantity for quantity in _with_ratios(builder) if quantity.subjects]


def _notes(builder: TableBuilder) -> list[str]:
    better: dict[str, list[str]] = {}
    for quantity in builder.quantities.headline:
        if quantity.better is not None:
            better.setdefault(quantity.better, []).append(quantity.noun)
    spelt = "; ".join(f"{which} is better: {listed(names)}" for which, names in better.items())
    spoken = listed([quantity.noun for quantity in _with_verdicts(builder)])
    return [
        "Ratios compare each series with that of the main configuration, or, if that was not measured, with the series "
        f"of the sweep that has its value. Verdicts follow from the interval of the ratio of {spoken}. If either "
        f"series has a single run, run 0 is compared with run 0; intervals of what was measured once {ASSUMED}.",
        *([f"{spelt[0].upper()}{spelt[1:]}."] if spelt else []),
        *builder.run_set.notes,
    ]


def _row(builder: TableBuilder, series: Series, axis: str, runs: list[Run]) -> list[Cell]:
    row: list[Cell] = [series.title, series.mode_title, series.stack]
    if not series.runs:
        return [*row, MissingCell(series.missing())]
    row += [value_of(series, axis), HOT if series.hot_runs else COLD, series.runs[0].manifest.window_s]
    row += [attempt(each.unit, partial(builder.measures.value, each, series)) for each in builder.quantities.headline]
    runs += series.hot_runs or series.runs
    base = baseline(builder.run_set, series, axis)
    if base is series:
        return [*row, None, None, "the baseline"]
    if base is None:
        row += [None, None, None]
    else:
        hot = bool(base.hot_runs and series.hot_runs)
        runs += base.hot_runs if hot else [run for each in (series, base) for run in each.runs[:1]]
        row += [value_of(base, axis), base.runs[0].manifest.window_s, HOT if hot else COLD]
    found = [attempt("", partial(compared, builder, each, series, base)) for each in _with_ratios(builder)]
    verdicts = _with_verdicts(builder)
    lines = [comparison(partial(compared, builder, each, series, base), *each.words) for each in verdicts]
    return [*row, *found, *lines]


def then_and_now(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table then-and-now, if more than one stack was measured.

    It has values of the leading and the signed headline quantities, and ratios of all but the signed ones.
    """
    if len(builder.run_set.stacks) < 2:
        return
    measures, leading = builder.measures, builder.quantities.leading

    def value(quantity: Metric, place: int, pair: Pair) -> Cell:
        return attempt(quantity.unit, partial(measures.value, quantity, pair[place]))

    def ratio(quantity: Metric, pair: Pair) -> BootstrapEstimate:
        return measures.counted_ratio(quantity, pair[1], pair[0])

    def verdict(pair: Pair) -> Cell:
        return comparison(partial(ratio, leading, pair), *leading.words)

    columns: list[ComputedColumn[Pair]] = [
        computed("system", "System", lambda pair: pair[0].title),
        computed("mode", "Mode", lambda pair: pair[0].mode_title),
        computed("then", "Then", lambda pair: pair[0].stack),
        computed("now", "Now", lambda pair: pair[1].stack),
    ]
    for each in builder.quantities.headline:
        key, title, unit = each.key, each.title, each.beside_title
        if each == leading or each.signed:
            columns += [
                computed(f"{key}_{when}", f"{title}, {when}", partial(value, each, place), unit, interval=True)
                for place, when in enumerate(("then", "now"))
            ]
        if not each.signed:
            columns.append(computed(f"{key}_ratio", f"{title}, now / then", partial(ratio, each), interval=True))
    columns.append(computed("verdict", f"{leading.subjects} now", verdict))
    pairs = list(counterparts(builder.run_set))
    runs = [run for pair in pairs for series in pair for run in series.counted_runs]
    title = "Then and now: comparison of software stacks"
    made = builder.computed_table("then-and-now", title, columns, pairs, runs)
    yield replace(made, notes=tuple(NOTES("then-and-now")))  # without the notes of tables about one stack
