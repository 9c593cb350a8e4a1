"""Figures of the parts storage and pruning: ingest-distance and ingest-pruning."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tidemark.analysis.metrics import NotAvailable
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.results.figures.plots import fitted, heat
from tidemark.studies.ingest.object_store.results import far, medians
from tidemark.studies.ingest.pruning.results import files_of, files_read, series_of
from tidemark.systems.pruning_dataset import BY_NAME

DISTANCE = "A commit against the distance of the object store"
LABELS = ("round trip to the store (ms)", "median commit (ms)")
DISTANCE_NOTE = (
    "Hot runs, one writer in a closed loop; bars: 95 % intervals; lines: Theil-Sen. The number next to a name is the "
    "slope: serial round trips a commit. The catalogs' databases are not moved."
)
PRUNING = "Files that a query is left to read, of those of the table"
PRUNING_NOTE = "Of each system's first hot run; queries and how files are counted: see the table ingest-pruning."


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-distance", DISTANCE, distance)
    yield FigureSpec("ingest-pruning", PRUNING, pruning)


def distance(context: FigureContext) -> DrawnFigure:
    """Draw the median commit against the round trip to the object store, with fitted lines."""
    series = [each for each in far(context.measures).values() if medians(context.measures, each)]
    if not series:
        raise NotAvailable("no series has its files in an object store")
    drawn = {each[0].title: medians(context.measures, each) for each in series}
    return fitted(
        context,
        DISTANCE,
        drawn,
        LABELS,
        [DISTANCE_NOTE],
        [run for each in series for one in each for run in one.hot_runs],
    )


def pruning(context: FigureContext) -> DrawnFigure:
    """Draw the files that a query is left to read: a row per system, a column per filter."""
    found = [each for each in series_of(context.measures) if each.hot_runs]
    if not found:
        raise NotAvailable("no system was asked for filtered rows")
    runs, most = [each.hot_runs[0] for each in found], [files_of(each) for each in found]
    names = [f"{each.title}, {files:,} files" for each, files in zip(found, most, strict=True)]
    counts = pd.DataFrame([{name: files_read(run, name) for name in BY_NAME} for run in runs], index=names)
    return heat(context, PRUNING, counts, most, [PRUNING_NOTE], runs)
