"""Measured ages of events, with which predicted ages are compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent
from tidemark.planner.cost_model import Age
from tidemark.studies.freshness.parts import of
from tidemark.studies.freshness.quantities import MADE_P50, ROWS
from tidemark.studies.freshness.settings import shape_of


def costs(measures: Measures) -> Iterator[Age]:
    """Yield the ages of series with one rate and no kills whose tables hold each event once."""
    for series in measures.run_set.series:
        shape = shape_of(series.mode)
        if not shape.is_steady or not series.runs or series.is_harness:
            continue
        with suppress(Absent):
            rows, age = of(measures, ROWS, series).value, of(measures, MADE_P50, series).value
            yield Age(series.system, series.stack, shape.rate, rows, age)
