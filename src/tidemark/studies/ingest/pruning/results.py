"""What is made of filtered queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.results.tables.table import Table, Workshop
from tidemark.studies.ingest.part import PartResults, Written
from tidemark.studies.ingest.pruning import tables

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from tables.build(workshop)


def _sketches() -> Iterator[Sketch]:
    from tidemark.studies.ingest.pruning import figures

    yield from figures.sketches()


def _sentences(measures: Measures) -> Mapping[str, Written]:
    return {"ingest-pruning": tables.Pruning(measures).fewest}


def _findings(measures: Measures) -> tuple[Written, ...]:
    del measures  # what is read is no speed of a stream
    return ()


RESULTS = PartResults(
    _tables,
    _sketches,
    _sentences,
    _findings,
    quantities=tables.QUANTITIES,
    code=("studies/ingest/pruning/tables.py", "systems/apart.py"),
)
