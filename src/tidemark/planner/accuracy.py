"""Reliability of predictions for loads that were not measured, by system and kind of load, and its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.analysis.formatting import Cell as TableCell
from tidemark.analysis.formatting import MissingCell, listed
from tidemark.analysis.metrics import NotAvailable
from tidemark.planner.cost_model import FAR, MANY, PLAIN, Age, Cell, Cost, by_system
from tidemark.planner.prediction import KINDS, Errors, Judged, Load, checked, setting_of
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.views import all_runs

BOUND = 0.3  # the largest error with which a load is predicted
BEYOND = 2  # times the largest measured setting: a load beyond the measured range
OF_KIND = {
    PLAIN: "one writer, local files",
    FAR: "one writer, a store at a distance",
    MANY: "several writers, local files",
}
COLUMNS = (
    SYSTEM, Column("stack", "Software"), Column("load", "Load"), Column("cells", "Cells held out"),
    Column("median", "Error, median", "%"), Column("worst", "Error, worst", "%"),
    Column("age", "Error of ages, median", "%"), Column("verdict", "Verdict"),
)  # fmt: skip
PREDICTED, NOT_PREDICTED = "predicted", "NOT PREDICTED"
NOTES = (
    "A commit is modelled as a fixed time, a time a row, round trips to a store, a wait for other writers, and more "
    "with each commit before it. Each measured cell is held out in turn, with all others of the same conditions; the "
    "law is fitted to the rest, and its prediction compared with the measurement: 30 % is that much too long or short. "
    "Worst: also of what the law leaves at the ends of what was measured, which are held out for loads beyond.",
    f"Where the worst error, or the median one of ages, is above {100 * BOUND:.0f} %, or too few cells were measured, "
    "'./tidemark advise' predicts nothing, unless it is given another bound. Ages are those of the study on freshness, "
    "which are in no fit.",
)


@dataclass(frozen=True, slots=True)
class PredictionAccuracy:
    """Errors of a system's law for loads of one kind, inside or beyond the measured range.

    `errors` is None if nothing could be held out. `reason` states why nothing is predicted; empty if it is.
    """

    system: str
    title: str
    stack: str
    kind: str
    is_beyond: bool
    errors: Errors | None
    reason: str

    @property
    def load(self) -> str:
        """Description of the kind of load."""
        return f"{OF_KIND[self.kind]}; {'beyond' if self.is_beyond else 'inside of'} what was measured"


def standings(points: Sequence[Cost | Age]) -> list[PredictionAccuracy]:
    """Return standings sorted by system, stack and kind, for the kinds that each system was measured in."""
    ordered = sorted(by_system(points), key=lambda pair: (pair[0][0].system, pair[0][0].stack))
    return [standing for costs, ages in ordered for standing in _of_system(costs, ages)]


def conclusion(found: Sequence[PredictionAccuracy]) -> str:
    """Return sentences that state for which systems loads are predicted, and for which not."""
    if not found:
        return "No run here measures the cost of a commit: no other load is predicted."
    inside = [each for each in found if not each.is_beyond]
    good = [
        f"{each.title} ({OF_KIND[each.kind]}: {100 * each.errors.median:.0f} % and {100 * each.errors.worst:.0f} %)"
        for each in inside
        if each.errors and not each.reason
    ]
    bad = _not_predicted(inside)
    text = "A law of what a commit costs, fitted to measured cells, predicts loads that were not measured. "
    if good:
        text += f"On cells held out from the fit its error is, in the median and at worst: {'; '.join(good)}. "
    if bad:
        text += f"Not predicted, the bound being {100 * BOUND:.0f} %: {'; '.join(bad)}. "
    beyond = sorted({each.title for each in found if each.is_beyond and not each.reason})
    text += (
        f"Beyond what was measured it is trusted for {listed(beyond)}."
        if beyond
        else "It is not trusted beyond what was measured."
    )
    return text


def _not_predicted(inside: Sequence[PredictionAccuracy]) -> list[str]:
    """Return each reason once, after the systems it applies to; with the kind of load if it applies to one only."""
    by_reason: dict[str, list[PredictionAccuracy]] = {}
    for each in inside:
        if each.reason:
            by_reason.setdefault(each.reason, []).append(each)
    lines = []
    for reason, those in by_reason.items():
        who = f" ({OF_KIND[those[0].kind]})" if len(those) == 1 else ""
        lines.append(f"{listed(list(dict.fromkeys(each.title for each in those)))}{who}: {reason}")
    return lines


def _of_system(costs: Sequence[Cost], ages: Sequence[Age]) -> Iterator[PredictionAccuracy]:
    first = costs[0]
    who = (first.system, first.title, first.stack)
    for kind in KINDS:
        if kind != PLAIN and all(each.cell.kinds[-1] != kind for each in costs):
            continue
        try:
            sound = checked(_asking(kind), costs)
            judged = Judged.of(sound, ages)
            cells = _cells(kind, sound)
        except NotAvailable as absent:
            yield PredictionAccuracy(*who, kind, False, None, str(absent))
            continue
        for is_beyond, cell in enumerate(cells):
            try:
                errors = judged.errors(cell)
            except NotAvailable as absent:
                yield PredictionAccuracy(*who, kind, bool(is_beyond), None, str(absent))
            else:
                yield PredictionAccuracy(*who, kind, bool(is_beyond), errors, errors.above(BOUND) or "")


def _asking(kind: str) -> Load:
    """Return a load of `kind`. Its size does not affect which cells the law is fitted to."""
    return Load(rate=1, fresh_s=1, writers=2 if kind == MANY else 1, rtt_ms=0.0 if kind == FAR else None)


def _cells(kind: str, sound: Sequence[Cost]) -> tuple[Cell, Cell]:
    """Return a cell inside the measured range of `kind`, and one beyond it."""

    def settings(of: str) -> list[float]:
        return sorted({setting_of(each.cell) for each in sound if each.cell.kinds[-1] == of})

    rows, own = settings(PLAIN), settings(kind)
    middle, inside, beyond = round(rows[len(rows) // 2]), own[len(own) // 2], BEYOND * own[-1]
    if kind == PLAIN:
        return Cell(round(inside)), Cell(round(beyond))
    if kind == FAR:
        return Cell(middle, rtt_ms=inside), Cell(middle, rtt_ms=beyond)
    return Cell(middle, round(inside)), Cell(middle, round(beyond))


def build(builder: TableBuilder, points: Sequence[Cost | Age]) -> Iterator[Table]:
    """Yield the table planning, if a study provides commit costs."""
    found = standings(points)
    if found:
        systems = {(each.system, each.stack) for each in found}
        runs = all_runs(each for each in builder.run_set.series if (each.system, each.stack) in systems)
        title = "How far predictions of other loads are off on cells held out"
        yield builder.table("planning", title, COLUMNS, [line(each) for each in found], runs, NOTES)


def line(standing: PredictionAccuracy) -> list[TableCell]:
    head: list[TableCell] = [standing.title, standing.stack, standing.load]
    verdict = f"{NOT_PREDICTED}: {standing.reason}" if standing.reason else PREDICTED
    errors = standing.errors
    if errors is None:
        return [*head, *[MissingCell(standing.reason)] * 4, verdict]
    age: TableCell = MissingCell("no age of a writer that keeps up was measured")
    if errors.age_median is not None:
        age = 100 * errors.age_median
    return [*head, errors.cells, 100 * errors.median, 100 * errors.worst, age, verdict]
