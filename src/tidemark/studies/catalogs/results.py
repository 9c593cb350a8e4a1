"""Results of the study: its tables, figures, claims, chapter, and the columns of the report's first table."""

from __future__ import annotations

from tidemark.analysis.metrics import HIGHER, NotAvailable
from tidemark.results.reference.run_files import RunFiles
from tidemark.results.report.summary_table import SummaryMetric, SystemRuns, hot_of, with_runs
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.assembly import chapter_of, claims_of, figure_specs_of, tables_of
from tidemark.studies.catalogs import published, tables
from tidemark.studies.catalogs.claims import MEASURES, CatalogClaimData
from tidemark.studies.catalogs.findings import Writer
from tidemark.studies.catalogs.metrics import (
    APPENDED,
    CREATE_NAMESPACE,
    CREATE_TABLE,
    HOT,
    QUANTITIES,
    READ,
    SERVER_CPU,
    SERVER_MEMORY,
    TRIES,
    UPDATE,
)
from tidemark.studies.catalogs.record import ALONE, CatalogRecord, users_of
from tidemark.studies.catalogs.study import STUDY
from tidemark.studies.catalogs.window.samples import COLUMNS
from tidemark.studies.study import Results


def _alone(asked: SystemRuns) -> Series:
    """Return the series with one user."""
    found = [each for each in with_runs(asked.series) if users_of(each) == ALONE]
    if not found:
        raise NotAvailable("not measured with one user")
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


QUESTIONS = (
    SummaryMetric(
        "create-table", "Create a table", "ms", hot_of(CREATE_TABLE.median, _alone),
        hint="Median response with one user. Hot runs.", asks="Quickest to create a table, one user",
    ),
    SummaryMetric(
        "create-namespace", "Create a namespace", "ms", hot_of(CREATE_NAMESPACE.median, _alone),
        hint="Median response with one user. Hot runs.",
    ),
    SummaryMetric(
        "read", "Read", "ms", hot_of(READ.median, _alone), hint="Median of nine kinds of read, one user. Hot runs.",
    ),
    SummaryMetric(
        "update", "Update", "ms", hot_of(UPDATE.median, _alone),
        hint="Median of setting a property of a namespace, a table or a view, one user. Hot runs.",
    ),
    SummaryMetric(
        "tables-many", "Tables/s, many users", "requests/s", hot_of(CREATE_TABLE.rate, _many),
        better=HIGHER, note=_users, hint="Tables created in a second with the most users that were measured. Hot runs.",
        asks="Most tables a second, many users",
    ),
    SummaryMetric(
        "p99-many", "Update p99, many users", "ms", hot_of(UPDATE.p99, _many), note=_users,
        hint="99 of 100 updates of different entities are answered sooner, with the most users. Hot runs.",
    ),
    SummaryMetric(
        "hot", "Updates/s of one table", "requests/s", hot_of(HOT.rate, _many), better=HIGHER, note=_users,
        hint="Updates of one table that succeed in a second when all users update it. Hot runs.",
    ),
    SummaryMetric(
        "append", "Appends/s to one table", "requests/s", hot_of(APPENDED.rate, _many), better=HIGHER, note=_users,
        hint="Snapshots that all users together append to one table in a second, conflicts tried again. Hot runs.",
    ),
    SummaryMetric(
        "attempts", "Attempts an append", "", hot_of(TRIES, _many), note=_users,
        hint="Attempts at an append until it succeeds: others were quicker at the rest. Hot runs.",
    ),
    SummaryMetric(
        "cpu", "CPU a request", "ms", hot_of(SERVER_CPU, _many), note=_users,
        hint="Processor time of the server and its database, by all requests of a window. Hot runs.",
    ),
    SummaryMetric(
        "memory", "Peak memory", "MB", hot_of(SERVER_MEMORY, _many), note=_users,
        hint="The most that the server and its database had in memory together in any second (PSS). Hot runs.",
    ),
)  # fmt: skip

RESULTS = Results(
    quantities=QUANTITIES,
    publication=published.PUBLICATION,
    tables=tables_of(published, tables),
    figure_specs=figure_specs_of("tidemark.studies.catalogs.figures"),
    claims=claims_of(
        STUDY,
        QUANTITIES,
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
        lambda writer: (
            writer.backend,
            writer.scaling,
            writer.hot_table,
            writer.oracle,
            writer.crash,
            writer.mistakes,
        ),
    ),
    notes=lambda _run_set: (published.UNEQUAL,),
    questions=QUESTIONS,
    run_files=RunFiles((COLUMNS,), (CatalogRecord,)),
)
