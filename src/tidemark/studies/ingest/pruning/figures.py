"""Figure ingest-pruning: files that a query is left to read, one row per system and one column per filter."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tidemark.analysis.quantities import Absent
from tidemark.results.figures.plots import heat
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.studies.ingest.pruning.settings import files_of
from tidemark.studies.ingest.pruning.tables import files_read, series_of
from tidemark.systems.pruning_dataset import BY_NAME

TITLE = "Files that a query is left to read, of those of the table"
NOTE = "Of each system's first hot run; queries and how files are counted: see the table ingest-pruning."


def sketches() -> Iterator[Sketch]:
    yield Sketch("ingest-pruning", TITLE, pruning)


def pruning(studio: Studio) -> Drawn:
    found = [each for each in series_of(studio.measures) if each.hot_runs]
    if not found:
        raise Absent("no system was asked for filtered rows")
    runs, most = [each.hot_runs[0] for each in found], [files_of(each.mode) for each in found]
    names = [f"{each.title}, {files:,} files" for each, files in zip(found, most, strict=True)]
    counts = pd.DataFrame([{name: files_read(run, name) for name in BY_NAME} for run in runs], index=names)
    return heat(studio, TITLE, counts, most, [NOTE], runs)
