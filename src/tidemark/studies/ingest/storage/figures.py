"""Figure ingest-distance: the median commit against the round trip to the object store, with fitted lines."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.analysis.quantities import Absent
from tidemark.results.figures.plots import fitted
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.studies.ingest.storage.distance import far, medians

TITLE = "A commit against the distance of the object store"
LABELS = ("round trip to the store (ms)", "median commit (ms)")
NOTE = (
    "Hot runs, one writer in a closed loop; bars: 95 % intervals; lines: Theil-Sen. The number next to a name is the "
    "slope: serial round trips a commit. The catalogs' databases are not moved."
)


def sketches() -> Iterator[Sketch]:
    yield Sketch("ingest-distance", TITLE, distance)


def distance(studio: Studio) -> Drawn:
    series = [each for each in far(studio.measures).values() if medians(studio.measures, each)]
    if not series:
        raise Absent("no series has its files in an object store")
    drawn = {each[0].title: medians(studio.measures, each) for each in series}
    return fitted(
        studio, TITLE, drawn, LABELS, [NOTE], [run for each in series for one in each for run in one.hot_runs]
    )
