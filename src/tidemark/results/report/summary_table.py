"""Summary table: one row per system, one column per question, each answer compared with the best.

A study declares its questions:

    RATE = Question("rate-single", "Events/s", "events/s", hot(HARNESS_RATE), "...", mode="single", better=HIGHER)

A question covers all series of one system under one stack and one level of durability. Systems are compared only
within a group: one stack of one result set, with the same durability. The table is shown by the report, and written as
CSV, Markdown and JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tidemark.analysis.formatting import Cell, MissingCell
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import HIGHER, LOWER, Metric, NotAvailable, checked_ratio, require
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.results.claims.claim_data import positive
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.manifest import DEFAULT_DURABILITY
from tidemark.runs.runset import Series
from tidemark.runs.spec import MAIN
from tidemark.runs.views import in_order


@dataclass(frozen=True, slots=True)
class SystemRuns:
    """One system under one stack: its series in all sweeps, and their measures."""

    measures: Measures
    system: str
    series: tuple[Series, ...]

    def main(self, mode: str | None) -> Series:
        """Return the series of the main configuration in a mode; raise NotAvailable if there is none with runs."""
        found = [each for each in self.series if each.sweep == MAIN and mode in (None, each.mode)]
        return with_runs(found[:1], f"not measured in the mode '{mode}'")[0]

    def first(self, is_meant: Callable[[Series], bool], otherwise: str) -> Series:
        """Return the first series for which `is_meant` holds; raise NotAvailable, with a reason, if it has no runs."""
        found = next((each for each in self.series if is_meant(each)), None)
        return with_runs([found] if found else [], otherwise)[0]


def with_runs(series: Sequence[Series], otherwise: str = "not measured") -> list[Series]:
    """Return those of `series` that have runs; raise NotAvailable, with the reason of the first, if none has."""
    return require([each for each in series if each.runs], series[0].missing() if series else otherwise)


type Answering = Callable[[SystemRuns, str | None], BootstrapEstimate]
type Remark = Callable[[SystemRuns, str | None], str]


def no_remark(_asked: SystemRuns, _mode: str | None) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class SummaryMetric:
    """A column of the table. If `signed`, systems are compared by difference, otherwise by ratio."""

    key: str
    title: str
    unit: str
    of: Answering
    hint: str  # a sentence describing the number and how it is counted
    mode: str | None = None
    better: str = LOWER
    signed: bool = False
    usual: bool = True  # shown by default
    replaced: bool = False  # shown where results are kept that were made before the usual questions were asked
    note: Remark = no_remark  # on one answer
    # Title of a headline question, which the report answers in words with the best or worst system; else None.
    asks: str | None = None
    extreme: str = "best"  # or "worst"
    nothing: float | None = None  # value that means that nothing was seen; 0 for a signed question
    none: str = "None was seen"  # answer to such a question if no system is above that value

    @property
    def at_least(self) -> float | None:
        """Return the value that a system must be above to be an answer; None if there is no such value."""
        return 0.0 if self.signed else self.nothing

    def noted(self, asked: SystemRuns) -> str:
        """Return the remark on the answer; empty if there is none."""
        try:
            return self.note(asked, self.mode)
        except NotAvailable:
            return ""

    def worse(self, one: BootstrapEstimate, other: BootstrapEstimate) -> BootstrapEstimate:
        """Return the factor (if `signed`, the difference) by which `one` is worse than `other`.

        Raise NotAvailable if there is no ratio.
        """
        first, second = (one, other) if self.better == LOWER else (other, one)
        return first.difference(second) if self.signed else checked_ratio(first, second)


def questions_of(
    module: str, answers: Mapping[str, Answering], remarks: Mapping[str, Remark] = MappingProxyType({})
) -> tuple[SummaryMetric, ...]:
    """Return the questions of questions.yaml in the folder of the file `module`, with these functions, by key.

    The file has the other fields of each question. Raise KeyError for one without an answer.
    """
    texts = yaml.load(Path(module).with_name("questions.yaml").read_text(), yaml.CSafeLoader)
    return tuple(
        SummaryMetric(key=key, of=answers[key], note=remarks.get(key, no_remark), **text) for key, text in texts.items()
    )


def hot(quantity: Metric) -> Answering:
    """Return a function that answers with `quantity` of the main configuration's hot runs."""
    return lambda asked, mode: asked.measures.hot(quantity, asked.main(mode))


def of_series(
    quantity: Metric, series: Callable[[SystemRuns], Series], factor: float = 1.0, hot: bool = False
) -> Answering:
    """Return a function that answers with `quantity` of the series that `series` selects, times `factor`."""

    def answer(asked: SystemRuns, _mode: str | None) -> BootstrapEstimate:
        measures, chosen = asked.measures, series(asked)
        found = measures.hot(quantity, chosen) if hot else measures.value(quantity, chosen)
        found = found if factor == 1 else found.scaled(factor)
        return positive(found) if hot and not quantity.signed else found

    return answer


