"""Results of commits that were hit on the way: the table ingest-ambiguity, and what makes each system safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.analysis.formatting import Cell, MissingCell, listed, number
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import at_most
from tidemark.results.tables.table import (
    SYSTEM_OF_SERIES,
    ComputedColumn,
    Row,
    Table,
    TableBuilder,
    computed,
    part_column,
    series_columns,
    tables_by,
)
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import all_runs
from tidemark.services.fault_proxy import HELD_S
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.parts import AMBIGUITY, INLINED, LIMIT_SECONDS, of_part
from tidemark.studies.ingest.record import LOCAL_DISK, Ambiguity, Outcomes

LONGEST = 160  # characters shown of an error
UNTIL_FLUSHED = "until a flush whose answer is lost (the finding ducklake-flush-lost-answer)"
POLICIES = {CHECK: "looks for the row before it sends it again", BLIND: "sends it again", NEVER: "leaves it"}


@dataclass(frozen=True, slots=True)
class Hits:
    """Commits of one series that were hit, by way and policy."""

    series: Series
    server: str
    cells: tuple[Outcomes, ...]
    time_limit: str = ""

    @classmethod
    def of(cls, series: Series) -> Hits:
        """Return those of the only run of `series`."""
        found = series.runs[0].record(Ambiguity)
        return cls(series, found.server, found.cells, found.time_limit)

    def by(self, retry: str) -> list[Outcomes]:
        """Return the outcomes of one policy."""
        return [cell for cell in self.cells if cell.retry == retry]

    @property
    def title(self) -> str:
        """Title of the system; it may have been measured on the local disk as well as in a server."""
        return self.series.title + (", local files" if self.server == LOCAL_DISK else "")

    @property
    def safe(self) -> list[str]:
        """Policies with which each row is there once after each hit, and nothing is harmed; the safest first."""
        tried = [retry for retry in POLICIES if self.by(retry)]
        return [retry for retry in tried if all(is_whole(cell) for cell in self.by(retry))]

    @property
    def what_is_safe(self) -> str:
        return listed(self.safe) or "none of these"


def once(cell: Outcomes) -> int:
    """Return the number of rows that are there once, whether the writer had them acknowledged or not."""
    return cell.acked_once + cell.error_once


def twice(cell: Outcomes) -> int:
    """Return the number of rows that are there more than once."""
    return cell.acked_twice + cell.error_twice


def is_whole(cell: Outcomes) -> bool:
    """Return True if each row is there once, and nothing was harmed."""
    return not cell.harmed and once(cell) == cell.hits


def at_least(cell: Outcomes) -> float:
    """Return the lower bound (95 %, one-sided) of the probability that such a hit does harm."""
    return 1 - at_most(cell.hits - cell.harmed, cell.hits)


def harm(cells: Sequence[Outcomes]) -> str:
    """Return what went wrong in words, with counts; empty if nothing was harmed."""
    parts = [
        (sum(cell.unreadable for cell in cells), "tables cannot be read"),
        (sum(map(twice, cells)), "rows twice"),
        (sum(cell.acked_absent for cell in cells), "acknowledged rows lost"),
        (sum(cell.earlier_lost for cell in cells), "earlier rows lost"),
        (sum(cell.stuck for cell in cells), "clients stuck"),
    ]
    return ", ".join(f"{count:,} {words}" for count, words in parts if count)


def verdict(cell: Outcomes) -> str:
    """Return the outcome of a cell in words."""
    if cell.harmed:
        return f"HARMED: {harm([cell])}"
    if is_whole(cell):
        return "each row once" if not cell.error_once else "each row once, though reported as an error"
    return "rows missing, each reported as an error"


def series_with_hits(run_set: RunSet) -> tuple[Series, ...]:
    """Return the series of the part, including those without runs."""
    return of_part(run_set, AMBIGUITY).select(harness=False)


def all_hits(run_set: RunSet) -> list[Hits]:
    """Return the hits of each series with runs; raise NotAvailable, with the reason if it is known, if none has any."""
    found = series_with_hits(run_set)
    done = [Hits.of(series) for series in found if series.runs]
    if not done:
        raise NotAvailable(found[0].missing() if found else "no commit was hit on its way")
    return done


def _ambiguity(builder: TableBuilder) -> Table:
    type Pair = tuple[Hits, Outcomes]

    def count(key: str, title: str) -> ComputedColumn[Row[Pair]]:
        return part_column(key, title, lambda pair: getattr(pair[1], key))

    def server(row: Row[Pair]) -> Cell:
        return row.shown[0].server if row.shown else MissingCell(row.series.missing())

    def limit(pair: Pair) -> str:
        return pair[0].time_limit or ("no server" if pair[0].server == LOCAL_DISK else "none that can be set")

    columns: list[ComputedColumn[Row[Pair]]] = [
        *series_columns(SYSTEM_OF_SERIES),
        computed("server", "Commit goes to", server),
        part_column("time_limit", "Client's time limit", limit),
        count("fault", "Hit"),
        count("retry", "Policy"),
        part_column("verdict", "Verdict", lambda pair: verdict(pair[1])),
        part_column("safe", "What makes it safe", lambda pair: pair[0].what_is_safe),
        count("hits", "Hits"),
        count("harmed", "Hits that harm"),
        part_column("at_least", "Probability of harm, above", lambda pair: at_least(pair[1])),
        part_column("at_most", "Probability of harm, below", lambda pair: at_most(pair[1].harmed, pair[1].hits)),
        part_column("once", "Rows once", lambda pair: once(pair[1])),
        part_column("twice", "Rows twice", lambda pair: twice(pair[1])),
        count("acked_absent", "Rows acknowledged, not there"),
        count("error_absent", "Rows reported as an error, not there"),
        count("error_once", "Rows reported as an error, there"),
        count("unreadable", "Tables that cannot be read"),
        count("stuck", "Clients stuck"),
        count("earlier", "Earlier rows"),
        count("earlier_lost", "Earlier rows lost"),
        count("tables", "Tables"),
        part_column("said", "First error", lambda pair: pair[1].said[:LONGEST] or None),
        part_column("unread", "Why it cannot be read", lambda pair: pair[1].unread[:LONGEST] or None),
    ]
    chosen, rows = series_with_hits(builder.run_set), list[Row[Pair]]()
    for series in chosen:
        hits = Hits.of(series) if series.runs else None
        rows += Row.of(series, [(hits, cell) for cell in hits.cells] if hits else [])
    notes = [
        "A proxy stands between a client and the server that commits, and hits chosen commits, each of one row. after: "
        "the server commits, and its answer is lost. before: the request is lost. twice: the request is delivered two "
        "times, as by a proxy that replays it, and the second answer is given. status: the server commits, and 503 is "
        "given in place of its answer. late: the server commits, and its answer is held until the client gives up, by "
        f"its time limit of {LIMIT_SECONDS} s, or has waited {HELD_S:g} s all the same; one that gives up sees no "
        "difference to a connection that stays open without an answer. A client without a time limit would wait for "
        "ever, and is not hit so. A hit counts if the server committed (200, COMMIT) or never had the request. "
        "Only the first request of a row is hit: what a client sends again by itself gets through.",
        "A table in files on this machine has no server. Its client is in a process of its own, which is killed "
        "(SIGKILL): after, as it has made the link by which the commit becomes visible and asks for the next call; "
        "before, as it asks for that link, which is then not made. It is started again, whatever the policy.",
        "Policies of the writer after an error: never leaves the row; blind sends it again; check looks for the row's "
        "token first, by what the client offers (as in ingest-faults), and sends it again only if it is missing. blind "
        "and check open the client again before that.",
        "After each hit, the client writes one more row, and another client reads the table straight from the servers, "
        "past the proxy. Harm: a row is there more than once; an acknowledged row, or one acknowledged before the hit, "
        "is not there; the table cannot be read; or the client cannot write the next row, with its view of the table "
        "refreshed. A row that was reported as an error is no harm, there or not. Rows of a table that cannot be read "
        "are those of its files that can. A table that is broken is replaced by a new one before the next hit.",
        "What makes it safe: the policies with which each row is there once after each hit, in all ways that were "
        "measured. The probabilities are one-sided bounds (95 %, Clopper and Pearson), given that a commit is hit. How "
        "often an answer is lost depends on the network, and is not measured here.",
        "Rows are counted as readers see them. delta-rs, which takes its own commit for that of another client, "
        "commits the same file again as the next version: a reader has its rows once, a reader of the change feed "
        "twice, as the finding delta-own-commit shows.",
    ]
    title = "What is there after a commit, or the answer to it, was lost on the way"
    return builder.computed_table("ingest-ambiguity", title, columns, rows, all_runs(chosen), notes)


def harmed_sentence(run_set: RunSet) -> str:
    """Return the sentences on what hits did to each system's rows and tables."""
    found = all_hits(run_set)
    hits = sum(cell.hits for each in found for cell in each.cells)
    parts = [
        f"{hits:,} commits were hit on their way. Those that did harm are named by policy and way, with the lower "
        "bound of the probability of harm in brackets (95 %)."
    ]
    for each in found:
        words = []
        for retry in POLICIES:
            if harmed := [cell for cell in each.by(retry) if cell.harmed]:
                count, tried = sum(cell.harmed for cell in harmed), sum(cell.hits for cell in harmed)
                ways = listed([cell.fault for cell in harmed])
                least = number(min(map(at_least, harmed)), 2)
                words.append(f"{retry}: {count:,} of {tried:,} {ways} ({harm(harmed)}; above {least})")
        parts += [f"{each.title}, harmed with {'; '.join(words)}."] if words else []
    whole = [
        f"{each.title} ({number(max(at_most(cell.harmed, cell.hits) for cell in each.cells), 2)})"
        for each in found
        if not any(cell.harmed for cell in each.cells)
    ]
    if whole:
        parts.append(
            f"No hit did harm in {listed(whole)}; in brackets, the upper bound of the probability after so many (95 %)."
        )
    return " ".join(parts)


