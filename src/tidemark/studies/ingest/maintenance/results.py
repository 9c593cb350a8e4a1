"""What is made of maintenance beside writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.results.tables.table import Table, Workshop
from tidemark.runs.runset import RunSet
from tidemark.studies.ingest.maintenance import tables
from tidemark.studies.ingest.maintenance.sentences import Maintaining
from tidemark.studies.ingest.maintenance.settings import MAINTENANCE
from tidemark.studies.ingest.part import PartResults, Written

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from tables.build(workshop)


def _sketches() -> Iterator[Sketch]:
    from tidemark.studies.ingest.maintenance import figures

    yield from figures.sketches()


def _sentences(measures: Measures) -> Mapping[str, Written]:
    return Maintaining(measures).sentences()


def _findings(measures: Measures) -> tuple[Written, ...]:
    return (Maintaining(measures).held,)


def values(run_set: RunSet) -> dict[str, str]:
    """What the chapter says of how a table is maintained; a dash in run sets that are older than the part."""
    given = run_set.config.values.get(MAINTENANCE, {})
    names = {"writers": "writers", "rows": "rows", "every": "every_seconds"}
    return {f"ingest-maintenance-{name}": str(given.get(key, "-")) for name, key in names.items()}


RESULTS = PartResults(_tables, _sketches, _sentences, _findings)
