"""How the study's runs become results: its quantities, tables, figures, claims and what it brings to the paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.results.claims.claims import ClaimBook
from tidemark.results.paper.contribution import Contribution
from tidemark.results.publication import Publication
from tidemark.results.tables.table import Table, Workshop
from tidemark.runs.names import BATCH, SINGLE
from tidemark.runs.runset import RunSet
from tidemark.studies.streams import paper, published
from tidemark.studies.streams.findings import findings
from tidemark.studies.streams.measures import MEASURES, StreamEvidence
from tidemark.studies.streams.quantities import QUANTITIES
from tidemark.studies.streams.questions import QUESTIONS
from tidemark.studies.streams.sentences import WAY
from tidemark.studies.streams.study import STUDY
from tidemark.studies.streams.tables import performance, storage
from tidemark.studies.streams.tables import published as of_thesis
from tidemark.studies.streams.views import VIEWS
from tidemark.studies.study import Results

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch

HERE = Path(__file__).parent


def _tables(workshop: Workshop) -> Iterator[Table]:
    for chapter in (of_thesis, performance, storage):
        yield from chapter.build(workshop)


def _sketches() -> Iterator[Sketch]:
    # Matplotlib takes half a second to import, which no other command has to wait for.
    from tidemark.studies.streams.figures import components
    from tidemark.studies.streams.figures import performance as beyond
    from tidemark.studies.streams.figures import published as of_thesis

    for chapter in (components, of_thesis, beyond):
        yield from chapter.sketches()


def _notes(run_set: RunSet) -> tuple[str, ...]:
    return performance.reading_notes(run_set.series)


RESULTS = Results(
    quantities=QUANTITIES,
    views=VIEWS,
    publication=Publication(
        key="thesis",
        origin=published.ORIGIN,
        hardware=published.HARDWARE,
        software=published.SOFTWARE,
        optional=("Polaris",),
    ),
    tables=_tables,
    sketches=_sketches,
    claims=ClaimBook(
        study=STUDY.name,
        title=STUDY.title,
        path=HERE / "claims.yaml",
        quantities=QUANTITIES,
        measures=MEASURES,
        evidence=StreamEvidence,
        rates={SINGLE: 2_000.0, BATCH: 80_000.0},
        remarks=(
            "Claims on cold runs are tested on cold starts: the thesis restarted the machine, then started servers, "
            "filled topics and measured. Claims on reading single events are tested only in runs that read one at a "
            "time, as the thesis did.",
        ),
    ),
    paper=Contribution(
        chapter=HERE / "chapter.typ",
        front=HERE / "front.typ",
        ways=WAY,
        values=paper.values,
        sentences=paper.sentences,
        parts=paper.parts,
        findings=findings,
    ),
    notes=_notes,
    questions=QUESTIONS,
)
