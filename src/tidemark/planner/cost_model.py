"""Cost model ("law") of a commit: its fit to measured cells, and its error on cells held out from the fit.

    commit = (fixed + row * rows + store) * (1 + waiting * (writers - 1)) + growth * commits before it
    store  = offset + trips * round trip                                  0 with files on the local disk

All times are in milliseconds. A cell is held out together with all others measured under the same conditions, the law
is fitted to the rest, and its prediction is compared with the measurement.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidemark.analysis.metrics import NotAvailable
from tidemark.runs.run import Run

LEAST_SHARE = 0.1  # of a measured commit: the least that remains after subtracting table growth
PLAIN, FAR, MANY = "batch sizes", "distances of a store", "numbers of writers"  # the settings varied for a law


@dataclass(frozen=True, slots=True)
class Cell:
    """Conditions of a commit. `rtt_ms` is None with files on the local disk."""

    rows: int
    writers: int = 1
    rtt_ms: float | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of cells that a law must be fitted to before it can predict this one."""
        return (PLAIN, *((FAR,) if self.rtt_ms is not None else ()), *((MANY,) if self.writers > 1 else ()))


@dataclass(frozen=True, slots=True)
class Cost:
    """Measured commit cost of one system in one cell under one stack.

    `commit_ms` is a writer's mean time per commit, `commits` the mean number of earlier commits to the table.
    `growth_ms` is the increase after 1,000 further commits, None if unknown. `files` is the number of files that a
    commit leaves. If `flaw` is set (to a reason), the speed is not a valid result: ignore `commit_ms`.
    """

    system: str
    title: str
    stack: str
    promise: str
    cell: Cell
    commit_ms: float = 0.0
    commits: float = 0.0
    growth_ms: float | None = None
    files: float | None = None
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Age:
    """Median age of events at their commit, for one writer that batches `rows` events at `rate` events per second."""

    system: str
    stack: str
    rate: float
    rows: float
    age_s: float


def by_system(points: Sequence[Cost | Age]) -> list[tuple[list[Cost], list[Age]]]:
    """Return the costs and ages of each system under each stack that has costs."""
    found: dict[tuple[str, str], tuple[list[Cost], list[Age]]] = {}
    for each in points:
        costs, ages = found.setdefault((each.system, each.stack), ([], []))
        if isinstance(each, Cost):
            costs.append(each)
        else:
            ages.append(each)
    return [(costs, ages) for costs, ages in found.values() if costs]


@dataclass(frozen=True, slots=True)
class Law:
    """Coefficients of the law above; None for those that no cell determines. `growth_ms` is per commit."""

    fixed_ms: float
    row_ms: float
    growth_ms: float = 0.0
    offset_ms: float | None = None
    trips: float | None = None
    waiting: float | None = None

    def commit_ms(self, cell: Cell, commits: float = 0.0) -> float:
        """Return the time of a commit after `commits` earlier ones; raise NotAvailable if a term is unknown."""
        own = self.fixed_ms + self.row_ms * cell.rows
        if cell.rtt_ms is not None:
            if self.offset_ms is None or self.trips is None:
                raise NotAvailable(f"not known for {FAR}")
            own += self.offset_ms + self.trips * cell.rtt_ms
        if cell.writers > 1:
            if self.waiting is None:
                raise NotAvailable(f"not known for {MANY}")
            own *= 1 + self.waiting * (cell.writers - 1)
        if own <= 0:
            raise NotAvailable("the law gives no time above 0 there")
        return own + self.growth_ms * commits


def rtt_of(run: Run) -> float | None:
    """Return the round trip in ms to the object store with the run's table files; None if they were on local disk."""
    options = dict(run.manifest.system.options)
    return float(options.get("rtt_ms") or 0.0) if options.get("storage") == "s3" else None