def safe_sentence(run_set: RunSet) -> str:
    """Return the sentences on what makes a lost answer cost nothing, by the measured cells."""
    found = all_hits(run_set)
    safe = {each.series.system: each for each in found if each.safe}
    return " ".join(_advice(found, safe))


def _advice(found: Sequence[Hits], safe: dict[str, Hits]) -> Iterator[str]:
    for policy, words in POLICIES.items():
        titles = [each.title for each in found if each.safe[:1] == [policy]]
        if titles:
            yield (
                f"A writer that, after an error, {words} ({policy}) has each row once in {listed(titles)}, in every "
                "way of losing that was measured."
            )
    for each in found:
        if each.safe:
            continue
        best = min(POLICIES, key=lambda retry: sum(cell.harmed for cell in each.by(retry)) if each.by(retry) else 1e9)
        left = [cell for cell in each.by(best) if not is_whole(cell)]
        what = "; ".join(f"{cell.fault}: {harm([cell]) or f'{cell.error_absent:,} rows not there'}" for cell in left)
        other = safe.get(INLINED.get(each.series.system, ""))
        instead = f" {other.title} is safe, with each row in the catalog, {UNTIL_FLUSHED}." if other else ""
        yield (
            f"For {each.title}, no policy of the writer is enough; with the best of them, {best}, this is left: "
            f"{what}.{instead}"
        )


build = tables_by(_ambiguity)
