"""Questions on many writers that the report's first table answers for each system."""

from __future__ import annotations

from tidemark.analysis.metrics import HIGHER, Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.claims.claim_data import positive
from tidemark.results.report.summary_table import Answering, SummaryMetric, SystemRuns
from tidemark.runs.runset import Series
from tidemark.studies.ingest.gateway.group_commit import STAGED
from tidemark.studies.ingest.load.records import BLIND
from tidemark.studies.ingest.metrics import COMMITS, CONFLICTS, FAIRNESS, LOST, P50, P99, ROWS
from tidemark.studies.ingest.parts import CUT, FAULTS, CutSettings, part_name
from tidemark.studies.ingest.settings import GROUP, ONE, WRITERS, GroupSettings, WritersSettings
from tidemark.studies.ingest.tables.faults import Cuts, costly, costly_cuts, killed_of, retry_of
from tidemark.studies.ingest.tables.maintenance import is_maintained, kept_of, wrong
from tidemark.studies.ingest.tables.requests import shape
from tidemark.systems.base import FULL

PERCENT = 100.0


def _shared(asked: SystemRuns) -> list[Series]:
    """Return the series with one table for all writers, by number of writers; raise NotAvailable if none has runs."""
    own = [each for each in asked.series if part_name(each) == WRITERS]
    found = [each for each in own if WritersSettings.of(each).tables == ONE and each.runs]
    if not found:
        raise NotAvailable(own[0].missing() if own else "not measured")
    return sorted(found, key=lambda each: WritersSettings.of(each).writers)


def _alone(quantity: Metric) -> Answering:
    def answer(asked: SystemRuns, _mode: str | None) -> BootstrapEstimate:
        first = _shared(asked)[0]
        if WritersSettings.of(first).writers != 1:
            raise NotAvailable("not measured with one writer")
        return positive(asked.measures.hot(quantity, first))

    return answer


def _many(quantity: Metric, factor: float = 1.0) -> Answering:
    """Return a function that answers from the series with the most writers."""

    def answer(asked: SystemRuns, _mode: str | None) -> BootstrapEstimate:
        found = asked.measures.hot(quantity, _shared(asked)[-1]).scaled(factor)
        return found if quantity.signed else positive(found)

    return answer


def _writers(asked: SystemRuns, _mode: str | None) -> str:
    return f"{WritersSettings.of(_shared(asked)[-1]).writers:,} writers"


def _with_kills(asked: SystemRuns) -> Series:
    return asked.first(lambda each: part_name(each) == FAULTS and retry_of(each) != BLIND, "nothing was killed")


def _costly_kills(asked: SystemRuns, _mode: str | None) -> BootstrapEstimate:
    return costly(_with_kills(asked)).scaled(PERCENT)


def _kills(asked: SystemRuns, _mode: str | None) -> str:
    return f"{sum(len(killed.each) for killed in killed_of(_with_kills(asked))):,} kills"


def _with_cuts(asked: SystemRuns) -> Series:
    """Return the power-cut series with the configured durability, not the one with full durability."""
    return asked.first(
        lambda each: part_name(each) == CUT and CutSettings.of(each).durability != FULL, "its power was not cut"
    )


def _costly_cuts(asked: SystemRuns, _mode: str | None) -> BootstrapEstimate:
    return costly_cuts(_with_cuts(asked)).scaled(PERCENT)


def _cuts(asked: SystemRuns, _mode: str | None) -> str:
    cuts = Cuts.of(_with_cuts(asked))
    return f"{len(cuts.each):,} cut{'s' if len(cuts.each) > 1 else ''}" + (", unreadable" if cuts.unread else "")


def _gathered(asked: SystemRuns) -> Series:
    """Return the series of staged requests with the most clients; raise NotAvailable if none has runs."""
    own = [each for each in asked.series if part_name(each) == GROUP and GroupSettings.of(each).policy == STAGED]
    found = [each for each in own if each.runs]
    if not found:
        raise NotAvailable(own[0].missing() if own else "no requests were gathered in front of it")
    return max(found, key=lambda each: shape(each)[::-1])


def _staged(quantity: Metric) -> Answering:
    return lambda asked, _mode: positive(asked.measures.hot(quantity, _gathered(asked)))


