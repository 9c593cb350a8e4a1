"""First table of the report: one row per system, one column per question, each answer compared with the best.

Systems are compared only within a group: one stack of one result set, with the same durability.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import HIGHER, Absent
from tidemark.analysis.statistics import Estimate, Replicates
from tidemark.results.report.questions import Asked, Question
from tidemark.runs.manifest import DEFAULT_DURABILITY
from tidemark.runs.runset import Series
from tidemark.runs.views import in_order

HARNESS, BARE = "The harness stores nothing", "Files without a table format"
DIGITS = 5  # significant digits, enough for a screen


@dataclass(frozen=True, slots=True)
class Row:
    """One system with one answer per question: a quantity, or the reason why there is none."""

    asked: Asked
    title: str
    outside: str  # why it is only a bound and not compared with the others; empty if it is compared
    level: str  # of durability
    durability: str
    marks: tuple[str, ...]
    answers: tuple[Replicates | Absent, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that may be compared with each other."""

    key: str
    title: str
    stack: str
    rows: tuple[Row, ...]

    def ranked(self, questions: Sequence[Question], place: int) -> list[tuple[Row, Replicates]]:
        """Return the systems with an answer to a question, best first, excluding those that are only bounds."""
        found = [
            (row, answer)
            for row in self.rows
            if not row.outside and isinstance(answer := row.answers[place], Replicates)
        ]
        return sorted(found, key=lambda pair: pair[1].value, reverse=questions[place].better == HIGHER)


def groups(measures: Measures, questions: Sequence[Question]) -> list[Group]:
    """Return the groups of one study's runs: stacks in order, and systems in table order within each."""
    run_set = measures.run_set
    made = []
    for stack in in_order(run_set):
        listed = dict.fromkeys(series.system for series in run_set.select(stack=stack))
        rows: dict[str, list[Row]] = {}
        for system in listed:
            series = tuple(each for each in run_set.series if (each.system, each.stack) == (system, stack))
            row = _row(Asked(measures, system, series), questions)
            rows.setdefault(row.level, []).append(row)
        for level, found in rows.items():
            several = f", durability: {level}" if len(rows) > 1 or level != DEFAULT_DURABILITY else ""
            key = f"{stack}{'' if level == DEFAULT_DURABILITY else f'-{level}'}"
            made.append(Group(key, f"Software stack {stack}{several}", stack, tuple(found)))
    return made


def _row(asked: Asked, questions: Sequence[Question]) -> Row:
    first = asked.series[0]
    run = next((run for series in asked.series for run in series.runs), None)
    system = run.manifest.system if run else None
    return Row(
        asked=asked,
        title=first.title,
        outside=HARNESS if first.is_harness else BARE if system and system.is_bare else "",
        level=system.durability_level if system else DEFAULT_DURABILITY,
        durability=system.durability if system else "not measured",
        marks=_marks(asked.series),
        answers=tuple(_answer(question, asked) for question in questions),
    )


def _answer(question: Question, asked: Asked) -> Replicates | Absent:
    try:
        found = question.ask(asked)
    except Absent as absent:
        return absent
    return found if math.isfinite(found.value) else Absent("cannot be computed from so few operations")


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
    questions: tuple[Question, ...]

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
    return [
        group
        for subject in subjects
        for group in matrix_data(
            subject.groups,
            subject.questions,
            colours,
            tuple(filter(None, (source, subject.study if len(subjects) > 1 else ""))),
            source,
        )
    ]


def matrix_data(
    made: Sequence[Group],
    questions: Sequence[Question],
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
                    "harness": row.asked.series[0].is_harness,
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


def question_data(questions: Sequence[Question], made: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the questions as JSON. A question without any answer is hidden by default."""
    answered = [
        any(isinstance(row.answers[place], Replicates) for group in made for row in group.rows)
        for place in range(len(questions))
    ]
    return [
        {
            "key": each.key,
            "title": each.title,
            "unit": each.unit,
            "mode": each.mode,
            "better": each.better,
            "signed": each.signed,
            "hint": each.hint,
            "shown": each.usual and found,
        }
        for each, found in zip(questions, answered, strict=True)
    ]


def _cell(question: Question, row: Row, place: int) -> dict[str, Any]:
    answer = row.answers[place]
    if isinstance(answer, Absent):
        return {"missing": str(answer)}
    estimate = answer.estimate(question.unit)
    return {"value": _short(estimate.value), **_ends(estimate), "note": question.noted(row.asked)}


def _ends(estimate: Estimate) -> dict[str, float | None]:
    return {"low": _short(estimate.low), "high": _short(estimate.high)}


def _ratios(group: Group, question: Question, place: int) -> list[list[list[float | None] | None]]:
    answers = [row.answers[place] for row in group.rows]
    return [[None if i is j else _ratio(question, i, j) for j in answers] for i in answers]


def _ratio(question: Question, one: Replicates | Absent, other: Replicates | Absent) -> list[float | None] | None:
    if isinstance(one, Absent) or isinstance(other, Absent):
        return None
    try:
        found = question.worse(one, other).estimate("")
    except Absent:
        return None
    return [_short(found.value), _short(found.low), _short(found.high)]


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
