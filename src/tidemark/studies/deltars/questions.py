"""Questions of the report's first table: the fastest and smallest storage of complete tables."""

from __future__ import annotations

from tidemark.analysis.quantities import Absent, Quantity
from tidemark.results.report.summary_table import Answering, Asked, Question
from tidemark.runs.runset import Series
from tidemark.studies.deltars.parts import most_common, of
from tidemark.studies.deltars.quantities import BYTES, READ_MEDIAN, WRITE_MEDIAN
from tidemark.studies.deltars.settings import shape_of


def _alike(asked: Asked) -> Series:
    """Return the system's series with the table and processors used for the comparison; Absent if there is none."""
    ran = [each for each in asked.series if each.runs]
    if not ran:
        raise Absent(asked.series[0].missing() if asked.series else "not measured")
    data, cores = most_common(asked.measures.run_set, ran[0].stack)
    found = [each for each in ran if shape_of(each.mode) == (data, cores)]
    if not found:
        raise Absent(f"not measured with {_words(data, cores)}")
    return found[0]


def _words(data: str, cores: int) -> str:
    return f"{data}, {cores} processor{'s' if cores > 1 else ''}"


def _answer(quantity: Quantity) -> Answering:
    return lambda asked, _mode: of(asked.measures, quantity, _alike(asked))


def _note(asked: Asked, _mode: str | None) -> str:
    return _words(*shape_of(_alike(asked).mode))


QUESTIONS = (
    Question(
        "whole-write", "Write", "s", _answer(WRITE_MEDIAN), note=_note,
        hint="Median time of writing a table, whole and new: of those that most systems wrote the largest, with the "
        "fewest processors.",
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
