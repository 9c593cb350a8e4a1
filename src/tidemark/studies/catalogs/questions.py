"""Columns of the report's first table: which catalog suits which request."""

from __future__ import annotations

from tidemark.analysis.quantities import HIGHER, Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.results.claims.evidence import positive
from tidemark.results.report.questions import Answering, Asked, Question
from tidemark.runs.names import MAIN
from tidemark.runs.runset import Series
from tidemark.studies.catalogs.quantities import (
    APPENDED,
    CREATE_TABLE,
    HOT,
    MEDIAN,
    P99,
    RATE,
    SERVER_CPU,
    SERVER_MEMORY,
    TRIES,
)
from tidemark.studies.catalogs.settings import ALONE, users_of


def _alone(quantity: Quantity) -> Answering:
    """Return a function that answers from the series with one user."""

    def answer(asked: Asked, _mode: str | None) -> Replicates:
        found = [each for each in _main(asked) if users_of(each.mode) == ALONE]
        if not found:
            raise Absent("not measured with one user")
        return positive(asked.measures.hot(quantity, found[0]))

    return answer


def _many(quantity: Quantity) -> Answering:
    """Return a function that answers from the series with the most users."""

    def answer(asked: Asked, _mode: str | None) -> Replicates:
        return positive(asked.measures.hot(quantity, max(_main(asked), key=lambda each: users_of(each.mode))))

    return answer


def _main(asked: Asked) -> list[Series]:
    found = [each for each in asked.series if each.sweep == MAIN and each.runs]
    if not found:
        raise Absent(asked.series[0].missing())
    return found


def _users(asked: Asked, _mode: str | None) -> str:
    return f"{max(users_of(each.mode) for each in _main(asked)):,} users"


QUESTIONS = (
    Question(
        "create-table", "Create a table", "ms", _alone(CREATE_TABLE),
        hint="Median response with one user. Hot runs.", asks="Quickest to create a table, one user",
    ),
    Question(
        "create-namespace", "Create a namespace", "ms", _alone(MEDIAN["create namespace"]),
        hint="Median response with one user. Hot runs.",
    ),
    Question("read", "Read", "ms", _alone(MEDIAN["read"]), hint="Median of nine kinds of read, one user. Hot runs."),
    Question(
        "update", "Update", "ms", _alone(MEDIAN["update"]),
        hint="Median of setting a property of a namespace, a table or a view, one user. Hot runs.",
    ),
    Question(
        "tables-many", "Tables/s, many users", "requests/s", _many(RATE[CREATE_TABLE.name.removesuffix(" median")]),
        better=HIGHER, note=_users, hint="Tables created in a second with the most users that were measured. Hot runs.",
        asks="Most tables a second, many users",
    ),
    Question(
        "p99-many", "Update p99, many users", "ms", _many(P99["update"]), note=_users,
        hint="99 of 100 updates of different entities are answered sooner, with the most users. Hot runs.",
    ),
    Question(
        "hot", "Updates/s of one table", "requests/s", _many(RATE[HOT.name]), better=HIGHER, note=_users,
        hint="Updates of one table that succeed in a second when all users update it. Hot runs.",
    ),
    Question(
        "append", "Appends/s to one table", "requests/s", _many(RATE[APPENDED.name]), better=HIGHER, note=_users,
        hint="Snapshots that all users together append to one table in a second, conflicts tried again. Hot runs.",
    ),
    Question(
        "attempts", "Attempts an append", "", _many(TRIES), note=_users,
        hint="Attempts at an append until it succeeds: others were quicker at the rest. Hot runs.",
    ),
    Question(
        "cpu", "CPU a request", "ms", _many(SERVER_CPU), note=_users,
        hint="Processor time of the server and its database, by all requests of a window. Hot runs.",
    ),
    Question(
        "memory", "Peak memory", "MB", _many(SERVER_MEMORY), note=_users,
        hint="The most that the server and its database had in memory together in any second (PSS). Hot runs.",
    ),
)  # fmt: skip
