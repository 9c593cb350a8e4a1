"""Results of the kills, and of durability at the acknowledgement."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tidemark.analysis.measures import Measures
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.faults import durability, tables
from tidemark.studies.ingest.faults.kills import doubt_sentence, down_sentence, kept_sentence, on_disk_sentence
from tidemark.studies.ingest.part import PartResults


def _sentences(measures: Measures) -> Mapping[str, Written]:
    run_set = measures.run_set
    return {
        "ingest-killed": partial(kept_sentence, run_set),
        "ingest-doubt": partial(doubt_sentence, run_set),
        "ingest-down": partial(down_sentence, run_set),
        "ingest-on-disk": partial(on_disk_sentence, run_set),
    }


RESULTS = PartResults(
    tables=(tables, durability),
    figures="tidemark.studies.ingest.faults.figures",
    sentences=_sentences,
    findings=lambda measures: (partial(kept_sentence, measures.run_set),),
)
