"""What is made of cuts of the power."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.studies.ingest.cut import tables
from tidemark.studies.ingest.part import PartResults, Written

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch


def _no_sketches() -> Iterator[Sketch]:
    return iter(())


def _sentences(measures: Measures) -> Mapping[str, Written]:
    return {"ingest-power-cut": partial(tables.cut_sentence, measures.run_set)}


def _findings(measures: Measures) -> tuple[Written, ...]:
    return (partial(tables.cut_sentence, measures.run_set),)


RESULTS = PartResults(tables.build, _no_sketches, _sentences, _findings)
