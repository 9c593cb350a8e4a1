"""Results of commits that were hit on the way: what each hit did, how likely a cut is one, what makes a system safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.analysis.formatting import listed, number
from tidemark.analysis.metrics import require
from tidemark.analysis.statistics import Estimate, at_most, exact_share, product
from tidemark.results.report.summary_table import with_runs
from tidemark.results.tables import table
from tidemark.results.tables.table import SYSTEM_OF_SERIES, ComputedColumn, Row, Table, TableBuilder, part_column
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import all_runs
from tidemark.services.fault_proxy import AFTER, CUT_OFF, HELD_S
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.parts import AMBIGUITY, INLINED, LIMIT_SECONDS, PAST, of_part
from tidemark.studies.ingest.record import LOCAL_DISK, Ambiguity, Outcomes

NOTES = table.notes_of(__file__)
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

    @property
    def aimed(self) -> list[Outcomes]:
        """Outcomes of hits of commits alone, without cuts at random moments."""
        return [cell for cell in self.cells if cell.fault != CUT_OFF]

    @property
    def cut(self) -> Outcomes | None:
        """Outcomes of cuts at random moments; None if there were none."""
        return next((cell for cell in self.cells if cell.fault == CUT_OFF), None)

    def by(self, retry: str) -> list[Outcomes]:
        """Return the outcomes of hits with one policy."""
        return [cell for cell in self.aimed if cell.retry == retry]

    @property
    def title(self) -> str:
        """Title of the system, which may have been measured in several places."""
        if self.server == LOCAL_DISK:
            return f"{self.series.title}, local files"
        through = dict(self.series.settings).get("through")
        return f"{self.series.title}, {self.server}" if through else self.series.title

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
    return [Hits.of(each) for each in with_runs(series_with_hits(run_set), "no commit was hit on its way")]


def _ambiguity(builder: TableBuilder) -> Table:
    type Pair = tuple[Hits, Outcomes]

    def count(key: str, title: str) -> ComputedColumn[Row[Pair]]:
        return part_column(key, title, lambda pair: getattr(pair[1], key))

    def limit(pair: Pair) -> str:
        return pair[0].time_limit or ("no server" if pair[0].server == LOCAL_DISK else "none that can be set")

    columns: list[ComputedColumn[Row[Pair]]] = [
        *table.series_columns(SYSTEM_OF_SERIES),
        table.with_reason(part_column("server", "Commit goes to", lambda pair: pair[0].server)),
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
        rows += Row.of(series, [(hits, cell) for cell in hits.aimed] if hits else [])
    notes = NOTES("ingest-ambiguity", limit=LIMIT_SECONDS, held=HELD_S)
    title = "What is there after a commit, or the answer to it, was lost on the way"
    return builder.computed_table("ingest-ambiguity", title, columns, rows, all_runs(chosen), notes)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Cuts of a series' connections at random moments, and what lost answers do by one policy of the writer."""

    hits: Hits
    cut: Outcomes
    retry: str

    @classmethod
    def of(cls, hits: Hits) -> list[Cuts]:
        """Return those of each policy that was measured; none without cuts."""
        cut = hits.cut
        return [] if cut is None else [cls(hits, cut, retry) for retry in POLICIES if hits.by(retry)]

    @property
    def aimed(self) -> Outcomes:
        """Outcomes of answers that were lost on purpose; raise NotAvailable if none were."""
        found = [cell for cell in self.hits.by(self.retry) if cell.fault == AFTER]
        return require(found, "no answer was lost on purpose")[0]

    def lost(self, confidence: float = 0.95) -> Estimate:
        """Return the probability that a cut loses the answer to a commit."""
        return exact_share(self.cut.lost, self.cut.hits, confidence)

    def harm(self, confidence: float = 0.95) -> Estimate:
        """Return the probability that a lost answer does harm."""
        return exact_share(self.aimed.harmed, self.aimed.hits, confidence)

    @property
    def both(self) -> Estimate:
        """Probability that a cut does harm by a lost answer; the interval holds with both factors' at once."""
        return product(self.lost(BOTH), self.harm(BOTH))

    @property
    def seen(self) -> int | None:
        """Cuts that did harm with this policy; None if they were made with another."""
        return self.cut.harmed if self.retry == self.cut.retry else None

    @property
    def lost_seen(self) -> int | None:
        """Number of the cuts in `seen` that lost an answer."""
        return self.cut.lost_harmed if self.retry == self.cut.retry else None


BOTH = 0.975  # confidence of two intervals that hold together with 95 % (Bonferroni)


def _cuts(builder: TableBuilder) -> Table:
    columns: list[ComputedColumn[Row[Cuts]]] = [
        *table.series_columns(SYSTEM_OF_SERIES),
        table.computed("server", "Commit goes to", lambda row: row.shown.hits.server if row.shown else None),
        part_column("retry", "Policy", lambda cuts: cuts.retry),
        part_column("cuts", "Cuts", lambda cuts: cuts.cut.hits),
        part_column("lost", "Answers lost", lambda cuts: cuts.cut.lost),
        part_column("p_lost", "P(answer lost, if cut)", lambda cuts: cuts.lost(), interval=True),
        part_column("aimed", "Answers lost on purpose", lambda cuts: cuts.aimed.hits),
        part_column("harmed", "Of these, with harm", lambda cuts: cuts.aimed.harmed),
        part_column("p_harm", "P(harm, if lost)", lambda cuts: cuts.harm(), interval=True),
        part_column("p_both", "P(harm, if cut)", lambda cuts: cuts.both, interval=True),
        part_column("seen", "Cuts with harm", lambda cuts: cuts.seen),
        part_column("lost_seen", "Of these, answer lost", lambda cuts: cuts.lost_seen),
    ]
    chosen = series_with_hits(builder.run_set)
    rows = [Row(series, cuts) for series in chosen if series.runs for cuts in Cuts.of(Hits.of(series))]
    notes = NOTES("ingest-ambiguity-cuts", past=PAST)
    title = "How often a cut connection loses the answer to a commit, and does harm"
    return builder.computed_table("ingest-ambiguity-cuts", title, columns, rows, all_runs(chosen), notes)


def cuts_sentence(run_set: RunSet) -> str:
    """Return the sentences on how often a cut at a random moment loses an answer, and what that does."""
    found = [cuts for each in all_hits(run_set) for cuts in Cuts.of(each)[:1]]
    require(found, "no connection was cut at a random moment")
    words = []
    for each in found:
        lost = each.lost()
        assert lost.low is not None and lost.high is not None
        share = f"{number(lost.low, 2)} to {number(lost.high, 2)}"
        words.append(f"{each.hits.title}: {each.cut.lost:,} of {each.cut.hits:,} ({share})")
    return (
        "Of connections that were cut at a random moment of a write, so many lost the answer to a commit that the "
        f"server had made (in brackets, 95 %): {'; '.join(words)}."
    )


def harmed_sentence(run_set: RunSet) -> str:
    """Return the sentences on what hits did to each system's rows and tables."""
    found = all_hits(run_set)
    hits = sum(cell.hits for each in found for cell in each.aimed)
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
        f"{each.title} ({number(max(at_most(cell.harmed, cell.hits) for cell in each.aimed), 2)})"
        for each in found
        if not any(cell.harmed for cell in each.aimed)
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


build = table.tables_by(_ambiguity, _cuts)
