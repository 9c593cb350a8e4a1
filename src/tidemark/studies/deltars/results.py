"""Results of the study: its quantities, tables, figures, claims, questions and chapter of the paper."""

from __future__ import annotations

from tidemark.results.publication import Publication
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import chapter_of, claims_of, sketches_of, tables_of
from tidemark.studies.deltars import published
from tidemark.studies.deltars.measures import MEASURES, DeltarsEvidence
from tidemark.studies.deltars.quantities import QUANTITIES
from tidemark.studies.deltars.questions import QUESTIONS
from tidemark.studies.deltars.sentences import Writer
from tidemark.studies.deltars.study import STUDY
from tidemark.studies.deltars.tables import beyond, limit, steps, whole
from tidemark.studies.study import Results


def _values(run_set: RunSet) -> dict[str, str]:
    return {
        "deltars-repetitions": f"{published.REPETITIONS}",
        "deltars-checked": f"{run_set.config.values['checked_rows']:,}",
    }


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(
        key=published.KEY, origin=published.ORIGIN, hardware=published.HARDWARE, software=published.SOFTWARE
    ),
    tables=tables_of(whole, beyond, steps, limit),
    sketches=sketches_of("tidemark.studies.deltars.figures.bars", "tidemark.studies.deltars.figures.divided"),
    claims=claims_of(
        STUDY,
        QUANTITIES,
        MEASURES,
        DeltarsEvidence,
        set_up_bytes=2.7e9,
        remarks=(
            "HDFS stands in for HopsFS, and its servers share the client's machine: ratios and shapes are judged, and "
            "one value in seconds, the minute that a legacy write takes. The legacy path is rebuilt from its public "
            "parts. The thesis's sentences are also judged by its own tables (printed-...).",
        ),
    ),
    paper=chapter_of(
        STUDY, _values, Writer, lambda writer: (writer.writes, writer.legacy, writer.floor, writer.oracle)
    ),
    notes=lambda _run_set: (whole.STAND_INS, whole.LEGACY),
    questions=QUESTIONS,
)
