"""Results of the study: its quantities, tables, figures, claims and contribution to the paper."""

from __future__ import annotations

from tidemark.results.publication import Publication
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import chapter_of, claims_of, sketches_of, tables_of
from tidemark.studies.freshness import published
from tidemark.studies.freshness.costs import costs
from tidemark.studies.freshness.measures import MEASURES, FreshnessEvidence
from tidemark.studies.freshness.quantities import QUANTITIES
from tidemark.studies.freshness.questions import QUESTIONS
from tidemark.studies.freshness.sentences import Writer
from tidemark.studies.freshness.study import STUDY
from tidemark.studies.freshness.tables import ages, capacity, reads
from tidemark.studies.study import Results


def _values(run_set: RunSet) -> dict[str, str]:
    given = run_set.config.values
    return {
        "freshness-look": f"{given['look_ms']:,}",
        "freshness-warm": f"{given['warm']:,}",
        "freshness-connect-default": f"{published.DEFAULT_INTERVAL_S}",
    }


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(key=published.KEY, origin=published.ORIGIN, software=published.SOFTWARE),
    tables=tables_of(ages, capacity, reads),
    sketches=sketches_of("tidemark.studies.freshness.figures.cost", "tidemark.studies.freshness.figures.lags"),
    claims=claims_of(
        STUDY,
        QUANTITIES,
        MEASURES,
        FreshnessEvidence,
        set_up_bytes=2.2e9,
        remarks=("Documentation prints no ages and no rates: what it promises is judged, and nothing else.",),
    ),
    paper=chapter_of(
        STUDY, _values, Writer, lambda writer: (writer.ages, writer.capacity, writer.behind, writer.killed)
    ),
    notes=lambda _run_set: (ages.UNEQUAL,),
    questions=QUESTIONS,
    costs=costs,
)
