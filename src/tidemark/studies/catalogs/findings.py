"""Findings of the study's chapter: each takes its verb from an interval, or states why it cannot."""

from __future__ import annotations

from functools import partial

from tidemark.analysis.formatting import estimate_text, listed, number
from tidemark.analysis.metrics import require
from tidemark.analysis.text_blocks import SentenceWriter, valued
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.catalogs import published
from tidemark.studies.catalogs.metrics import CREATE_TABLE, HOT, Kills, crashes
from tidemark.studies.catalogs.record import ALONE, CONFLICT, CatalogRecord, users_of

RELATIONAL, FILE, MEMORY = "rest-jdbc-postgres", "rest-jdbc-sqlite", "rest-memory"


class Writer(SentenceWriter):
    study = "catalogs"
    names = ("backend", "scaling", "hot-table", "oracle", "crash", "mistakes")

    def _of(self, users: int) -> list[Series]:
        return [each for each in self.run_set.select(harness=False) if users_of(each) == users]

    @property
    def most_users(self) -> int:
        return max((users_of(each) for each in self.run_set.select()), default=ALONE)

    def backend(self) -> str:
        """Return a sentence on the cost of the database itself: one operation of one server, over other backends."""
        by_name = {series.system: series for series in self._of(ALONE)}
        require(MEMORY in by_name, "the server was not measured in memory")
        parts = []
        for name in (RELATIONAL, FILE):
            if name in by_name:
                ratio = self.measures.ratio(CREATE_TABLE.median, by_name[name], by_name[MEMORY]).estimate("x")
                parts.append(f"{estimate_text(ratio)} over {by_name[name].title.partition(', ')[2]}")
        require(parts, "the server was measured over one backend alone")
        return (
            f"The same server takes {listed(parts)} as long to create a table as it takes in memory, where it "
            "writes no metadata file either."
        )

    def scaling(self) -> str:
        most = self.most_users
        require(most != ALONE, "there was one user alone")
        alone = {series.system: series for series in self._of(ALONE)}
        ratio = partial(self.measures.ratio, CREATE_TABLE.rate)
        found = valued(lambda each: ratio(each, alone.get(each.system)), self._of(most), "x")
        require(found, "no catalog was measured with one user and with several")
        parts = [f"{estimate_text(gain)} ({series.title})" for series, gain in found]
        return f"With {most:,} users, tables are created at this multiple of the rate of one user: {listed(parts)}."

    def hot_table(self) -> str:
        most = self.most_users
        parts = []
        for series in self._of(most):
            for run in series.hot_runs[:1]:
                chosen = run.words("part") == HOT.parts[0]
                if chosen.any():
                    outcome = run.words("outcome")[chosen]
                    conflicts = int((outcome == CONFLICT).sum())
                    parts.append(f"{conflicts:,} of {len(outcome):,} ({series.title})")
        require(parts, "no window had updates of one table by all users")
        return (
            f"When {most:,} users update one table, these updates end in a conflict that the server's own retries "
            f"did not resolve: {listed(parts)}."
        )

    def oracle(self) -> str:
        checked = [run for run in self.run_set.runs if run.manifest.oracle.applicable]
        require(checked, "no run could be checked")
        wrong = [run.label for run in checked if not run.manifest.oracle.verdict]
        entities = sum(run.manifest.oracle.found for run in checked)
        found = [run.record(CatalogRecord).oracle for run in checked]
        done = sum(each.resolved_done for each in found)
        unknown = done + sum(each.resolved_not for each in found)
        open_ends = f" Of {unknown:,} requests without a certain outcome, {done:,} had been done." if unknown else ""
        if wrong:
            return f"These runs do not hold what was answered with success: {listed(wrong)}.{open_ends}"
        return (
            f"All {len(checked):,} runs hold what was answered with success, and nothing else: {entities:,} entities "
            f"and properties, read back through another client.{open_ends}"
        )

    def crash(self) -> str:
        return crash_sentence(self.run_set)

    def mistakes(self) -> str:
        """Return sentences on where the report's text has another sign than its own appendix."""
        changes = []
        for case in ("50/50", "99/01"):
            change = published.change(published.SEQUENTIAL, case, "Write", "mean").estimate("%")
            if change.is_above(0):
                changes.append(f"{case}: {estimate_text(change)} longer")
        gain = published.gain("Create Catalog", published.USERS).estimate("x")
        fewer = (
            f" By Little's law on its own means, the new layer creates {estimate_text(gain)} as many catalogs a second "
        )
        fewer += f"with {published.USERS} users as with one." if gain.is_below(1) else "with many users."
        return (
            f"{len(changes)} signs of its analysis are wrong: it calls writes of the new layer faster in both mixes, "
            f"where its appendix has them slower ({'; '.join(changes)}).{fewer}"
        )


def crash_sentence(run_set: RunSet) -> str:
    """Return sentences on what exists after kills, and the bound on a loss.

    Raises NotAvailable if nothing was killed.
    """
    kills = require([each for each in crashes(run_set) if isinstance(each, Kills)], "no server was killed")
    text = f"While users write, a server or its database is killed {sum(len(each.each) for each in kills):,} times."
    text += "".join(f" {_loss(each)}" for each in kills if not each.holds)
    text += "".join(f" {_stuck(each)}" for each in kills if each.is_stuck)
    kept = [f"{each.series.title} ({each.title}: {number(each.at_most, 2)})" for each in kills if each.holds]
    if kept:
        text += (
            f" All that was acknowledged is there in {listed(kept)}; in brackets, what was killed, and the upper "
            "bound of the probability of a loss after that many kills without one (95 %)."
        )
    seconds = [second for each in kills for second in each.answered_s]
    if seconds:
        text += f" After a new start, it answers within {number(min(seconds), 2)} to {number(max(seconds), 2)} s."
    return text


def _loss(kills: Kills) -> str:
    after = f"{kills.with_loss:,} of {len(kills.each):,} kills of {kills.title}"
    gone = kills.total("lost") + (kills.lost_of_window or 0)
    what = f"{gone:,} acknowledged entities and updates are lost"
    if not gone:
        is_back = len(kills.answered_s) == len(kills.each)
        what = "entities are not as they were" if is_back else "it does not answer again"
    return f"{kills.series.title} does not hold: after {after}, {what}. To repeat it: {kills.command}."


def _stuck(kills: Kills) -> str:
    text = (
        f"{kills.series.title} reads, but takes few writes after a new start of {kills.title}: of "
        f"{kills.total('again'):,} at once, {kills.total('again_acked'):,} succeed"
    )
    less = f"; only {kills.telling:,} of its {len(kills.each):,} kills could show a loss"
    return f"{text}{less if kills.telling < len(kills.each) else ''}."
