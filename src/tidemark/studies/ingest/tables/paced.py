"""Results of writers that commit at a set interval: the table ingest-paced, its model of refusals, and its sentence.

    share refused = 1 - exp(-exposed * others / interval)

`others` are the other writers of the table. `exposed` is the time in which the commit of another one makes a commit
fail. It is computed from the fewest writers that were measured, and predicts the share for more of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

from tidemark.analysis.formatting import listed, number
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.results.tables.table import SYSTEM_OF_SERIES, Table, TableBuilder, computed, notes_of, tables_by
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.metrics import ABANDONED, CONFLICTS, FLUSHES_FAILED, PACED_P50, PACED_P99
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.record import Schedule
from tidemark.studies.ingest.settings import PACED, PacedSettings
from tidemark.studies.ingest.tables.writers import UNEQUAL, VERDICT, hot_column, hot_runs

NOTES = notes_of(__file__)
FURTHER = 4  # times the most writers that were measured: what the last column predicts


def paced_series(run_set: RunSet) -> list[Series]:
    """Return the series of the part by system, then by interval, then by number of writers."""
    found = list(of_part(run_set, PACED).select(harness=False))
    systems = list(dict.fromkeys(each.system for each in found))

    def place(series: Series) -> tuple[int, int, int]:
        given = PacedSettings.of(series)
        return systems.index(series.system), given.every_seconds, given.writers

    return sorted(found, key=place)


def due_a_second(series: Series) -> float:
    """Return the commits of all writers that fall due in a second."""
    given = PacedSettings.of(series)
    return given.writers / given.every_seconds


def refused(measures: Measures, series: Series) -> float:
    """Return the share of tried commits that were refused."""
    return measures.hot(CONFLICTS, series).value


def exposed_s(share: float, given: PacedSettings) -> float:
    """Return the seconds in which another commit makes one fail, from the `share` of tries that were refused."""
    if given.writers < 2:
        raise NotAvailable("one writer is never refused")
    if share <= 0:
        raise NotAvailable("nothing was refused")
    if share >= 1:
        raise NotAvailable("every try was refused")
    return -math.log(1 - share) * given.every_seconds / (given.writers - 1)


def predicted(exposed: float, writers: int, every_seconds: int) -> float:
    """Return the share of tries that are refused, by the model above."""
    return 1 - math.exp(-exposed * (writers - 1) / every_seconds)


def _fewest(all_series: list[Series], series: Series) -> Series:
    """Return the series of the same system and interval with the fewest writers, at least two, that has hot runs."""
    given = PacedSettings.of(series)
    for each in all_series:
        own = PacedSettings.of(each)
        is_own = each.system == series.system and own.every_seconds == given.every_seconds
        if is_own and own.writers > 1 and each.hot_runs:
            return each
    raise NotAvailable("not measured with two writers or more")


def from_fewest(measures: Measures, all_series: list[Series], series: Series, times: int = 1) -> float:
    """Return the predicted share for `times` the writers of `series`, from the fewest writers with its interval.

    Raise NotAvailable if these are the writers to predict.
    """
    first, given = _fewest(all_series, series), PacedSettings.of(series)
    if first is series and times == 1:
        raise NotAvailable("the fewest writers, which predict the others")
    exposed = exposed_s(refused(measures, first), PacedSettings.of(first))
    return predicted(exposed, times * given.writers, given.every_seconds)


def _paced(builder: TableBuilder) -> Table:
    measures, chosen = builder.measures, paced_series(builder.run_set)

    def of_schedule(value: Callable[[Schedule], int]) -> Callable[[Series], int | None]:
        return lambda series: sum(value(run.record(Schedule)) for run in series.hot_runs) if series.hot_runs else None

    def exposed(series: Series) -> float | None:
        return 1000 * exposed_s(refused(measures, series), PacedSettings.of(series)) if series.runs else None

    def expected(series: Series) -> float | None:
        return 100 * from_fewest(measures, chosen, series) if series.runs else None

    def off(series: Series) -> float | None:
        share = expected(series)
        return None if share is None else share - 100 * refused(measures, series)

    def further(series: Series) -> float | None:
        return 100 * from_fewest(measures, chosen, series, FURTHER) if series.runs else None

    columns = (
        SYSTEM_OF_SERIES,
        computed("writers", "Writers", lambda series: PacedSettings.of(series).writers),
        computed("every", "A commit every", lambda series: PacedSettings.of(series).every_seconds, "s"),
        VERDICT,
        computed("due", "Commits due", of_schedule(lambda found: found.scheduled)),
        computed("not_begun", "Not begun", of_schedule(lambda found: found.not_begun)),
        *(hot_column(builder, each) for each in (CONFLICTS, FLUSHES_FAILED, ABANDONED, PACED_P50, PACED_P99)),
        computed("exposed", "Exposed to others", exposed, "ms"),
        computed("predicted", "Refused, predicted from the fewest writers", expected, "%"),
        computed("off", "Prediction off by", off, "points"),
        computed("further", f"Refused with {FURTHER} times the writers, predicted", further, "%"),
    )
    notes = [*NOTES("ingest-paced"), UNEQUAL]
    title = "Writers that commit at a set interval: refusals, and how they grow with writers"
    return builder.computed_table("ingest-paced", title, columns, chosen, hot_runs(chosen), notes)


def refused_sentence(measures: Measures) -> str:
    """Return the sentence on the share of refused commits with the most writers and the shortest interval."""
    chosen = [each for each in paced_series(measures.run_set) if each.hot_runs]
    if not chosen:
        raise NotAvailable("no writers committed at a set interval")
    every = min(PacedSettings.of(each).every_seconds for each in chosen)
    most = max(PacedSettings.of(each).writers for each in chosen)
    parts = []
    for series in chosen:
        given = PacedSettings.of(series)
        if (given.every_seconds, given.writers) == (every, most):
            with suppress(NotAvailable):
                share = 100 * refused(measures, series)
                text = f"{number(share, 2)} % in {series.title}"
                with suppress(NotAvailable):
                    text += (
                        f" ({number(100 * from_fewest(measures, chosen, series), 2)} % predicted from fewer writers)"
                    )
                parts.append((share, text))
    if not parts:
        raise NotAvailable("no system with the most writers tells")
    return (
        f"With {most} writers that each commit every {every} s, this share of the commits tried was refused because "
        f"another one came first: {listed([text for _, text in sorted(parts)])}."
    )


build = tables_by(_paced)
