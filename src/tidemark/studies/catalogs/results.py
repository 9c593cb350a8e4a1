"""Results of the study: its tables, figures, claims, chapter, and the columns of the report's first table."""

from __future__ import annotations

from tidemark.analysis.metrics import require
from tidemark.results.reference.run_files import RunFiles
from tidemark.results.report.summary_table import SystemRuns, hot_of, questions_of, with_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.assembly import chapter_of, claims_of, figure_specs_of, tables_of
from tidemark.studies.catalogs import metrics, published, tables
from tidemark.studies.catalogs.claims import MEASURES, CatalogClaimData
from tidemark.studies.catalogs.findings import Writer
from tidemark.studies.catalogs.record import ALONE, CatalogRecord, users_of
from tidemark.studies.catalogs.study import STUDY
from tidemark.studies.catalogs.window.samples import COLUMNS
from tidemark.studies.study import Results


def _alone(asked: SystemRuns) -> Series:
    """Return the series with one user."""
    found = require([each for each in with_runs(asked.series) if users_of(each) == ALONE], "not measured with one user")
    return found[0]


def _many(asked: SystemRuns) -> Series:
    """Return the series with the most users."""
    return max(with_runs(asked.series), key=users_of)


def _users(asked: SystemRuns, _mode: str | None) -> str:
    return f"{users_of(_many(asked)):,} users"


def _values(_run_set: RunSet) -> dict[str, str]:
    return {
        "catalogs-report-users": f"{published.USERS}",
        "catalogs-report-ramp": f"{published.RAMP_USERS}",
        "catalogs-report-processors": published.PUBLICATION.hardware["CPU"],
    }


OF_MANY = {
    "tables-many": metrics.CREATE_TABLE.rate,
    "p99-many": metrics.UPDATE.p99,
    "hot": metrics.HOT.rate,
    "append": metrics.APPENDED.rate,
    "attempts": metrics.TRIES,
    "cpu": metrics.SERVER_CPU,
    "memory": metrics.SERVER_MEMORY,
}
QUESTIONS = questions_of(
    __file__,
    {
        "create-table": hot_of(metrics.CREATE_TABLE.median, _alone),
        "create-namespace": hot_of(metrics.CREATE_NAMESPACE.median, _alone),
        "read": hot_of(metrics.READ.median, _alone),
        "update": hot_of(metrics.UPDATE.median, _alone),
        **{key: hot_of(quantity, _many) for key, quantity in OF_MANY.items()},
    },
    dict.fromkeys(OF_MANY, _users),
)

RESULTS = Results(
    quantities=metrics.QUANTITIES,
    publication=published.PUBLICATION,
    tables=tables_of(published, tables),
    figure_specs=figure_specs_of("tidemark.studies.catalogs.figures"),
    claims=claims_of(
        STUDY,
        metrics.QUANTITIES,
        MEASURES,
        CatalogClaimData,
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
    notes=lambda _run_set: (published.UNEQUAL,),
    questions=QUESTIONS,
    run_files=RunFiles((COLUMNS,), (CatalogRecord,)),
)
