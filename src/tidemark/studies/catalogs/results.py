"""Results of the study: its quantities, tables, figures, claims and contribution to the paper."""

from __future__ import annotations

from tidemark.results.publication import Publication
from tidemark.runs.runset import RunSet
from tidemark.studies.assembly import chapter_of, claims_of, sketches_of, tables_of
from tidemark.studies.catalogs import published
from tidemark.studies.catalogs.measures import MEASURES, CatalogEvidence
from tidemark.studies.catalogs.quantities import QUANTITIES
from tidemark.studies.catalogs.questions import QUESTIONS
from tidemark.studies.catalogs.sentences import Writer
from tidemark.studies.catalogs.study import STUDY
from tidemark.studies.catalogs.tables import beyond, distance, robust
from tidemark.studies.catalogs.tables import published as of_report
from tidemark.studies.study import Results


def _values(_run_set: RunSet) -> dict[str, str]:
    return {
        "catalogs-report-users": f"{published.USERS}",
        "catalogs-report-ramp": f"{published.RAMP_USERS}",
        "catalogs-report-processors": published.HARDWARE["CPU"],
    }


RESULTS = Results(
    quantities=QUANTITIES,
    publication=Publication(
        key="polaris-report", origin=published.ORIGIN, hardware=published.HARDWARE, software=published.SOFTWARE
    ),
    tables=tables_of(of_report, beyond, distance, robust),
    sketches=sketches_of("tidemark.studies.catalogs.figures.response"),
    claims=claims_of(
        STUDY,
        QUANTITIES,
        MEASURES,
        CatalogEvidence,
        set_up_bytes=2.2e9,
        remarks=(
            "Neither persistence layer of the report is available: rows of its appendix are not testable here, and the "
            "values next to them are another server's. Its text is checked against its own appendix.",
        ),
    ),
    paper=chapter_of(
        STUDY,
        _values,
        Writer,
        lambda writer: (writer.backend, writer.scaling, writer.hot_table, writer.oracle, writer.crash, writer.mistakes),
    ),
    notes=lambda _run_set: (of_report.UNEQUAL,),
    questions=QUESTIONS,
)
