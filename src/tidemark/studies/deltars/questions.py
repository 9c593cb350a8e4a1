"""Which place for whole tables: what the report's first table asks of each system."""

from __future__ import annotations

from tidemark.analysis.quantities import Absent, Quantity
from tidemark.results.report.questions import Answering, Asked, Question
from tidemark.runs.runset import Series
from tidemark.studies.deltars.parts import of, size_of
from tidemark.studies.deltars.quantities import BYTES, READ_MEDIAN, WRITE_MEDIAN
from tidemark.studies.deltars.settings import shape_of


def _largest(asked: Asked) -> Series:
    """The series of the largest table, with the fewest processors."""
    ran = [each for each in asked.series if each.runs]
    if not ran:
        raise Absent(asked.series[0].missing() if asked.series else "not measured")
    return max(ran, key=lambda each: (size_of(shape_of(each.mode)[0]), -shape_of(each.mode)[1]))


def _answer(quantity: Quantity) -> Answering:
    return lambda asked, _mode: of(asked.measures, quantity, _largest(asked))


def _note(asked: Asked, _mode: str | None) -> str:
    data, cores = shape_of(_largest(asked).mode)
    return f"{data}, {cores} processors"


QUESTIONS = (
    Question(
        "whole-write", "Write", "s", _answer(WRITE_MEDIAN), note=_note,
        hint="Median time of writing the largest table that was measured, whole and new, with the fewest processors.",
        asks="Fastest write of a whole table",
    ),
    Question(
        "whole-read", "Read", "s", _answer(READ_MEDIAN), note=_note,
        hint="Median time of reading it whole into memory.",
        asks="Fastest read of a whole table",
    ),
    Question(
        "whole-bytes", "Bytes a row", "B", _answer(BYTES), note=_note,
        hint="Data and metadata of it on the disk, by its rows.",
    ),
)  # fmt: skip
