"""Figures of the parts storage and pruning: ingest-distance and ingest-pruning."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tidemark.analysis.quantities import Absent
from tidemark.results.figures.plots import fitted, heat
from tidemark.results.figures.studio import Drawn, Sketch, Studio
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


def sketches() -> Iterator[Sketch]:
    yield Sketch("ingest-distance", DISTANCE, distance)
    yield Sketch("ingest-pruning", PRUNING, pruning)


def distance(studio: Studio) -> Drawn:
    """Draw the median commit against the round trip to the object store, with fitted lines."""
    series = [each for each in far(studio.measures).values() if medians(studio.measures, each)]
    if not series:
        raise Absent("no series has its files in an object store")
    drawn = {each[0].title: medians(studio.measures, each) for each in series}
    return fitted(
        studio,
        DISTANCE,
        drawn,
        LABELS,
        [DISTANCE_NOTE],
        [run for each in series for one in each for run in one.hot_runs],
    )


def pruning(studio: Studio) -> Drawn:
    """Draw the files that a query is left to read: a row per system, a column per filter."""
    found = [each for each in series_of(studio.measures) if each.hot_runs]
    if not found:
        raise Absent("no system was asked for filtered rows")
    runs, most = [each.hot_runs[0] for each in found], [files_of(each) for each in found]
    names = [f"{each.title}, {files:,} files" for each, files in zip(found, most, strict=True)]
    counts = pd.DataFrame([{name: files_read(run, name) for name in BY_NAME} for run in runs], index=names)
    return heat(studio, PRUNING, counts, most, [PRUNING_NOTE], runs)
