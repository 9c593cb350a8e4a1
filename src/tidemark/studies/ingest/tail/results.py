"""Results of requests sent by a schedule."""

from __future__ import annotations

from tidemark.studies.ingest.part import PartResults
from tidemark.studies.ingest.tail import tables
from tidemark.studies.ingest.tail.quantities import CODE, QUANTITIES
from tidemark.studies.ingest.tail.sentences import Tail

RESULTS = PartResults(
    tables=(tables,),
    figures="tidemark.studies.ingest.tail.figures",
    sentences=lambda measures: Tail(measures).sentences(),
    findings=lambda measures: (Tail(measures).omitted,),
    quantities=QUANTITIES,
    code=CODE,
)
