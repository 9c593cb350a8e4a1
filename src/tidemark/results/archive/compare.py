"""Comparison of one study in two result sets: ratios with intervals, or an error if they are not comparable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tidemark.analysis.formatting import Cell, MissingCell, attempt, comparison
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, MetricSet, checked_ratio
from tidemark.analysis.statistics import BootstrapEstimate, Estimate, generator
from tidemark.errors import Incomparable
from tidemark.results.tables.table import IDENTITY, Column, Table
from tidemark.runs.run import source_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.spec import MAIN
from tidemark.runs.views import harness_words, machine_words, mixture, unfinished

Key = tuple[str, str, int]  # of a series in both sets: system, mode, batch size


@dataclass(frozen=True, slots=True)
class Side:
    """One study of one of the two result sets; `name` is the set's name on the command line."""

    name: str
    measures: Measures

    @property
    def run_set(self) -> RunSet:
        return self.measures.run_set

    def series(self) -> dict[Key, Series]:
        """Return the series of the main sweep by system, mode and batch size."""
        return {
            (series.system, series.mode, series.batch_size): series
            for series in self.run_set.select(harness=True)
            if series.sweep == MAIN
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ratios of B over A for each series that both have."""

    table: Table
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
    reasons = list(dict.fromkeys(reason for check in CHECKS for reason in check(a, b)))
    if reasons:
        raise Incomparable(f"{a.name} and {b.name} cannot be compared: {'; '.join(reasons)}")
    pairs = _pairs(a, b)
    rows: list[list[Cell]] = []
    quantities = a.measures.quantities
    leading = quantities.leading
    ratios = []
    for one, other in pairs:
        found = [_cell(quantity, a, one, b, other) for quantity in quantities.headline]
        ratios.append(found[0])
        verdict = comparison(partial(_compared, leading, a, one, b, other), *leading.words)
        rows.append([one.title, one.mode_title, *found, verdict or "not known"])
    columns = (
        *IDENTITY,
        *(_column(quantities, quantity) for quantity in quantities.headline),
        Column("verdict", f"{leading.subjects} of B are"),
    )
    runs = [run for pair in pairs for series in pair for run in series.hot_runs]
    table = Table(
        "compare",
        f"Two result sets, study {', '.join(a.run_set.studies)}: B against A, hot runs",
        columns,
        tuple(tuple(row) for row in rows),
        tuple(source_runs(runs)),
        "; ".join(dataset.label for dataset in a.run_set.datasets),
        tuple(_notes(a, b, leading)),
    )
    return Comparison(table, pairs, leading, tuple(ratios), any(dataset.synthetic for dataset in a.run_set.datasets))


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

    (name_a, windows_a, runs_a), (name_b, windows_b, runs_b) = sizes(a), sizes(b)
    if name_a != name_b:
        yield f"the protocol differs ({', '.join(sorted(name_a))} against {', '.join(sorted(name_b))})"
    elif not _alike(windows_a, windows_b):
        yield f"the protocol's window differs ({_spelt(windows_a)} against {_spelt(windows_b)} s)"
    elif runs_a != runs_b:
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
        yield f"{letter} is {side.name}: {len(side.run_set.runs)} runs on {machines}."
    identities = [{machine.identity for machine in side.run_set.machines} for side in (a, b)]
    if None in identities[0] | identities[1]:
        yield "Whether both were measured on one machine is not known: version 1 of the run files does not say it."
    elif identities[0] != identities[1]:
        yield "They were measured on different machines: ratios are of machines as well as of systems."
    versions = [dict(pair for run in side.run_set.runs for pair in run.manifest.versions) for side in (a, b)]
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
    yield f"Ratios of the typical hot runs with 95 % intervals; the verdict is that on the {leading.noun}."
