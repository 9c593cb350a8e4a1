"""Comparison of one study in two result sets: ratios with intervals, or an error if they are not comparable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tidemark.analysis.formatting import Cell, MissingCell, attempt, comparison, listed, percent
from tidemark.analysis.measures import Measures, NotAvailable
from tidemark.analysis.metrics import Metric, MetricSet, checked_ratio
from tidemark.analysis.statistics import BootstrapEstimate, Estimate, generator
from tidemark.errors import Incomparable
from tidemark.results.tables.table import IDENTITY, Column, Table
from tidemark.runs.run import source_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import harness_words, machine_words, mixture, unfinished

Key = tuple[str, str, int]  # of a series in both sets: system, mode, batch size


@dataclass(frozen=True, slots=True)
class Side:
    """One study of one of the two result sets; `name` is the set's name on the command line.

    Series are of `stack`, the first that both sets have, or if they share none, of the set's first one.
    """

    name: str
    measures: Measures
    stack: str | None = None

    @property
    def run_set(self) -> RunSet:
        return self.measures.run_set

    def series(self) -> dict[Key, Series]:
        """Return the series of the main sweep by system, mode and batch size."""
        return {
            (series.system, series.mode, series.batch_size): series for series in self.run_set.select(stack=self.stack)
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ratios of B over A for each series that both have.

    `tables`: these ratios; then, if a mode has two systems, whether both sets have the same ratios between systems.
    """

    tables: tuple[Table, ...]
    pairs: tuple[tuple[Series, Series], ...]
    leading: Metric
    ratios: tuple[Estimate | MissingCell, ...]  # of the leading quantity, one per pair
    synthetic: bool


def _pairs(a: Side, b: Side) -> tuple[tuple[Series, Series], ...]:
    """Return the series of which both sides have runs."""
    first, second = a.series(), b.series()
    return tuple((first[key], second[key]) for key in first if key in second and first[key].runs and second[key].runs)


def compare(a: Side, b: Side) -> Comparison:
    """Compare B with A; raise Incomparable, with all reasons, if more than machine, versions or config differ."""
    stack = next((name for name in (a.run_set.stack, *a.run_set.stacks) if name in b.run_set.stacks), None)
    a, b = replace(a, stack=stack), replace(b, stack=stack)
    reasons = list(dict.fromkeys(reason for check in CHECKS for reason in check(a, b)))
    if reasons:
        raise Incomparable(f"{a.name} and {b.name} cannot be compared: {'; '.join(reasons)}")
    pairs = _pairs(a, b)
    rows: list[list[Cell]] = []
    quantities = a.measures.quantities
    leading = quantities.leading
    shown = (*quantities.headline, *([quantities.same_work] if quantities.same_work else []))
    ratios = []
    for one, other in pairs:
        found = [_cell(quantity, a, one, b, other) for quantity in shown]
        ratios.append(found[0])
        verdict = comparison(partial(_compared, leading, a, one, b, other), *leading.words)
        rows.append([one.title, one.mode_title, *found, verdict or "not known"])
    columns = (
        *IDENTITY,
        *(_column(quantities, quantity) for quantity in shown),
        Column("verdict", f"{leading.subjects} of B are"),
    )
    tables = [_table("compare", "B against A, hot runs", columns, rows, a, pairs, _notes(a, b, leading))]
    if between := _between_systems(a, b, pairs):
        tables.append(between)
    synthetic = any(dataset.synthetic for dataset in a.run_set.datasets)
    return Comparison(tuple(tables), pairs, leading, tuple(ratios), synthetic)


def _table(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    a: Side,
    pairs: Sequence[tuple[Series, Series]],
    notes: Iterable[str],
) -> Table:
    heading = f"Two result sets, study {', '.join(a.run_set.studies)}: {title}"
    cells = tuple(tuple(row) for row in rows)
    sources = tuple(source_runs([run for pair in pairs for series in pair for run in series.hot_runs]))
    datasets = "; ".join(dataset.label for dataset in a.run_set.datasets)
    return Table(name, heading, tuple(columns), cells, sources, datasets, tuple(notes))


