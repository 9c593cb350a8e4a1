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
from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.measures import MEASURES, LhbenchEvidence
from tidemark.studies.lhbench.quantities import QUANTITIES
from tidemark.studies.lhbench.questions import QUESTIONS
from tidemark.studies.lhbench.sentences import Writer
from tidemark.studies.lhbench.study import STUDY
from tidemark.studies.lhbench.tables import measured, paper
from tidemark.studies.study import Results

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch

HERE = Path(__file__).parent


def _tables(workshop: Workshop) -> Iterator[Table]:
    for chapter in (measured, paper):
        yield from chapter.build(workshop)


def _sketches() -> Iterator[Sketch]:
    # Matplotlib takes half a second to import, which no other command has to wait for.
    from tidemark.studies.lhbench.figures import panels

    yield from panels.sketches()


def _values(run_set: RunSet) -> dict[str, str]:
    given = run_set.config.values
    sizes = given["protocols"][given["protocol"]]
    return {
        "lhbench-scale": f"{max(sizes['load']['scales']):g}",
        "lhbench-refresh-scale": f"{sizes['refresh']['scale']:g}",
        "lhbench-refreshes": f"{sizes['refresh']['refreshes']}",
        "lhbench-share": f"{100 * sizes['refresh']['share']:g}",
        "lhbench-merge-rows": f"{sizes['merge']['rows']:,}",
        "lhbench-merge-files": f"{sizes['merge']['files']:,}",
        "lhbench-their-scale": f"{published.SCALE:,}",
    }


def _sentences(measures: Measures) -> dict[str, str]:
    return Writer(measures).sentences()


def _findings(measures: Measures) -> tuple[str, ...]:
    writer = Writer(measures)
    return tuple(or_why(write) for write in (writer.loads, writer.queries, writer.refreshes, writer.oracle))


def _notes(_run_set: RunSet) -> tuple[str, ...]:
    return (measured.LARGE_SAID,)


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
        evidence=LhbenchEvidence,
        remarks=(measured.LARGE_SAID,),
    ),
    paper=Contribution(
        chapter=HERE / "chapter.typ",
        values=_values,
        sentences=_sentences,
        findings=_findings,
    ),
    notes=_notes,
    questions=QUESTIONS,
)
