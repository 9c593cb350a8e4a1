"""Which systems would do for a load that was not measured, and with which batch size, from what commits cost.

    gathering   = (batch - 1) * writers / rate     the first event of a batch waits for the last
    age         = gathering + commit               of the oldest event of a batch when its commit is acknowledged
    utilisation = rate * commit / (batch * writers)

A batch size would do where the age is small enough and the utilisation at most `ROOM`, both with a commit that takes
longer by the law's worst error, which is that in cells held out (`Judged.errors`). Where that is above the bound,
nothing is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tidemark.analysis.costs import FAR, MANY, PLAIN, Age, Cell, Cost, Law, fit, held_out, relative_error
from tidemark.analysis.quantities import Absent

ROOM = 0.7  # the share of their time that writers may be busy
REACH = 4.0  # how many times beyond the largest that was measured, and below the smallest, the law is trusted
KINDS = (PLAIN, FAR, MANY)
NEEDED = {PLAIN: 3, FAR: 3, MANY: 2}  # conditions, so that one can be held out
MILLION = 1_000_000
WOULD_DO, WOULD_NOT, NOT_PREDICTED = "would do", "would not do", "not predicted"


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked for: events a second, and seconds that the oldest may be old at its commit.

    `commits` is how many the table has had since it was made or maintained. `batch` is None where any would do,
    `rtt_ms` with files on the local disk.
    """

    rate: int
    fresh_s: float
    writers: int = 1
    rtt_ms: float | None = None
    batch: int | None = None
    commits: int = 1_000

    def cell(self, batch: int) -> Cell:
        return Cell(batch, self.writers, self.rtt_ms)


@dataclass(frozen=True, slots=True)
class Prediction:
    """With batches of one size. `files` are those that a million events leave; None where nobody counted."""

    batch: int
    commit_ms: float
    rows_per_s: float  # the most that the writers could write
    utilisation: float
    age_s: float
    files: float | None


@dataclass(frozen=True, slots=True)
class Errors:
    """Of the law: the median in cells held out, how many they are, and the worst, also of what it leaves elsewhere.

    `age_median` is that of `ages` measured ages, None where there are none.
    """

    median: float
    worst: float
    cells: int
    age_median: float | None = None
    ages: int = 0

    def above(self, bound: float) -> str | None:
        """What is above the bound, in words."""
        for error, what in ((self.worst, "worst error of the law"), (self.age_median, "median error of ages")):
            if error is not None and error > bound:
                return f"the {what} is {100 * error:.0f} %, the bound {100 * bound:.0f} %"
        return None