def _shape(asked: SystemRuns, _mode: str | None) -> str:
    rows, clients = shape(_gathered(asked))
    return f"{rows:,} rows a request, {clients:,} clients"


def _wrong_maintained(asked: SystemRuns, _mode: str | None) -> BootstrapEstimate:
    found = asked.first(is_maintained, "nothing was maintained while it was written to")
    return wrong(kept_of(found)).scaled(PERCENT)


QUESTIONS = (
    SummaryMetric(
        "commits-alone", "Commits/s, one writer", "commits/s", _alone(COMMITS), better=HIGHER,
        hint="Acknowledged commits of one writer in a closed loop, by the length of the window. Hot runs.",
    ),
    SummaryMetric(
        "commits-many", "Commits/s, many writers", "commits/s", _many(COMMITS), better=HIGHER, note=_writers,
        hint="Acknowledged commits of all writers of one table, with the most that were measured. Hot runs.",
        asks="Most commits a second to one table, many writers",
    ),
    SummaryMetric(
        "commit-alone", "Commit, one writer", "ms", _alone(P50),
        hint="Median time of an acknowledged commit of one writer. Hot runs.",
    ),
    SummaryMetric(
        "commit-p99-many", "Commit p99, many writers", "ms", _many(P99), note=_writers,
        hint="99 of 100 commits are acknowledged sooner, their retries included, with the most writers. Hot runs.",
    ),
    SummaryMetric(
        "conflicts-many", "Refused, many writers", "%", _many(CONFLICTS, PERCENT), signed=True, note=_writers,
        hint="Share of commits tried that are refused because another one came first, with the most writers, as far "
        "as catalog or client tell. Hot runs.",
    ),
    SummaryMetric(
        "fairness-many", "Fairness", "", _many(FAIRNESS), better=HIGHER, signed=True, note=_writers,
        hint="Jain's index of the writers' commits: 1 where all have as many. Hot runs.",
    ),
    SummaryMetric(
        "rows-gathered", "Rows/s, requests gathered", "rows/s", _staged(ROWS), better=HIGHER, note=_shape,
        hint="Acknowledged rows of clients behind a front that gathers their requests in a buffer, which is one "
        "commit, by the length of the window; with the most clients that were measured. Hot runs.",
        asks="Most rows a second, requests gathered",
    ),
    SummaryMetric(
        "p99-gathered", "Request p99, gathered", "ms", _staged(P99), note=_shape,
        hint="99 of 100 such requests are acknowledged sooner. Hot runs.",
    ),
    SummaryMetric(
        "lost-many", "Rows lost, many writers", "%", _many(LOST, PERCENT), signed=True, note=_writers,
        hint="Share of acknowledged rows that another client does not find, with the most writers. Hot runs.",
        asks="Most rows lost, many writers", extreme="worst",
        none="No system was seen to lose a row",
    ),
    SummaryMetric(
        "lost-killed", "Kills that lose rows", "%", _costly_kills, signed=True, note=_kills,
        hint="Share of kills (SIGKILL) of a writer or a server, with writes in flight, after which an acknowledged row "
        "is gone or there twice. Few kills leave a wide interval.",
        asks="Is anything lost when it is killed?", extreme="worst",
        none="No kill of any system lost an acknowledged row",
    ),
    SummaryMetric(
        "wrong-maintained", "Rows lost or doubled, maintained", "%", _wrong_maintained, signed=True,
        hint="Share of acknowledged rows that another client does not find once, where the table was flushed, merged, "
        "expired or vacuumed while writers wrote.",
        asks="Is anything lost or doubled when it is maintained?", extreme="worst",
        none="No maintenance during writes lost or doubled a row",
    ),
    SummaryMetric(
        "lost-cut", "Power cuts that lose rows", "%", _costly_cuts, signed=True, note=_cuts,
        hint="Share of cuts of the power, with writes in flight, after which an acknowledged row is gone, or the "
        "table cannot be read. The kernel's memory is lost, a disk's own cache is not. Few cuts leave a wide interval.",
        asks="Is anything lost when the power is?", extreme="worst",
        none="No cut of the power lost an acknowledged row",
    ),
)  # fmt: skip
