"""First table of the report, as CSV, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.analysis.quantities import Absent
from tidemark.analysis.words import Cell, Missing
from tidemark.results.report.matrix import groups
from tidemark.results.report.questions import Question
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop


def matrix_table(workshop: Workshop, questions: Sequence[Question]) -> Table:
    """Return the table with one row per system and stack, and one column per question."""
    made = groups(workshop.measures, questions)
    columns = (
        SYSTEM,
        Column("stack", "Stack"),
        Column("durability", "Durability"),
        *(Column(_key(each), _title(each), each.unit, interval=True) for each in questions),
    )
    rows: list[list[Cell]] = []
    for group in made:
        for row in group.rows:
            rows.append([row.title, group.stack, row.level])
            rows[-1] += [
                Missing(str(answer)) if isinstance(answer, Absent) else answer.estimate(question.unit)
                for question, answer in zip(questions, row.answers, strict=True)
            ]
    runs = [run for group in made for row in group.rows for series in row.asked.series for run in series.runs]
    notes = [f"{_title(each)}: {each.hint}" for each in questions]
    return workshop.table("matrix", "Which system for which write", columns, rows, runs, notes)


def usual_columns(questions: Sequence[Question]) -> set[str]:
    """Return the keys of the columns that are shown by default."""
    return {_key(each) for each in questions if each.usual}


def _key(question: Question) -> str:
    return question.key.replace("-", "_")


def _title(question: Question) -> str:
    return f"{question.title}, {question.mode}" if question.mode else question.title
