"""Prediction, from commit costs, of the systems and batch sizes that are suitable for an unmeasured load.

    gathering   = (batch - 1) * writers / rate     the first event of a batch waits for the last
    age         = gathering + commit               of the oldest event of a batch when its commit is acknowledged
    utilisation = rate * commit / (batch * writers)

A batch size is suitable if the age is small enough and the utilisation at most `ROOM`, both with a commit time
increased by the law's worst error, which is determined on held-out cells (`Judged.errors`). If that error is above the
bound, nothing is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tidemark.analysis.metrics import NotAvailable
from tidemark.planner.cost_model import FAR, MANY, PLAIN, Age, Cell, Cost, Law, by_system, fit, held_out, relative_error

ROOM = 0.7  # largest share of their time that writers may be busy
REACH = 4.0  # factor beyond the largest measured setting, and below the smallest, up to which the law is trusted
COMMITS = "commits of the table"
KINDS = (PLAIN, FAR, MANY)
NEEDED = {PLAIN: 3, FAR: 3, MANY: 2}  # distinct settings, so that one can be held out
MILLION = 1_000_000
WOULD_DO, WOULD_NOT, NOT_PREDICTED = "would do", "would not do", "not predicted"


@dataclass(frozen=True, slots=True)
class Load:
    """Requested load: events per second, and the maximum age in seconds of the oldest event at its commit.

    `commits` is the number of commits since the table was created or maintained. `batch` is None if any size is
    acceptable, `rtt_ms` is None with files on the local disk.
    """

    rate: int
    fresh_s: float
    writers: int = 1
    rtt_ms: float | None = None
    batch: int | None = None
    commits: int = 100

    def cell(self, batch: int) -> Cell:
        return Cell(batch, self.writers, self.rtt_ms)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Prediction for one batch size. `files` is the number of files per million events; None if not counted."""

    batch: int
    commit_ms: float
    rows_per_s: float  # maximum throughput of the writers
    utilisation: float
    age_s: float
    files: float | None


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of the law: median and number of held-out cells, and the worst, also of the residuals in other cells.

    `age_median` is the median error in `ages` measured ages, None if there are none.
    """

    median: float
    worst: float
    cells: int
    age_median: float | None = None
    ages: int = 0

    def above(self, bound: float) -> str | None:
        """Return a description of the error that is above `bound`, or None."""
        for error, what in ((self.worst, "worst error of the law"), (self.age_median, "median error of ages")):
            if error is not None and error > bound:
                return f"the {what} is {100 * error:.3g} %, the bound {100 * bound:.3g} %"
        return None


class TooFewCells(NotAvailable):
    """Raised when a setting was measured too few times for a law; `kind` is the setting."""

    def __init__(self, kind: str, measured: int) -> None:
        above = " above 1" if kind == MANY else ""
        super().__init__(f"too few cells to hold one out: {kind}{above}: measured {measured}, needed {NEEDED[kind]}")
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer for one system. `batches` are the smallest and largest suitable size; `prediction` is for the largest.

    If none is suitable, `prediction` is for the nearest size, and `reason` states the requirement that it fails.
    `remarks` list the measured range and the settings for which the prediction leaves it. `lacks` is the setting that
    was measured too few times, if any.
    """

    system: str
    title: str
    stack: str
    promise: str
    verdict: str
    reason: str = ""
    errors: Errors | None = None
    batches: tuple[int, int] | None = None
    prediction: Prediction | None = None
    remarks: tuple[str, ...] = ()
    lacks: str = ""


def answers(load: Load, points: Sequence[Cost | Age], bound: float) -> list[Answer]:
    """Return one answer per system and stack, sorted by verdict (suitable ones first), then by name.

    Systems are not ranked. `bound` is the largest error of a law with which a load is predicted: 0.3 is 30 %.
    """
    made = [_answer(load, costs, ages, bound) for costs, ages in by_system(points)]
    order = (WOULD_DO, WOULD_NOT, NOT_PREDICTED)
    return sorted(made, key=lambda each: (order.index(each.verdict), each.system, each.stack))


