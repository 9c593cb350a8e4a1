"""What is made of requests that come by a schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.results.tables.table import Table, Workshop
from tidemark.studies.ingest.part import PartResults, Written
from tidemark.studies.ingest.tail import tables
from tidemark.studies.ingest.tail.quantities import CODE, QUANTITIES
from tidemark.studies.ingest.tail.sentences import Tail

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from tables.build(workshop)


def _sketches() -> Iterator[Sketch]:
    from tidemark.studies.ingest.tail import figures

    yield from figures.sketches()


def _sentences(measures: Measures) -> Mapping[str, Written]:
    return Tail(measures).sentences()


def _findings(measures: Measures) -> tuple[Written, ...]:
    return (Tail(measures).omitted,)


RESULTS = PartResults(_tables, _sketches, _sentences, _findings, QUANTITIES, CODE)
