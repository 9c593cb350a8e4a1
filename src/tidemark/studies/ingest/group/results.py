"""Results of requests that a front gathers."""

from __future__ import annotations

from tidemark.analysis.measures import Measures
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.group import tables
from tidemark.studies.ingest.group.sentences import Gathering
from tidemark.studies.ingest.part import PartResults


def _findings(measures: Measures) -> tuple[Written, ...]:
    gathering = Gathering(measures)
    return (gathering.staged, gathering.bundled)


RESULTS = PartResults(
    tables=(tables,),
    figures="tidemark.studies.ingest.group.figures",
    sentences=lambda measures: Gathering(measures).sentences(),
    findings=_findings,
)