def _between_systems(a: Side, b: Side, pairs: Sequence[tuple[Series, Series]]) -> Table | None:
    """Return the ratios of systems to the first one of their mode, in A and in B; None if no mode has two systems."""
    quantities = a.measures.quantities
    leading = quantities.leading
    rows: list[list[Cell]] = []
    found: list[BootstrapEstimate] = []
    firsts: dict[str, tuple[Series, Series]] = {}
    for one, other in pairs:
        if one.is_null_baseline:
            continue
        first = firsts.setdefault(one.mode_title, (one, other))
        if first == (one, other):
            continue
        change = partial(_change_of_ratio, a, b, (one, other), first)
        rows.append(
            [
                one.title, one.mode_title, first[0].title,
                attempt("", partial(a.measures.ratio, leading, one, first[0])),
                attempt("", partial(b.measures.ratio, leading, other, first[1])),
                attempt("", partial(change, leading)),
                comparison(partial(change, leading), "larger", "smaller") or "not known",
            ]
        )  # fmt: skip
        for quantity in quantities.headline:
            with suppress(NotAvailable):
                found.append(change(quantity))
    if not rows:
        return None
    columns = (
        *IDENTITY,
        Column("first", "To"),
        *(Column(letter.lower(), f"{leading.title}, in {letter}", "x", interval=True) for letter in "AB"),
        Column("change", "B / A", "x", interval=True),
        Column("verdict", "In B the ratio is"),
    )
    return _table("compare-ratios", "ratios between systems", columns, rows, a, pairs, _agreement(found))


def _change_of_ratio(
    a: Side, b: Side, pair: tuple[Series, Series], first: tuple[Series, Series], quantity: Metric
) -> BootstrapEstimate:
    """Return the ratio of a system to the first one in B, over that in A."""
    before, after = a.measures.ratio(quantity, pair[0], first[0]), b.measures.ratio(quantity, pair[1], first[1])
    return checked_ratio(_apart(after, quantity, pair[1]), before)


def _agreement(found: Sequence[BootstrapEstimate]) -> Iterator[str]:
    """Yield how many ratios of headline metrics are equal in both, and how far apart they are."""
    known = [each for each in found if each.draws is not None]
    if not known:
        return
    agree = sum(bool(each.estimate("").contains(1)) for each in known)
    apart = math.sqrt(float(np.mean([each.centre**2 for each in known])))
    explained = math.sqrt(float(np.mean([each.variance for each in known])))
    yield (
        f"{agree:,} of {len(known):,} ratios of headline metrics agree: the interval of B / A contains 1. If nothing "
        "differed but chance within each measurement, 95 % would. Ratios of a mode share its first system, and so move "
        "together."
    )
    yield (
        f"B / A differs from 1 by {percent(math.expm1(apart))} (root mean square); the variance within the two "
        f"measurements explains {percent(math.expm1(explained))}. What is beyond that is of the versions or of the "
        "machine at two times, which no interval of one measurement covers."
    )


# Conditions for a comparison


def _datasets(a: Side, b: Side) -> Iterator[str]:
    ours, theirs = ({dataset.sha256 for dataset in side.run_set.datasets} for side in (a, b))
    if ours != theirs:
        names = (" and ".join(dataset.label for dataset in side.run_set.datasets) or "none" for side in (a, b))
        yield f"the dataset differs ({' against '.join(names)})"


