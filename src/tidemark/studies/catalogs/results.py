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
from tidemark.studies.catalogs import published
from tidemark.studies.catalogs.measures import MEASURES, CatalogEvidence
from tidemark.studies.catalogs.quantities import QUANTITIES
from tidemark.studies.catalogs.questions import QUESTIONS
from tidemark.studies.catalogs.sentences import Writer
from tidemark.studies.catalogs.study import STUDY
from tidemark.studies.catalogs.tables import beyond, distance, robust
from tidemark.studies.catalogs.tables import published as of_report
from tidemark.studies.study import Results

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch

HERE = Path(__file__).parent


def _tables(workshop: Workshop) -> Iterator[Table]:
    for chapter in (of_report, beyond, distance, robust):
        yield from chapter.build(workshop)


def _sketches() -> Iterator[Sketch]:
    # Matplotlib takes half a second to import, which no other command has to wait for.
    from tidemark.studies.catalogs.figures import response

    yield from response.sketches()


def _values(_run_set: RunSet) -> dict[str, str]:
    return {
        "catalogs-report-users": f"{published.USERS}",
        "catalogs-report-ramp": f"{published.RAMP_USERS}",
        "catalogs-report-processors": published.HARDWARE["CPU"],
    }


def _sentences(measures: Measures) -> dict[str, str]:
    return Writer(measures).sentences()


def _findings(measures: Measures) -> tuple[str, ...]:
    writer = Writer(measures)
    said = (writer.backend, writer.scaling, writer.hot_table, writer.oracle, writer.crash, writer.mistakes)
    return tuple(or_why(write) for write in said)


def _notes(_run_set: RunSet) -> tuple[str, ...]:
    return (of_report.UNEQUAL,)


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(
        key="polaris-report", origin=published.ORIGIN, hardware=published.HARDWARE, software=published.SOFTWARE
    ),
    tables=_tables,
    sketches=_sketches,
    claims=ClaimBook(
        study=STUDY.name,
        title=STUDY.title,
        path=HERE / "claims.yaml",
        quantities=QUANTITIES,
        measures=MEASURES,
        evidence=CatalogEvidence,
        remarks=(
            "Neither persistence layer of the report can be had: rows of its appendix are not testable here, and what "
            "stands beside them is another server's. Its text is held to its own appendix.",
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
