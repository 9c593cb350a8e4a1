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
from tidemark.studies.deltars import published
from tidemark.studies.deltars.measures import MEASURES, DeltarsEvidence
from tidemark.studies.deltars.quantities import QUANTITIES
from tidemark.studies.deltars.questions import QUESTIONS
from tidemark.studies.deltars.sentences import Writer
from tidemark.studies.deltars.study import STUDY
from tidemark.studies.deltars.tables import beyond, whole
from tidemark.studies.study import Results

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch

HERE = Path(__file__).parent


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from whole.build(workshop)
    yield from beyond.build(workshop)


def _sketches() -> Iterator[Sketch]:
    # Matplotlib takes half a second to import, which no other command has to wait for.
    from tidemark.studies.deltars.figures import bars

    yield from bars.sketches()


def _values(run_set: RunSet) -> dict[str, str]:
    return {
        "deltars-repetitions": f"{published.REPETITIONS}",
        "deltars-checked": f"{run_set.config.values['checked_rows']:,}",
    }


def _sentences(measures: Measures) -> dict[str, str]:
    return Writer(measures).sentences()


def _findings(measures: Measures) -> tuple[str, ...]:
    writer = Writer(measures)
    return tuple(or_why(write) for write in (writer.writes, writer.floor, writer.oracle))


def _notes(_run_set: RunSet) -> tuple[str, ...]:
    return (whole.STAND_INS, whole.NO_LEGACY)


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(
        key=published.KEY, origin=published.ORIGIN, hardware=published.HARDWARE, software=published.SOFTWARE
    ),
    tables=_tables,
    sketches=_sketches,
    claims=ClaimBook(
        study=STUDY.name,
        title=STUDY.title,
        path=HERE / "claims.yaml",
        quantities=QUANTITIES,
        measures=MEASURES,
        evidence=DeltarsEvidence,
        remarks=(
            "HDFS stands for HopsFS, and its servers share the client's machine: ratios and shapes are judged, seconds "
            "are not. The legacy path is not built here, so that what compares with it cannot be tested; what its own "
            "tables say of its sentences can (printed-...).",
        ),
    ),
    paper=Contribution(chapter=HERE / "chapter.typ", values=_values, sentences=_sentences, findings=_findings),
    notes=_notes,
    questions=QUESTIONS,
)