def _answer(load: Load, costs: Sequence[Cost], ages: Sequence[Age], bound: float) -> Answer:
    is_near = load.rtt_ms is None
    first = next((each for each in costs if (each.cell.rtt_ms is None) == is_near), costs[0])
    who = (first.system, first.title, first.stack, first.promise)
    try:
        sound = checked(load, costs)
        judged = Judged.of(sound, ages)
        sizes = _sizes(load, sound)
        tried = [(_predicted(load, judged.law, sound, size), judged.errors(load.cell(size))) for size in sizes]
    except TooFewCells as absent:
        return Answer(*who, NOT_PREDICTED, str(absent), lacks=absent.kind)
    except NotAvailable as absent:
        return Answer(*who, NOT_PREDICTED, str(absent))
    trusted = [(each, errors) for each, errors in tried if errors.above(bound) is None]
    if not trusted:
        errors = min((errors for _, errors in tried), key=lambda each: each.worst)
        return Answer(*who, NOT_PREDICTED, errors.above(bound) or "", errors)
    remarks = tuple(_remarks(load, sound))
    do = [(each, errors) for each, errors in trusted if not _lacks(load, each, errors.worst)]
    if do:
        chosen, errors = do[-1]
        return Answer(*who, WOULD_DO, "", errors, (do[0][0].batch, chosen.batch), chosen, remarks)
    keeping_up = [(each, errors) for each, errors in trusted if _busy(each, errors.worst) <= ROOM]
    nearest, errors = min(
        keeping_up or trusted, key=lambda each: each[0].age_s if keeping_up else _busy(each[0], each[1].worst)
    )
    return Answer(*who, WOULD_NOT, _lacks(load, nearest, errors.worst), errors, None, nearest, remarks)


def checked(load: Load, costs: Sequence[Cost]) -> list[Cost]:
    """Return the costs that the load's law is fitted to; raise NotAvailable if they are too few or one has a flaw."""
    kinds = set(load.cell(1).kinds)
    wanted = [each for each in costs if set(each.cell.kinds) <= kinds]
    for each in wanted:
        if each.flaw:
            raise NotAvailable(each.flaw)
    for kind in KINDS:
        settings = {setting_of(each.cell) for each in wanted if each.cell.kinds[-1] == kind}
        if kind in kinds and len(settings) < NEEDED[kind]:
            raise TooFewCells(kind, len(settings))
    return wanted


@dataclass(frozen=True, slots=True)
class Judged:
    """Law of a system, with its residual and its held-out error in each cell, and its errors in ages."""

    law: Law
    left: dict[Cell, float]
    held_out: dict[Cell, float | None]
    ages: tuple[float, ...]

    @classmethod
    def of(cls, sound: Sequence[Cost], ages: Sequence[Age]) -> Judged:
        law = fit(sound)
        left: dict[Cell, float] = {}
        for each in sound:
            error = relative_error(law.commit_ms(each.cell, each.commits), each.commit_ms)
            left[each.cell] = max(error, left.get(each.cell, 0.0))
        of_ages = (_age_error(law, sound, age) for age in ages)
        return cls(law, left, held_out(sound), tuple(error for error in of_ages if error is not None))

    def errors(self, cell: Cell) -> Errors:
        """Return the errors to expect of a prediction for `cell`.

        Inside the measured range: the held-out errors of cells with others on both sides, and the residuals at the
        ends. Beyond it, the ends are held out as well. Raise NotAvailable if a required cell cannot be held out.
        """
        found: list[float] = []
        left: list[float] = []
        for kind in cell.kinds:
            cells = [each for each in self.left if each.kinds[-1] == kind]
            settings = sorted({setting_of(each) for each in cells})
            own = (cell.rows, cell.rtt_ms or 0.0, cell.writers)[KINDS.index(kind)]
            # One writer is fewer than several, so the smallest number of several writers has cells on both sides.
            ends = settings[-1:] if kind == MANY else [settings[0], settings[-1]]
            inside = own <= ends[-1] and (kind == MANY or own >= ends[0])
            for each in cells:
                error = self.held_out[each]
                if inside and setting_of(each) in ends:
                    left.append(self.left[each])
                elif error is None:
                    raise NotAvailable("too few cells: one of them cannot be held out")
                else:
                    found.append(error)
        middle = median(self.ages) if self.ages else None
        return Errors(median(found), max(*found, *left), len(found), middle, len(self.ages))