hot_of = partial(of_series, hot=True)


def cold(quantity: Metric) -> Answering:
    """Return a function that answers with `quantity` of the main configuration's run 0."""
    return lambda asked, mode: asked.measures.cold(quantity, asked.main(mode))


# Why a row is not compared with the others.
HARNESS, BARE = "The harness stores nothing", "Files without a table format"
AGAIN = "Measures the system of another row a second time"
DIGITS = 5  # significant digits, enough for a screen


@dataclass(frozen=True, slots=True)
class Row:
    """One system with one answer per question: a quantity, or the reason why there is none."""

    asked: SystemRuns
    title: str
    outside: str  # why it is not compared with the others; empty if it is compared
    level: str  # of durability
    durability: str
    marks: tuple[str, ...]
    answers: tuple[BootstrapEstimate | NotAvailable, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that may be compared with each other."""

    key: str
    title: str
    stack: str
    rows: tuple[Row, ...]

    def ranked(self, questions: Sequence[SummaryMetric], place: int) -> list[tuple[Row, BootstrapEstimate]]:
        """Return the systems with an answer to a question, best first, excluding those that are not compared."""
        found = [
            (row, answer)
            for row in self.rows
            if not row.outside and isinstance(answer := row.answers[place], BootstrapEstimate)
        ]
        return sorted(found, key=lambda pair: pair[1].value, reverse=questions[place].better == HIGHER)

    def without(self, place: int) -> list[str]:
        """Return the titles of the systems that have no answer to a question."""
        return [row.title for row in self.rows if not row.outside and isinstance(row.answers[place], NotAvailable)]


def groups(measures: Measures, questions: Sequence[SummaryMetric]) -> list[Group]:
    """Return the groups of one study's runs: stacks in order, and systems in table order within each."""
    run_set = measures.run_set
    made = []
    for stack in in_order(run_set):
        rows: dict[str, list[Row]] = {}
        for system in dict.fromkeys(series.system for series in run_set.select(stack=stack)):
            series = tuple(each for each in run_set.series if (each.system, each.stack) == (system, stack))
            row = _row(SystemRuns(measures, system, series), questions)
            rows.setdefault(row.level, []).append(row)
        for level, found in rows.items():
            several = f", durability: {level}" if len(rows) > 1 or level != DEFAULT_DURABILITY else ""
            key = f"{stack}{'' if level == DEFAULT_DURABILITY else f'-{level}'}"
            made.append(Group(key, f"Software stack {stack}{several}", stack, tuple(found)))
    return made


def _row(asked: SystemRuns, questions: Sequence[SummaryMetric]) -> Row:
    first = asked.series[0]
    run = next((run for series in asked.series for run in series.runs), None)
    system = run.manifest.system if run else None
    reasons = {HARNESS: first.is_null_baseline, BARE: system is not None and system.is_bare, AGAIN: first.is_twin}
    return Row(
        asked=asked,
        title=first.title,
        outside=next((reason for reason, holds in reasons.items() if holds), ""),
        level=system.durability_level if system else DEFAULT_DURABILITY,
        durability=system.durability if system else "not measured",
        marks=_marks(asked.series),
        answers=tuple(_answer(question, asked) for question in questions),
    )


def _answer(question: SummaryMetric, asked: SystemRuns) -> BootstrapEstimate | NotAvailable:
    try:
        found = question.of(asked, question.mode)
    except NotAvailable as absent:
        return absent
    return found if math.isfinite(found.value) else NotAvailable("cannot be computed from so few operations")


def _marks(series: Sequence[Series]) -> tuple[str, ...]:
    """Return warnings about a system's runs that readers need before they use its numbers."""
    runs = [run for each in series for run in each.runs]
    disturbed = sum(bool(run.disturbed) for run in runs)
    made = [f"{disturbed:,} of {len(runs):,} runs were disturbed by other work"] if disturbed else []
    other = sum(bool(set(run.manifest.marks) - set(run.disturbed)) for run in runs)
    made += [f"{other:,} of {len(runs):,} runs carry another mark, see the runs"] if other else []
    made += [f"{each.mode_title}: {each.status}" for each in series if each.status != "complete"]
    return tuple(made)


@dataclass(frozen=True)
class Subject:
    """A study in the report: the measures of its runs, and its questions in the first table."""

    measures: Measures
    questions: tuple[SummaryMetric, ...]

    @property
    def study(self) -> str:
        return self.measures.run_set.studies[0]

    @cached_property
    def groups(self) -> list[Group]:
        return groups(self.measures, self.questions)


def asking(subjects: Iterable[Subject]) -> list[Subject]:
    """Return the studies with a table, that is, those with questions."""
    return [subject for subject in subjects if subject.questions]


def comparisons(subjects: Sequence[Subject], colours: Mapping[str, str], source: str = "") -> list[dict[str, Any]]:
    """Return the groups of all studies as JSON, named by `source` and, if there are several studies, by study."""
    found: list[dict[str, Any]] = []
    for subject in subjects:
        names = tuple(filter(None, (source, subject.study if len(subjects) > 1 else "")))
        found += matrix_data(subject.groups, subject.questions, colours, names, source)
    return found


def matrix_data(
    made: Sequence[Group],
    questions: Sequence[SummaryMetric],
    colours: Mapping[str, str],
    names: Sequence[str] = (),
    source: str = "",
) -> list[dict[str, Any]]:
    """Return the groups as JSON, with cells by question; workflow/report/page/matrix.js reads it.

    `names` distinguish the groups from those of other studies and result sets; `source` is the result set.
    """
    return [
        {
            "key": "/".join((*names, group.key)),
            "title": ": ".join((*names, group.title)),
            "stack": group.stack,
            "source": source,
            "asked": [question.key for question in questions],
            "rows": [
                {
                    "system": row.asked.system,
                    "title": row.title,
                    "colour": colours.get(row.asked.system, "#777777"),
                    "harness": row.asked.series[0].is_null_baseline,
                    "outside": row.outside,
                    "durability_level": row.level,
                    "durability": row.durability,
                    "marks": list(row.marks),
                    "cells": {question.key: _cell(question, row, place) for place, question in enumerate(questions)},
                }
                for row in group.rows
            ],
            "ratios": {question.key: _ratios(group, question, place) for place, question in enumerate(questions)},
        }
        for group in made
    ]


def question_data(questions: Sequence[SummaryMetric], made: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the questions as JSON. A question without any answer is hidden by default."""
    answered = [
        any(isinstance(row.answers[place], BootstrapEstimate) for group in made for row in group.rows)
        for place in range(len(questions))
    ]
    names = ("key", "title", "unit", "mode", "better", "signed", "hint")
    return [
        {name: getattr(each, name) for name in names} | {"shown": each.usual and found}
        for each, found in zip(questions, answered, strict=True)
    ]


def _cell(question: SummaryMetric, row: Row, place: int) -> dict[str, Any]:
    answer = row.answers[place]
    if isinstance(answer, NotAvailable):
        return {"missing": str(answer)}
    value, low, high = shortened(answer.estimate(question.unit))
    return {"value": value, "low": low, "high": high, "note": question.noted(row.asked)}


def _ratios(group: Group, question: SummaryMetric, place: int) -> list[list[list[float | None] | None]]:
    answers = [row.answers[place] for row in group.rows]
    return [[None if i is j else _ratio(question, i, j) for j in answers] for i in answers]


def _ratio(
    question: SummaryMetric, one: BootstrapEstimate | NotAvailable, other: BootstrapEstimate | NotAvailable
) -> list[float | None] | None:
    if isinstance(one, NotAvailable) or isinstance(other, NotAvailable):
        return None
    try:
        return shortened(question.worse(one, other).estimate(""))
    except NotAvailable:
        return None


def shortened(estimate: Estimate) -> list[float | None]:
    """Return the value and the ends of its interval, as `short` does."""
    return [short(estimate.value), short(estimate.low), short(estimate.high)]


def short(value: float | None) -> float | None:
    """Round to DIGITS significant digits; None for no finite number."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


def matrix_table(builder: TableBuilder, questions: Sequence[SummaryMetric]) -> Table:
    """Return the table with one row per system and stack, and one column per question."""
    made = groups(builder.measures, questions)
    columns = (
        SYSTEM,
        Column("stack", "Stack"),
        Column("durability", "Durability"),
        *(Column(_key(each), heading(each), each.unit, interval=True) for each in questions),
    )
    rows: list[list[Cell]] = []
    for group in made:
        for row in group.rows:
            rows.append([row.title, group.stack, row.level])
            rows[-1] += [
                MissingCell(str(answer)) if isinstance(answer, NotAvailable) else answer.estimate(question.unit)
                for question, answer in zip(questions, row.answers, strict=True)
            ]
    runs = [run for group in made for row in group.rows for series in row.asked.series for run in series.runs]
    notes = list(dict.fromkeys(f"{each.title}: {each.hint}" for each in questions))  # once for all modes
    return builder.table("matrix", "Which system for which write", columns, rows, runs, notes)


def usual_columns(questions: Sequence[SummaryMetric], there: Collection[str]) -> set[str]:
    """Return the keys of the columns to show by default of a table that has those in `there`."""
    usual = {_key(each) for each in questions if each.usual}
    return usual if usual <= set(there) else usual | {_key(each) for each in questions if each.replaced}


def _key(question: SummaryMetric) -> str:
    return question.key.replace("-", "_")


def heading(question: SummaryMetric) -> str:
    return f"{question.title}, {question.mode}" if question.mode else question.title
