"""Questions of the report's first table: the fastest format on one engine."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.results.report.summary_table import Answering, Asked, Question
from tidemark.runs.runset import Series
from tidemark.studies.lhbench.load.settings import LOAD
from tidemark.studies.lhbench.parts import part_of, size_of
from tidemark.studies.lhbench.quantities import LOADING, MERGING, QUERIES_AFTER, TOTAL, of
from tidemark.studies.lhbench.refresh.settings import REFRESH


def _series(asked: Asked, part: str) -> Series:
    """Return the series of a part with the largest measured scale; Absent if none was measured."""
    own = sorted((each for each in asked.series if part_of(each.mode) == part), key=lambda each: size_of(each.mode))
    ran = [each for each in own if each.runs]
    if not ran:
        raise Absent(own[0].missing() if own else "not measured")
    return ran[-1]


def _answer(quantity: Quantity, part: str) -> Answering:
    def answer(asked: Asked, _mode: str | None) -> Replicates:
        return of(asked.measures, quantity, _series(asked, part))

    return answer


def _scale(part: str) -> Callable[[Asked, str | None], str]:
    return lambda asked, _mode: f"scale factor {size_of(_series(asked, part).mode):g}"


QUESTIONS = (
    Question(
        "lake-load", "Load", "s", _answer(LOADING, LOAD), note=_scale(LOAD),
        hint="Tables of TPC-DS made of Parquet files, all together.",
        asks="Fastest load of TPC-DS",
    ),
    Question(
        "lake-queries", "Queries", "s", _answer(TOTAL, LOAD), note=_scale(LOAD),
        hint="The sum over queries of the median of each.",
        asks="Fastest queries of TPC-DS",
    ),
    Question(
        "lake-merge", "A refresh", "s", _answer(MERGING, REFRESH), note=_scale(REFRESH),
        hint="MERGE of a refresh set into fact tables, the median over refreshes.",
        asks="Fastest refresh by MERGE",
    ),
    Question(
        "lake-after", "Queries after merges", "s", _answer(QUERIES_AFTER, REFRESH), note=_scale(REFRESH),
        hint="The sum over queries of the median of each, after all refreshes and before compaction.", usual=False,
    ),
)  # fmt: skip