@dataclass(frozen=True, slots=True)
class Answer:
    """For one system. `batches` are the smallest and the largest that would do; `prediction` is for the largest.

    Where none would do, `prediction` is for the one that comes nearest, and `reason` says what it lacks. `remarks`
    say where the prediction leaves what was measured.
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


def answers(load: Load, points: Sequence[Cost | Age], bound: float) -> list[Answer]:
    """One a system and stack, those that would do first, then by name; none is ranked above another.

    `bound` is the worst error of a law that anything is predicted with: 0.3 is 30 %.
    """
    found: dict[tuple[str, str], list[Cost]] = {}
    for each in points:
        if isinstance(each, Cost):
            found.setdefault((each.system, each.stack), []).append(each)
    ages = [each for each in points if isinstance(each, Age)]
    made = [
        _answer(load, costs, [age for age in ages if (age.system, age.stack) == key], bound)
        for key, costs in found.items()
    ]
    order = (WOULD_DO, WOULD_NOT, NOT_PREDICTED)
    return sorted(made, key=lambda each: (order.index(each.verdict), each.system, each.stack))


def _answer(load: Load, costs: Sequence[Cost], ages: Sequence[Age], bound: float) -> Answer:
    first = costs[0]
    who = (first.system, first.title, first.stack, first.promise)
    try:
        sound = checked(load, costs)
        judged = Judged.of(sound, ages)
        sizes = _sizes(load, sound)
        tried = [(_predicted(load, judged.law, sound, size), judged.errors(load.cell(size))) for size in sizes]
    except Absent as absent:
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
    """The costs that the law of the load is fitted to; Absent for too few, and for a flaw in one of them."""
    kinds = set(load.cell(1).kinds)
    wanted = [each for each in costs if set(each.cell.kinds) <= kinds]
    for each in wanted:
        if each.flaw:
            raise Absent(each.flaw)
    for kind in KINDS:
        settings = {setting_of(each.cell) for each in wanted if each.cell.kinds[-1] == kind}
        if kind in kinds and len(settings) < NEEDED[kind]:
            beside = " above 1" if kind == MANY else ""
            raise Absent(
                f"too few cells to hold one out: {kind}{beside}: measured {len(settings)}, needed {NEEDED[kind]}"
            )
    return wanted


@dataclass(frozen=True, slots=True)
class Judged:
    """The law of a system, what it leaves in each cell, by how much it errs without that cell, and in ages."""

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
        """What a prediction for `cell` may err by.

        Inside of what was measured: the errors in cells held out that have others on both sides, and what the law
        leaves at the ends. Beyond it the ends are held out as well. Absent where nothing can be held out.
        """
        found: list[float] = []
        left: list[float] = []
        for kind in cell.kinds:
            cells = [each for each in self.left if each.kinds[-1] == kind]
            settings = sorted({setting_of(each) for each in cells})
            own = (cell.rows, cell.rtt_ms or 0.0, cell.writers)[KINDS.index(kind)]
            # One writer is below any number of several, so that the least of these has something on both sides.
            ends = settings[-1:] if kind == MANY else [settings[0], settings[-1]]
            inside = own <= ends[-1] and (kind == MANY or own >= ends[0])
            for each in cells:
                error = self.held_out[each]
                if inside and setting_of(each) in ends:
                    left.append(self.left[each])
                elif error is None:
                    raise Absent("too few cells: one of them cannot be held out")
                else:
                    found.append(error)
        middle = median(self.ages) if self.ages else None
        return Errors(median(found), max(*found, *left), len(found), middle, len(self.ages))


def setting_of(cell: Cell) -> float:
    """What a cell of its kind is varied by."""
    return (cell.rows, cell.rtt_ms or 0.0, cell.writers)[KINDS.index(cell.kinds[-1])]


def _age_error(law: Law, sound: Sequence[Cost], age: Age) -> float | None:
    """The error of a measured median age that is inside the law's reach, and of a writer that keeps up."""
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
    """The batch sizes to try, the smallest first: 1, 2, 5, 10 and so on. Absent where the load is out of reach."""
    least, most = _reach(sound)
    asked = (
        ("writers", load.writers, _most_writers(sound)),
        ("ms to the store", load.rtt_ms or 0, _farthest(sound)),
        ("commits of the table", load.commits, 2 * max(each.commits for each in sound)),  # twice those in the mean
    )
    for what, value, measured in asked:
        if value > REACH * measured:
            raise Absent(f"out of reach: {value:,.10g} {what}, measured up to {measured:,.10g}")
    if load.batch is not None:
        if not least <= load.batch <= most:
            raise Absent(f"out of reach: batches of {load.batch:,}; reached are {math.ceil(least):,} to {most:,.0f}")
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
    """Why it would not do, in words; nothing where it would."""
    if (busy := _busy(each, worst)) > ROOM:
        most = f"{100 * ROOM:.0f} %"
        return f"too slow: writers busy for up to {100 * busy:.0f} % with batches of {each.batch:,}, allowed {most}"
    if (age := each.age_s + worst * each.commit_ms / 1000) > load.fresh_s:
        return f"too old: up to {age:.3g} s with batches of {each.batch:,}"
    return ""
