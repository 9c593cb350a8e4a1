"""What is made of files in an object store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.results.tables.table import Table, Workshop
from tidemark.studies.ingest.part import PartResults, Written
from tidemark.studies.ingest.storage import tables

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from tables.build(workshop)


def _sketches() -> Iterator[Sketch]:
    from tidemark.studies.ingest.storage import figures

    yield from figures.sketches()


def _sentences(measures: Measures) -> Mapping[str, Written]:
    storage = tables.Storage(measures)
    return {"ingest-trips": storage.trips, "ingest-store": storage.against_local}


def _findings(measures: Measures) -> tuple[Written, ...]:
    return (tables.Storage(measures).trips,)


RESULTS = PartResults(_tables, _sketches, _sentences, _findings)
