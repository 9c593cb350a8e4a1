"""Results of files in an object store."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.analysis.measures import Measures
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.part import PartResults
from tidemark.studies.ingest.storage import tables


def _sentences(measures: Measures) -> Mapping[str, Written]:
    storage = tables.Storage(measures)
    return {"ingest-trips": storage.trips, "ingest-store": storage.against_local}


RESULTS = PartResults(
    tables=(tables,),
    figures="tidemark.studies.ingest.storage.figures",
    sentences=_sentences,
    findings=lambda measures: (tables.Storage(measures).trips,),
)