def fit(costs: Sequence[Cost]) -> Law:
    """Fit the law of one system to its `costs`, none of which may have a flaw.

    Cells with one writer and local files determine the fixed and per-row time; the store's terms and the waiting for
    other writers are then fitted relative to them. Each step minimises the sum of absolute errors, for lines on the
    log scale, so that an outlying cell has little influence. Raise NotAvailable for fewer than two batch sizes.
    """
    growth = _growth(costs)
    own = {id(each): max(each.commit_ms - growth * each.commits, LEAST_SHARE * each.commit_ms) for each in costs}
    plain = [each for each in costs if each.cell.kinds == (PLAIN,)]
    fixed, row = _line([(each.cell.rows, own[id(each)], 0.0) for each in plain], least=0.0)
    near = Law(fixed, row)
    far = [each for each in costs if each.cell.kinds == (PLAIN, FAR)]
    many = [each for each in costs if each.cell.kinds == (PLAIN, MANY)]
    offset = trips = waiting = None
    if len({each.cell.rtt_ms for each in far}) > 1:
        points = [(each.cell.rtt_ms or 0.0, own[id(each)], near.commit_ms(Cell(each.cell.rows))) for each in far]
        offset, trips = _line(points, least=-math.inf)
    if many:
        shares = [(own[id(each)] / near.commit_ms(Cell(each.cell.rows)) - 1) / (each.cell.writers - 1) for each in many]
        waiting = max(float(np.median(shares)), 0.0)
    return Law(fixed, row, growth, offset, trips, waiting)


def held_out(costs: Sequence[Cost]) -> dict[Cell, float | None]:
    """Return the law's error in each cell when it is fitted without that cell: 0.3 is 30 % too long or too short.

    The error is None if too few cells remain to predict it. Raise NotAvailable if the law cannot be fitted at all.
    """
    fit(costs)
    return {cell: _error(costs, cell) for cell in dict.fromkeys(each.cell for each in costs)}


def relative_error(predicted: float, measured: float) -> float:
    """Return the larger of two times over the smaller, minus 1."""
    return math.exp(abs(math.log(predicted / measured))) - 1


def _error(costs: Sequence[Cost], cell: Cell) -> float | None:
    try:
        law = fit([each for each in costs if each.cell != cell])
        return max(
            relative_error(law.commit_ms(cell, each.commits), each.commit_ms) for each in costs if each.cell == cell
        )
    except NotAvailable:
        return None


def _growth(costs: Sequence[Cost]) -> float:
    """Return the milliseconds that each commit adds to the next one, from the cell with the most commits."""
    known = [(each.commits, each.growth_ms) for each in costs if each.growth_ms is not None]
    return max(known)[1] / 1000 if known and max(known)[1] > 0 else 0.0


def _line(points: Sequence[tuple[float, float, float]], least: float) -> tuple[float, float]:
    """Return the offset (at least `least`) and slope (at least 0) of the times above their bases.

    `points`: setting, time, base. Candidates are the lines through two points, or through one with zero slope or
    offset; the smallest sum of absolute errors on the log scale wins. Raise NotAvailable for fewer than two settings.
    """
    if len({x for x, _, _ in points}) < 2:
        raise NotAvailable("needs two settings or more")
    rest = [(x, time - base) for x, time, base in points]
    lines = [(y, 0.0) for _, y in rest] + [(0.0, y / x) for x, y in rest if x > 0]
    for (x, y), (other, above) in itertools.combinations(rest, 2):
        if x != other:
            slope = (above - y) / (other - x)
            lines.append((y - slope * x, slope))

    def off(line: tuple[float, float]) -> float:
        offset, slope = line
        found = np.array([base + offset + slope * x for x, _, base in points])
        if offset < least or slope < 0 or bool((found <= 0).any()):
            return math.inf
        return float(np.abs(np.log(found / np.array([time for _, time, _ in points]))).sum())

    best = min(lines, key=off)
    if math.isinf(off(best)):
        raise NotAvailable("no line fits")
    return best