def setting_of(cell: Cell) -> float:
    """Return the setting that is varied in cells of this kind."""
    return (cell.rows, cell.rtt_ms or 0.0, cell.writers)[KINDS.index(cell.kinds[-1])]


def _age_error(law: Law, sound: Sequence[Cost], age: Age) -> float | None:
    """Return the error for a measured median age; None outside the law's reach or if the writer cannot keep up."""
    rows = max(round(age.rows), 1)
    least, most = _reach(sound)
    commit_s = law.commit_ms(Cell(rows)) / 1000
    if not least <= rows <= most or age.rate * commit_s / rows > ROOM:
        return None
    return relative_error((rows - 1) / (2 * age.rate) + commit_s, age.age_s)


def _reach(sound: Sequence[Cost]) -> tuple[float, float]:
    rows = [each.cell.rows for each in sound]
    return min(rows) / REACH, max(rows) * REACH


def _most_writers(sound: Sequence[Cost]) -> int:
    return max(each.cell.writers for each in sound)


def _farthest(sound: Sequence[Cost]) -> float:
    return max(each.cell.rtt_ms or 0.0 for each in sound)


def _sizes(load: Load, sound: Sequence[Cost]) -> list[int]:
    """Return the batch sizes to try, ascending: 1, 2, 5, 10 and so on.

    Raise NotAvailable if the load is out of reach.
    """
    least, most = _reach(sound)
    asked = (
        ("writers", load.writers, _most_writers(sound)),
        ("ms to the store", load.rtt_ms or 0, _farthest(sound)),
        (COMMITS, load.commits, 2 * max(each.commits for each in sound)),  # twice the mean
    )
    for what, value, measured in asked:
        if value > REACH * measured:
            more = (
                "; maintain the table before, or see 'Old tables' in docs/studies/ingest.md" if what == COMMITS else ""
            )
            raise NotAvailable(f"out of reach: {value:,.10g} {what}, measured up to {measured:,.10g}{more}")
    if load.batch is not None:
        if not least <= load.batch <= most:
            raise NotAvailable(
                f"out of reach: batches of {load.batch:,}; reached are {math.ceil(least):,} to {most:,.0f}"
            )
        return [load.batch]
    ladder = (step * 10**power for power in range(10) for step in (1, 2, 5))
    return [size for size in ladder if least <= size <= most]


def _remarks(load: Load, sound: Sequence[Cost]) -> Iterator[str]:
    if load.writers > 1 and load.rtt_ms is not None:
        yield "writers and distance were measured apart, and are multiplied"
    if load.writers > _most_writers(sound):
        yield f"measured with up to {_most_writers(sound)} writers"
    if (load.rtt_ms or 0) > _farthest(sound):
        yield f"measured with a store up to {_farthest(sound):g} ms away"
    rows = [each.cell.rows for each in sound]
    yield f"measured with batches of {min(rows):,} to {max(rows):,}"


def _predicted(load: Load, law: Law, sound: Sequence[Cost], batch: int) -> Prediction:
    commit_ms = law.commit_ms(load.cell(batch), load.commits)
    rows_per_s = load.writers * batch * 1000 / commit_ms
    gathering_s = (batch - 1) * load.writers / load.rate
    files = [each.files for each in sound if each.files is not None]
    return Prediction(
        batch,
        commit_ms,
        rows_per_s,
        load.rate / rows_per_s,
        gathering_s + commit_ms / 1000,
        median(files) * MILLION / batch if files else None,
    )


def _busy(each: Prediction, worst: float) -> float:
    return each.utilisation * (1 + worst)


def _lacks(load: Load, each: Prediction, worst: float) -> str:
    """Return why the prediction does not meet the load's needs; empty if it does."""
    if (busy := _busy(each, worst)) > ROOM:
        most = f"{100 * ROOM:.0f} %"
        return f"too slow: writers busy for up to {100 * busy:.0f} % with batches of {each.batch:,}, allowed {most}"
    if (age := each.age_s + worst * each.commit_ms / 1000) > load.fresh_s:
        return f"too old: up to {age:.3g} s with batches of {each.batch:,}"
    return ""
