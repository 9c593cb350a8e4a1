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
from tidemark.studies.freshness import published
from tidemark.studies.freshness.costs import costs
from tidemark.studies.freshness.measures import MEASURES, FreshnessEvidence
from tidemark.studies.freshness.quantities import QUANTITIES
from tidemark.studies.freshness.questions import QUESTIONS
from tidemark.studies.freshness.sentences import Writer
from tidemark.studies.freshness.study import STUDY
from tidemark.studies.freshness.tables import ages, capacity, reads
from tidemark.studies.study import Results

if TYPE_CHECKING:
    from tidemark.results.figures.studio import Sketch

HERE = Path(__file__).parent


def _tables(workshop: Workshop) -> Iterator[Table]:
    yield from ages.build(workshop)
    yield from capacity.build(workshop)
    yield from reads.build(workshop)


def _sketches() -> Iterator[Sketch]:
    # Matplotlib takes half a second to import, which no other command has to wait for.
    from tidemark.studies.freshness.figures import cost

    yield from cost.sketches()


def _values(run_set: RunSet) -> dict[str, str]:
    given = run_set.config.values
    return {
        "freshness-look": f"{given['look_ms']:,}",
        "freshness-warm": f"{given['warm']:,}",
        "freshness-connect-default": f"{published.DEFAULT_INTERVAL_S}",
    }


def _sentences(measures: Measures) -> dict[str, str]:
    return Writer(measures).sentences()


def _findings(measures: Measures) -> tuple[str, ...]:
    writer = Writer(measures)
    return tuple(or_why(write) for write in (writer.ages, writer.capacity, writer.behind, writer.killed))


def _notes(_run_set: RunSet) -> tuple[str, ...]:
    return (ages.UNEQUAL,)


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(key=published.KEY, origin=published.ORIGIN, software=published.SOFTWARE),
    tables=_tables,
    sketches=_sketches,
    claims=ClaimBook(
        study=STUDY.name,
        title=STUDY.title,
        path=HERE / "claims.yaml",
        quantities=QUANTITIES,
        measures=MEASURES,
        evidence=FreshnessEvidence,
        remarks=("Documentation prints no ages and no rates: what it promises is judged, and nothing else.",),
    ),
    paper=Contribution(
        chapter=HERE / "chapter.typ",
        values=_values,
        sentences=_sentences,
        findings=_findings,
    ),
    notes=_notes,
    questions=QUESTIONS,
    costs=costs,
)
