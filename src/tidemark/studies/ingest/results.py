"""How the study's runs become results: its quantities, tables, figures, claims and what it brings to the paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.analysis.measures import Measures
from tidemark.analysis.prose import or_why
from tidemark.results.claims.claims import ClaimBook
from tidemark.results.paper.contribution import Contribution
from tidemark.results.publication import Publication
from tidemark.results.tables.table import Table, Workshop
from tidemark.runs.runset import RunSet
from tidemark.studies.ingest import published
from tidemark.studies.ingest.gathering import Gathering
from tidemark.studies.ingest.measures import MEASURES, IngestEvidence
from tidemark.studies.ingest.quantities import QUANTITIES
from tidemark.studies.ingest.questions import QUESTIONS
from tidemark.studies.ingest.sentences import Writer
from tidemark.studies.ingest.study import STUDY
from tidemark.studies.ingest.tables import durability, faults, group, kyma, ours
from tidemark.studies.study import Results

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch

HERE = Path(__file__).parent


def _tables(workshop: Workshop) -> Iterator[Table]:
    for chapter in (ours, group, faults, durability, kyma):
        yield from chapter.build(workshop)


def _sketches() -> Iterator[Sketch]:
    # Matplotlib takes half a second to import, which no other command has to wait for.
    from tidemark.studies.ingest.figures import faults as fault_figures
    from tidemark.studies.ingest.figures import group as gathered
    from tidemark.studies.ingest.figures import writers

    for chapter in (writers, gathered, fault_figures):
        yield from chapter.sketches()


def _values(run_set: RunSet) -> dict[str, str]:
    given = run_set.config.values
    return {"ingest-rows": f"{given['rows']:,}", "ingest-tries": f"{given['tries']:,}"}


def _sentences(measures: Measures) -> dict[str, str]:
    return Writer(measures).sentences() | Gathering(measures).sentences()


def _findings(measures: Measures) -> tuple[str, ...]:
    writer = Writer(measures)
    gathering = Gathering(measures)
    ours = (writer.scaling, writer.conflicts, writer.lost, writer.killed, writer.retrying)
    said = (*ours, gathering.staged, gathering.bundled, writer.mistakes)
    return tuple(or_why(write) for write in said)


def _notes(_run_set: RunSet) -> tuple[str, ...]:
    return (ours.UNEQUAL,)


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(
        key="kyma-performance",
        origin=published.ORIGIN,
        hardware=published.HARDWARE,
        software=published.SOFTWARE,
    ),
    tables=_tables,
    sketches=_sketches,
    claims=ClaimBook(
        study=STUDY.name,
        title=STUDY.title,
        path=HERE / "claims.yaml",
        quantities=QUANTITIES,
        measures=MEASURES,
        evidence=IngestEvidence,
        remarks=(
            "kyma is in no registry: its absolute numbers stand beside ours and are not judged. What it says of one "
            "commit a request is asked of the systems here, and its text is held to its own numbers.",
        ),
    ),
    paper=Contribution(
        chapter=HERE / "chapter.typ",
        front=HERE / "front.typ",
        values=_values,
        sentences=_sentences,
        findings=_findings,
    ),
    notes=_notes,
    questions=QUESTIONS,
)
