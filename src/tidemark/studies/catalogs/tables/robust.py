"""Tables of guarantees: after kills, and while tables are created, renamed and dropped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.studies.catalogs.outcomes import ACKED, CONFLICT, UNKNOWN
from tidemark.studies.catalogs.quantities import CHURN, CHURNING, MEDIAN, RATE
from tidemark.studies.catalogs.robust import Kills, crashes
from tidemark.studies.catalogs.settings import users_of
from tidemark.studies.catalogs.tables.published import UNEQUAL

USERS = Column("users", "Users")


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield tables catalog-crash and catalog-churn."""
    yield _crash(workshop)
    yield _churn(workshop)


def _crash(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for found in crashes(workshop.run_set):
        if not isinstance(found, Kills):
            series, why = found
            rows.append([series.title, users_of(series.mode), Missing(why), *[None] * 17])
            continue
        runs.append(found.run)
        rows.append([found.series.title, users_of(found.series.mode), *_kills(found)])
    columns = (
        SYSTEM, USERS, Column("killed", "Killed"), Column("kills", "Kills"),
        Column("telling", "Of them while it took writes"), Column("in_flight", "Requests in flight, median"),
        Column("acknowledged", "Acknowledged before"), Column("unknown", "Unknown"),
        Column("errors", "Unknown: an error, before the kill"), Column("done", "Unknown: was done"),
        Column("not_done", "Unknown: was not"), Column("lost", "Lost"),
        Column("lost_before", "Lost of the window before"), Column("with_loss", "Kills with a loss"),
        Column("answered", "Until it answered, median", "s"), Column("answered_most", "Until it answered, most", "s"),
        Column("again", "Writes at once, then"), Column("again_acked", "Of them acknowledged"),
        Column("verdict", "Verdict"), Column("at_most", "Probability of a loss, below"),
    )  # fmt: skip
    notes = [
        "After the last window of a series, users create namespaces and tables and update one table, until the server "
        "(or its database) gets SIGKILL at a random moment; it is started again on the same data, and everything that "
        "was acknowledged is read back through another client. Unknown: requests without an answer, or that the server "
        "failed at; of an update that others replaced it is unknown whether it was done. Until it answered: from the "
        "restart to the first read of a table; then all users write at once. The bound is the upper end of a "
        "one-sided 95 % interval (exact binomial; 3 / n without a loss), of the kills that hit a server that took "
        "writes: one that answers most of them with an error has little to lose.",
        "A killed program loses what it had in memory, and not what it had given to the kernel: a power failure can "
        "lose more, and is not tried here.",
        UNEQUAL,
    ]
    return workshop.table("catalog-crash", "What is there after a kill", columns, rows, runs, notes)


def _kills(found: Kills) -> list[Cell]:
    back = found.answered_s
    why = next((kill["said"] for kill in found.each if kill["said"]), "")
    seconds: list[Cell] = [median(back), max(back)] if back else [Missing(f"it never did: {why.splitlines()[0]}"), None]
    return [
        found.title,
        len(found.each),
        found.telling,
        median(kill["in_flight"] for kill in found.each),
        *(found.total(name) for name in ("acknowledged", "unknown", "errors", "done", "not_done", "lost")),
        found.lost_of_window,
        found.with_loss,
        *seconds,
        found.total("again"),
        found.total("again_acked"),
        "holds" if found.holds else "DOES NOT HOLD",
        found.at_most,
    ]


def _churn(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    measures = workshop.measures
    for series in workshop.run_set.select():
        for run in series.runs:
            churned = run.words("part") == "churn"
            row: list[Cell] = [series.title, users_of(series.mode), run.number, run.state]
            if not churned.any():
                rows.append([*row, Missing("it cannot rename or drop tables, or was not asked to"), *[None] * 12])
                continue
            runs.append(run)
            kind, outcome = (run.words(name)[churned] for name in ("kind", "outcome"))
            counts: list[Cell] = [
                int((outcome[kind == f"{act} table"] == ACKED).sum()) for act in ("create", "rename", "drop")
            ]
            oracle: dict[str, Any] = dict(run.manifest.found)["oracle"]
            others = ~np.isin(outcome, (ACKED, CONFLICT, UNKNOWN))
            rest: list[Cell] = [int((outcome == name).sum()) for name in (CONFLICT, UNKNOWN)]
            listings = int((kind == "list tables").sum())
            twice = int((run.column("doubled")[churned] > 0).sum())
            asked = (*(MEDIAN[sort.name] for sort in CHURNING), RATE[CHURN.name])
            timed = [attempt(quantity.unit, partial(measures.of_run, quantity, run)) for quantity in asked]
            rows.append([*row, *counts, *rest, int(others.sum()), listings, twice, oracle.get("undead"), *timed])
    columns = (
        SYSTEM, USERS, Column("run", "Run"), Column("state", "State"), Column("created", "Created"),
        Column("renamed", "Renamed"), Column("dropped", "Dropped"), Column("conflicts", "Conflicts"),
        Column("unknown", "Unknown"), Column("refused", "Refused"), Column("listings", "Listings"),
        Column("twice", "Listings with a name twice"), Column("undead", "Dropped or renamed, and there"),
        Column("rename", "Rename: median", "ms", interval=True), Column("drop", "Drop: median", "ms", interval=True),
        Column("list", "List: median", "ms", interval=True), Column("rate", "Rate", "requests/s", interval=True),
    )  # fmt: skip
    notes = [
        "Each user creates its own tables in one namespace, renames each, and drops every other one; between these "
        "it lists the tables of all users. Refused: also what follows from another failure, as of a table that was "
        "never created.",
        UNEQUAL,
    ]
    return workshop.table("catalog-churn", "Tables that come and go", columns, rows, runs, notes)
