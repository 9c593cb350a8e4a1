"""What is made of requests that a front gathers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.results.tables.table import Table, Workshop
from tidemark.studies.ingest.group import tables
from tidemark.studies.ingest.group.sentences import Gathering
from tidemark.studies.ingest.part import PartResults, Written

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from tables.build(workshop)


def _sketches() -> Iterator[Sketch]:
    from tidemark.studies.ingest.group import figures

    yield from figures.sketches()


def _sentences(measures: Measures) -> Mapping[str, Written]:
    return Gathering(measures).sentences()


def _findings(measures: Measures) -> tuple[Written, ...]:
    gathering = Gathering(measures)
    return (gathering.staged, gathering.bundled)


RESULTS = PartResults(_tables, _sketches, _sentences, _findings)
