"""Results of maintenance during writes."""

from __future__ import annotations

from tidemark.runs.runset import RunSet
from tidemark.studies.ingest.maintenance import tables
from tidemark.studies.ingest.maintenance.sentences import Maintaining
from tidemark.studies.ingest.maintenance.settings import MAINTENANCE
from tidemark.studies.ingest.part import PartResults


def values(run_set: RunSet) -> dict[str, str]:
    """Return the maintenance settings shown in the chapter; "-" in run sets that are older than the part."""
    given = run_set.config.values.get(MAINTENANCE, {})
    names = {"writers": "writers", "rows": "rows", "every": "every_seconds"}
    return {f"ingest-maintenance-{name}": str(given.get(key, "-")) for name, key in names.items()}


RESULTS = PartResults(
    tables=(tables,),
    figures="tidemark.studies.ingest.maintenance.figures",
    sentences=lambda measures: Maintaining(measures).sentences(),
    findings=lambda measures: (Maintaining(measures).held,),
)
