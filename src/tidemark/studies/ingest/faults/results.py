"""What is made of kills, and of what is on the disk at an acknowledgement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.results.tables.table import Table, Workshop
from tidemark.studies.ingest.faults import durability, tables
from tidemark.studies.ingest.faults.kills import doubt_sentence, down_sentence, kept_sentence, on_disk_sentence
from tidemark.studies.ingest.part import PartResults, Written

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from tables.build(workshop)
    yield from durability.build(workshop)


def _sketches() -> Iterator[Sketch]:
    from tidemark.studies.ingest.faults import figures

    yield from figures.sketches()


def _sentences(measures: Measures) -> Mapping[str, Written]:
    run_set = measures.run_set
    return {
        "ingest-killed": partial(kept_sentence, run_set),
        "ingest-doubt": partial(doubt_sentence, run_set),
        "ingest-down": partial(down_sentence, run_set),
        "ingest-on-disk": partial(on_disk_sentence, run_set),
    }


def _findings(measures: Measures) -> tuple[Written, ...]:
    return (partial(kept_sentence, measures.run_set),)


RESULTS = PartResults(_tables, _sketches, _sentences, _findings)