def _protocols(a: Side, b: Side) -> Iterator[str]:
    def sizes(side: Side) -> tuple[set[str], set[float], int]:
        found = [series for series in side.series().values() if series.runs]
        windows = {run.manifest.window_s for series in found for run in series.runs}
        names = {series.protocol for series in found}
        return names, windows, max((len(repeat.runs) for series in found for repeat in series.repeats), default=0)

    def ends(which: int) -> list[str]:
        """Return how the windows of the series that both have end, in A (0) or B (1)."""
        found = [dict(run.manifest.config) for pair in _pairs(a, b) for run in pair[which].runs]
        of = {(each.get("commits") or 0, each.get("least_seconds") or 0) for each in found}
        return [f"after {commits:,} commits and {least:g} s" if commits else "by time" for commits, least in sorted(of)]

    def in_rounds(side: Side) -> bool:
        return any(repeat.block for series in side.series().values() for repeat in series.repeats)

    (name_a, windows_a, runs_a), (name_b, windows_b, runs_b) = sizes(a), sizes(b)
    if name_a != name_b:
        yield f"the protocol differs ({', '.join(sorted(name_a))} against {', '.join(sorted(name_b))})"
    elif ends(0) != ends(1):
        yield f"windows end differently ({' and '.join(ends(0))} against {' and '.join(ends(1))})"
    elif not _alike(windows_a, windows_b):
        yield f"the protocol's window differs ({_spelt(windows_a)} against {_spelt(windows_b)} s)"
    elif runs_a != runs_b and not (in_rounds(a) and in_rounds(b)):  # what follows the rounds may be left to measure
        yield f"the protocol's number of runs differs ({runs_a} against {runs_b})"


def _alike(a: set[float], b: set[float]) -> bool:
    """Return True if windows can be of one protocol; those of runs that ended late may differ by up to 10 %."""
    return not a or not b or (max(a) <= 1.1 * max(b) and max(b) <= 1.1 * max(a))


def _spelt(windows: set[float]) -> str:
    return " and ".join(f"{window:g}" for window in sorted(windows))


def _modes(a: Side, b: Side) -> Iterator[str]:
    ours, theirs = ({series.mode_title for series in side.series().values()} for side in (a, b))
    if ours != theirs:
        yield f"the modes differ ({', '.join(sorted(ours))} against {', '.join(sorted(theirs))})"
    producers = [{run.manifest.producer_mode for run in side.run_set.runs} for side in (a, b)]
    if producers[0] != producers[1]:
        yield f"the mode of the producer differs ({', '.join(producers[0])} against {', '.join(producers[1])})"


def _oracles(a: Side, b: Side) -> Iterator[str]:
    for side in (a, b):
        wrong = [run.label for run in side.run_set.runs if run.manifest.oracle.is_wrong]
        if wrong:
            yield f"the oracle found that {wrong[0]} of {side.name} does not hold what was acknowledged"
    for pair in _pairs(a, b):
        ours, theirs = (each.runs[0].manifest.oracle for each in pair)
        if ours.applicable != theirs.applicable:
            yield f"the oracle of {pair[0].title} differs ({ours.reader} against {theirs.reader})"


def _shared(a: Side, b: Side) -> Iterator[str]:
    if not _pairs(a, b):
        yield "they have no measured system in common"


CHECKS: tuple[Callable[[Side, Side], Iterator[str]], ...] = (_datasets, _protocols, _modes, _oracles, _shared)


# Computation


def _column(quantities: MetricSet, quantity: Metric) -> Column:
    if not quantity.signed:
        return Column(quantity.key, f"{quantity.title}, B / A", interval=True)
    share = quantities.relative(quantity)
    return Column(share.key, f"{share.title}, B less A", share.shown_unit, interval=True)


def _cell(quantity: Metric, a: Side, one: Series, b: Side, other: Series) -> Estimate | MissingCell:
    unit = a.measures.quantities.relative(quantity).shown_unit if quantity.signed else ""
    return attempt(unit, partial(_compared, quantity, a, one, b, other))


def _compared(quantity: Metric, a: Side, one: Series, b: Side, other: Series) -> BootstrapEstimate:
    """Return the ratio of B to A; for signed quantities the difference, as a share of their scale if declared."""
    shown = a.measures.quantities.relative(quantity) if quantity.signed else quantity
    below, above = a.measures.hot(shown, one), _apart(b.measures.hot(shown, other), shown, other)
    return shown.as_shown(above.difference(below)) if quantity.signed else checked_ratio(above, below)


