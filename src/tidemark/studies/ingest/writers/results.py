"""What is made of many writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.results.tables.table import Table, Workshop
from tidemark.studies.ingest.part import PartResults, Written
from tidemark.studies.ingest.writers import tables
from tidemark.studies.ingest.writers.sentences import Writer

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from tables.build(workshop)


def _sketches() -> Iterator[Sketch]:
    from tidemark.studies.ingest.writers import figures

    yield from figures.sketches()


def _sentences(measures: Measures) -> Mapping[str, Written]:
    return Writer(measures).sentences()


def _findings(measures: Measures) -> tuple[Written, ...]:
    writer = Writer(measures)
    return (writer.scaling, writer.conflicts, writer.lost, writer.retrying)


RESULTS = PartResults(_tables, _sketches, _sentences, _findings)
