"""Claim measures of the study."""

from __future__ import annotations

from tidemark.results.claims.evidence import Evidence
from tidemark.results.claims.measures import GENERAL, Measure, Measured, measure
from tidemark.studies.freshness.parts import killed, of
from tidemark.studies.freshness.quantities import WRONG


class FreshnessEvidence(Evidence):
    """Evidence from pipelines. A run with lost or doubled events counts as evidence of that; its ages are Absent."""

    losses_count = True


OWN: dict[str, Measure] = {}


@measure(OWN)
def not_once_after_kills(evidence: FreshnessEvidence, system: str) -> Measured:
    """Return the percentage of events that are missing or present more than once after kills."""
    own = [each for each in killed(evidence.measures.run_set) if (each.system, each.stack) == (system, evidence.stack)]
    return of(evidence.measures, WRONG, evidence.noted(own, f"{system} with kills")).scaled(100), "%"


MEASURES = GENERAL | OWN