def _apart(replicates: BootstrapEstimate, quantity: Metric, series: Series) -> BootstrapEstimate:
    """Permute B's replicates, which are seeded by the series' name, and drop its rounds, which were not those of A."""
    draws = replicates.draws
    if draws is not None:
        draws = generator("compare", quantity.name, series.id).permutation(draws)
    return replace(replicates, draws=draws, rounds=None)


def _measured_by(a: Side, b: Side) -> Iterator[str]:
    """Yield warnings if the two sides were measured by different code, and on mixed or unfinished run sets."""
    digests = [{harness.digest if harness else None for harness in side.run_set.harnesses} for side in (a, b)]
    if digests[0] != digests[1]:
        spelt = (
            f"{letter} by {' and '.join(map(harness_words, side.run_set.harnesses))}"
            for letter, side in (("A", a), ("B", b))
        )
        yield (
            f"WARNING: the measuring code differs: {'; '.join(spelt)}. A difference below may be that of the harness "
            "and not of the systems."
        )
    elif None in digests[0]:
        yield "WARNING: which code measured is not known: version 1 of the run files does not say it."
    for letter, side in (("A", a), ("B", b)):
        for sentence in (*unfinished(side.run_set), *mixture(side.run_set)):
            yield f"In {letter}: {sentence}"


def _readers(pairs: Sequence[tuple[Series, Series]]) -> Iterator[str]:
    """Yield notes on tables that were read back by different libraries; their contents were checked nevertheless."""
    for series, other in pairs:
        ours, theirs = (each.runs[0].manifest.oracle.reader for each in (series, other))
        if ours != theirs:
            yield f"The oracle of {series.title}, {series.mode_title}, read by {ours} in A and by {theirs} in B."


def _notes(a: Side, b: Side, leading: Metric) -> Iterator[str]:
    yield from _measured_by(a, b)
    for letter, side in (("A", a), ("B", b)):
        machines = " and ".join(sorted(map(machine_words, side.run_set.machines)))
        count = sum(len(series.runs) for series in side.series().values())
        yield f"{letter} is {side.name}: {count} runs on {machines}."
    others = dict.fromkeys(name for side in (a, b) for name in side.run_set.stacks if name != a.stack)
    if a.stack and others:
        yield f"Compared is the stack {a.stack}; {listed(list(others))} of either set is left out."
    identities = [{machine.identity for machine in side.run_set.machines} for side in (a, b)]
    if None in identities[0] | identities[1]:
        yield "Whether both were measured on one machine is not known: version 1 of the run files does not say it."
    elif identities[0] != identities[1]:
        yield "They were measured on different machines: ratios are of machines as well as of systems."
    runs = [[run for series in side.series().values() for run in series.runs] for side in (a, b)]
    versions = [dict(pair for run in of_side for pair in run.manifest.versions) for of_side in runs]
    changed = [
        f"{name} {versions[0].get(name, 'absent')} to {versions[1].get(name, 'absent')}"
        for name in sorted({*versions[0], *versions[1]})
        if versions[0].get(name) != versions[1].get(name)
    ]
    yield f"Versions that differ: {', '.join(changed)}." if changed else "Both ran the same versions."
    first, second = a.series(), b.series()
    yield from _readers(_pairs(a, b))
    alone = [f"{series.title}, {series.mode_title}" for key, series in first.items() if key not in second]
    alone += [f"{series.title}, {series.mode_title}" for key, series in second.items() if key not in first]
    if alone:
        yield f"In one set only: {'; '.join(alone)}."
    if work := a.measures.quantities.same_work:
        yield f"{work.title} is the same work in A and B: where it takes longer, the machine was slower."
    yield f"Ratios of the typical hot runs with 95 % intervals; the verdict is that on the {leading.noun}."
