"""Results of many writers."""

from __future__ import annotations

from tidemark.analysis.measures import Measures
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.part import PartResults
from tidemark.studies.ingest.writers import tables
from tidemark.studies.ingest.writers.sentences import Writer


def _findings(measures: Measures) -> tuple[Written, ...]:
    writer = Writer(measures)
    return (writer.scaling, writer.conflicts, writer.lost, writer.retrying)


RESULTS = PartResults(
    tables=(tables,),
    figures="tidemark.studies.ingest.writers.figures",
    sentences=lambda measures: Writer(measures).sentences(),
    findings=_findings,
)
