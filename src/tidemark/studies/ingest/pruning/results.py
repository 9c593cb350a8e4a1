"""Results of filtered queries. The files that they read are no speed of a stream, and not among the findings."""

from __future__ import annotations

from tidemark.studies.ingest.part import PartResults
from tidemark.studies.ingest.pruning import tables

RESULTS = PartResults(
    tables=(tables,),
    figures="tidemark.studies.ingest.pruning.figures",
    sentences=lambda measures: {"ingest-pruning": tables.Pruning(measures).fewest},
    quantities=tables.QUANTITIES,
    code=("studies/ingest/pruning/tables.py", "systems/pruning_dataset.py"),
)
