"""Shared parts of figures: the measures, the colours, and the notes that accompany every figure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import require
from tidemark.results.figures import style
from tidemark.runs.run import COLD_START, FIRST, Run, source_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import dataset_label, unfinished


@dataclass(frozen=True, slots=True)
class Group:
    """Samples of one run of one system, and the colour to draw them in; `reason` states why there are none."""

    title: str
    colour: str
    values: NDArray[np.float64]
    times_s: NDArray[np.float64] | None = None
    label: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """Colour and marker of each system, by title."""

    colours: dict[str, str]
    shapes: dict[str, str]

    @classmethod
    def of(cls, systems: Mapping[str, str]) -> Look:
        """Return the look of `systems`, names by title."""
        chosen = (style.colours(systems.values()), style.shapes(systems.values()))
        return cls(*({title: each[name] for title, name in systems.items()} for each in chosen))


@dataclass(frozen=True, slots=True)
class DrawnFigure:
    """A finished figure and the runs in it.

    Its caption consists of `finding`, the result, and `notes`, the explanation. `provenance` lists its runs briefly.
    """

    frame: style.Frame
    title: str
    finding: str
    notes: tuple[str, ...]
    provenance: str
    sources: tuple[str, ...]

    @property
    def caption(self) -> str:
        return " ".join(filter(None, (self.finding, *self.notes)))


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure to be drawn: `name` is its file name, `draw` raises NotAvailable if the runs cannot show it.

    An optional figure that cannot be drawn is omitted and listed with its reason; any other is replaced by a
    placeholder that shows the reason.
    """

    name: str
    title: str
    draw: Callable[[FigureContext], DrawnFigure]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class FigureContext:
    measures: Measures
    look: Look

    @classmethod
    def of(cls, measures: Measures) -> FigureContext:
        return cls(measures, Look.of({series.title: series.system for series in measures.run_set.series}))

    @property
    def run_set(self) -> RunSet:
        return self.measures.run_set

    def colour(self, series: Series) -> str:
        return self.look.colours[series.title]

    def series(self, mode: str) -> tuple[Series, ...]:
        """Return the systems to compare: all of the main configuration except the harness.

        Raise NotAvailable if none.
        """
        return require(self.run_set.select(mode=mode, harness=False), f"the configuration has no system in {mode} mode")

    def finish(
        self, made: style.Frame, title: str, notes: Sequence[str], runs: Sequence[Run], finding: str = ""
    ) -> DrawnFigure:
        """Add title and dataset to the picture, and warnings about these runs to the notes."""
        dataset, synthetic = self.dataset(runs)
        notes = [*unfinished(self.run_set), *notes, *self._warnings(runs)]
        style.finish(made, title, (), dataset, synthetic)
        return DrawnFigure(made, title, finding, tuple(notes), self.source(runs), tuple(source_runs(runs)))

    def _warnings(self, runs: Sequence[Run]) -> Iterator[str]:
        unproved = {
            f"{run.manifest.system.title} ({run.manifest.cold_proof.verdict})" for run in runs if run.state == FIRST
        }
        if unproved:
            yield f"Run 0 was not proved cold: {', '.join(sorted(unproved))}."
        if any(run.state == COLD_START for run in runs):
            yield "Run 0 began with a cold start, but was not proved cold when its window opened."
        disturbed = sorted({f"{run.manifest.system.title}, run {run.number}" for run in runs if run.disturbed})
        if disturbed:
            yield f"Disturbed by other work on the machine: {'; '.join(disturbed)}."
        if len(self.run_set.harnesses) > 1 or len(self.run_set.machines) > 1:
            yield "WARNING: measured by different harnesses or on different machines, see table-4.1 and table-4.2."

    def dataset(self, runs: Sequence[Run]) -> tuple[str, bool]:
        each = (run.manifest.dataset for run in runs or self.run_set.runs)
        found = {dataset.sha256: dataset for dataset in each if dataset is not None}
        first = next(iter(found.values()), None)
        if first is None:
            return dataset_label(self.run_set), False
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        text = f"{first.name}{more}, sha256 {first.sha256[:8]}"
        return text, any(dataset.synthetic for dataset in found.values())

    def source(self, runs: Sequence[Run]) -> str:
        """Return a short description of a figure's runs: protocol, stack, systems, run numbers and fingerprints."""
        if not runs:
            return "Source: no run"
        numbers: dict[str, list[int]] = {}
        prints: dict[str, dict[str, None]] = {}
        for run in runs:
            *_, system, _, fingerprint, _ = run.label.split("/")
            numbers.setdefault(system, []).append(run.number)
            prints.setdefault(system, {})[fingerprint[:6]] = None
        same = len({tuple(sorted(set(found))) for found in numbers.values()}) == 1
        protocol = ", ".join(dict.fromkeys(series.protocol for series in self.run_set.series))
        spelt = [
            f"{system} {'+'.join(prints[system])}" + ("" if same else f" {_numbers(found)}")
            for system, found in numbers.items()
        ]
        which = f"{_numbers(next(iter(numbers.values())))} of " if same else ""
        labels = {run.label for run in runs}
        found = (series.stack for series in self.run_set.series if labels & {run.label for run in series.runs})
        stacks = " and ".join(dict.fromkeys(found))
        text = f"Source ({protocol} protocol, {stacks} stack): {which}{', '.join(spelt)}"
        return text if len(text) < 330 else f"{text[:300].rsplit(',', 1)[0]} and others (all in index.json)"

    def groups(
        self, mode: str, number: int, values: Callable[[Run], tuple[NDArray[np.float64], NDArray[np.float64] | None]]
    ) -> tuple[list[Group], list[Run]]:
        """Return values and times of run 0 or the `number`-th hot run per system; raise NotAvailable if none has it."""
        groups: list[Group] = []
        runs: list[Run] = []
        for series in self.series(mode):
            run = series.nth_run(number)
            colour = self.colour(series)
            if run is None:
                groups.append(Group(series.title, colour, np.empty(0), reason=series.missing(number)))
                continue
            found, times = values(run)
            reason = "" if len(found) else "not measurable here"
            groups.append(Group(series.title, colour, found, times, run.label, reason))
            runs.append(run)
        protocol = self.series(mode)[0].protocol
        otherwise = f"no system has a run {number}: the protocol '{protocol}' does not ask for it, or all failed"
        return groups, require(runs, otherwise)

    def placeholder(self, title: str, reason: str) -> DrawnFigure:
        """Return a figure that only shows why it could not be drawn."""
        made = style.frame(style.COLUMN, 0.6)
        text = "\n".join(textwrap.wrap(f"Not drawn: {reason}", 58))
        made.figure.text(0.5, 0.55, text, ha="center", va="center", fontsize=style.SMALL, color=style.FAINT)
        return self.finish(made, title, (), ())


def _numbers(found: Sequence[int]) -> str:
    listed = sorted(set(found))
    return f"run {listed[0]}" if len(listed) == 1 else "runs " + ", ".join(map(str, listed))
