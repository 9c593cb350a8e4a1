"""The study's own measures of claims."""

from __future__ import annotations

from tidemark.results.claims.evidence import Evidence
from tidemark.results.claims.measures import GENERAL, Measure, Measured, measure
from tidemark.studies.freshness.parts import killed, of
from tidemark.studies.freshness.quantities import WRONG


class FreshnessEvidence(Evidence):
    """Runs of pipelines. One whose table does not hold each event once speaks of that; its ages are Absent."""

    losses_count = True


OWN: dict[str, Measure] = {}


@measure(OWN)
def not_once_after_kills(evidence: FreshnessEvidence, system: str) -> Measured:
    """The share of events that are not there, or more than once, after kills; in percent."""
    own = [each for each in killed(evidence.measures.run_set) if (each.system, each.stack) == (system, evidence.stack)]
    return of(evidence.measures, WRONG, evidence.noted(own, f"{system} with kills")).scaled(100), "%"


MEASURES = GENERAL | OWN
