"""Results of the power cuts."""

from __future__ import annotations

from functools import partial

from tidemark.studies.ingest.cut import tables
from tidemark.studies.ingest.part import PartResults

RESULTS = PartResults(
    tables=(tables,),
    sentences=lambda measures: {"ingest-power-cut": partial(tables.cut_sentence, measures.run_set)},
    findings=lambda measures: (partial(tables.cut_sentence, measures.run_set),),
)
