"""Sentences of the study's chapter: each takes its verb from an interval, or states why it cannot."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any

from tidemark.analysis.prose import SentenceWriter, or_why
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.words import estimate_text, listed, number
from tidemark.runs.runset import Series
from tidemark.studies.catalogs import published, robust
from tidemark.studies.catalogs.measures import CatalogEvidence, printed_change, printed_gain
from tidemark.studies.catalogs.outcomes import ACKED, CONFLICT
from tidemark.studies.catalogs.quantities import (
    APPENDED,
    CREATING,
    HOT,
    MEDIAN,
    RATE,
    READ,
    STATEMENTS,
    TRANSACTED,
    TRIES,
    UPDATE,
)
from tidemark.studies.catalogs.settings import ALONE, users_of
from tidemark.studies.catalogs.tables.distance import pairs

GENERATOR_SHARE = 5.0  # percent of a response above which the load generator is mentioned
RELATIONAL, FILE, MEMORY = "rest-jdbc-postgres", "rest-jdbc-sqlite", "rest-memory"


class Writer(SentenceWriter):
    def sentences(self) -> dict[str, str]:
        """Return all sentences by name."""
        made = {}
        for name, write in (
            ("alone", self.alone),
            ("order", self.order),
            ("backend", self.backend),
            ("statements", self.statements),
            ("distance", self.distance),
            ("scaling", self.scaling),
            ("hot-table", self.hot_table),
            ("appends", self.appends),
            ("churn", self.churn),
            ("generator", self.generator),
            ("oracle", self.oracle),
            ("crash", self.crash),
            ("durability", self.durability),
            ("mistakes", self.mistakes),
        ):
            made[f"catalogs-{name}"] = or_why(write)
        return made

    def _of(self, users: int, harness: bool = False) -> list[Series]:
        return [each for each in self.run_set.select(harness=harness) if users_of(each.mode) == users]

    @property
    def most_users(self) -> int:
        return max((users_of(each.mode) for each in self.run_set.select()), default=ALONE)

    def _hot(self, quantity: Quantity, series: Series) -> str:
        return estimate_text(self.measures.hot(quantity, series).estimate(quantity.unit))

    def alone(self) -> str:
        parts = []
        for sort in (*CREATING, READ, UPDATE):
            found = []
            for series in self._of(ALONE):
                with suppress(Absent):
                    found.append((self.measures.hot(MEDIAN[sort.name], series).value, series.title))
            if found:
                (least, quick), (longest, slow) = min(found), max(found)
                ends = f"{number(least, 3)} ms ({quick})"
                parts.append(
                    f"{sort.name} {ends}"
                    if quick == slow
                    else f"{sort.name} from {ends} to {number(longest, 3)} ms ({slow})"
                )
        if not parts:
            raise Absent("no catalog was measured with one user")
        return f"One request at a time, the medians of hot runs are: {'; '.join(parts)}."

    def order(self) -> str:
        """Return a sentence on the order of creations by cost, as far as intervals distinguish them."""
        found = []
        for series in self._of(ALONE):
            with suppress(Absent):
                costs = [(self.measures.hot(MEDIAN[sort.name], series), sort.name.split()[-1]) for sort in CREATING]
                costs.sort(key=lambda cost: -cost[0].value)
                words = costs[0][1]
                for (before, _), (after, name) in pairwise(costs):
                    words += f" {'>' if before.ratio(after).estimate('x').is_above(1) else '≈'} {name}"
                found.append(f"{words} ({series.title})")
        if not found:
            raise Absent("no catalog has all creations")
        ours = f"By the medians of creations, where ≈ is what intervals do not tell apart, the order is {listed(found)}"
        return f"{ours}; the report's old layer had view > table > namespace."

    def backend(self) -> str:
        """Return a sentence on the cost of the database itself: one operation of one server, over other backends."""
        by_name = {series.system: series for series in self._of(ALONE)}
        if MEMORY not in by_name:
            raise Absent("the server was not measured in memory")
        parts = []
        for name in (RELATIONAL, FILE):
            if name in by_name:
                ratio = self.measures.ratio(MEDIAN["create table"], by_name[name], by_name[MEMORY]).estimate("x")
                parts.append(f"{estimate_text(ratio)} over {by_name[name].title.partition(', ')[2]}")
        if not parts:
            raise Absent("the server was measured over one backend alone")
        return (
            f"The same server takes {listed(parts)} as long to create a table as it takes in memory, where it "
            "writes no metadata file either."
        )

    def statements(self) -> str:
        """Return a sentence on the SQL statements per request, for databases that count them."""
        parts = []
        for name, words in (("create table", "creates a table"), ("read", "reads"), ("append", "appends to a table")):
            found = []
            for series in self._of(ALONE):
                with suppress(Absent):
                    statements = self.measures.hot(STATEMENTS[name], series).value
                    found.append(f"{number(statements, 2)} ({series.title})")
            if found:
                parts.append(f"one that {words} takes {listed(found)}")
        if not parts:
            raise Absent("no database of a catalog counted statements")
        return f"In SQL statements to its database, with one user a request costs: {'; '.join(parts)}."

    def distance(self) -> str:
        """Return a sentence on the round trips to the database, for systems measured at two distances from it."""
        parts = []
        for pair in pairs(self.run_set):
            if pair.users == ALONE:
                found = []
                for name in ("create table", "read", "update"):
                    with suppress(Absent):
                        trips = pair.round_trips(self.measures, MEDIAN[name]).estimate("round trips")
                        found.append(f"{name} {estimate_text(trips)}")
                if found:
                    parts.append(f"{pair.near.title}, from {pair.near_ms} to {pair.far_ms} ms: {listed(found)}")
        if not parts:
            raise Absent("no system was measured at two distances from its database")
        return f"By what distance adds to the median, a request takes round trips to its database. {'; '.join(parts)}."

    def scaling(self) -> str:
        most = self.most_users
        if most == ALONE:
            raise Absent("there was one user alone")
        alone = {series.system: series for series in self._of(ALONE)}
        parts = []
        for series in self._of(most):
            if series.system in alone:
                with suppress(Absent):
                    ratio = self.measures.ratio(RATE["create table"], series, alone[series.system]).estimate("x")
                    parts.append(f"{estimate_text(ratio)} ({series.title})")
        if not parts:
            raise Absent("no catalog was measured with one user and with several")
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
        if not parts:
            raise Absent("no window had updates of one table by all users")
        return (
            f"When {most:,} users update one table, these updates end in a conflict that the server's own retries "
            f"did not resolve: {listed(parts)}."
        )

    def appends(self) -> str:
        """Return a sentence on a stream's commit race: the cost of adding a snapshot if no other one was first."""
        most = self.most_users
        parts = []
        for series in self._of(most):
            with suppress(Absent):
                tries = self.measures.hot(TRIES, series).estimate("")
                rate = self.measures.hot(RATE[APPENDED.name], series).estimate("a second")
                parts.append(f"{estimate_text(tries)} attempts, {estimate_text(rate)} ({series.title})")
        if not parts:
            raise Absent("no window had appends to one table by all users")
        return (
            f"When {most:,} users append snapshots to one table, each on the condition that no other one was first, "
            f"an append takes {listed(parts)}.{self._transactions(most)}"
        )

    def _transactions(self, users: int) -> str:
        """Return a sentence on appends through the endpoint for several tables; empty if no part has them."""
        parts = []
        for series in self._of(users):
            for run in series.hot_runs[:1]:
                done = run.words("outcome")[run.words("part") == TRANSACTED.parts[0]]
                if len(done):
                    lost = dict(run.manifest.found)["oracle"].get("lost_updates", 0)
                    parts.append(f"{int((done == ACKED).sum()):,} are acknowledged, {lost:,} lost ({series.title})")
        said = " Through the endpoint for changes of several tables, with the same condition, "
        return f"{said}{listed(parts)}." if parts else ""

    def churn(self) -> str:
        return robust.churn_sentence(self.run_set)

    def crash(self) -> str:
        return robust.crash_sentence(self.run_set)

    def generator(self) -> str:
        """Return a sentence on the cost of a request to the null server, and its largest share of a response."""
        parts = []
        for users in dict.fromkeys((ALONE, self.most_users)):
            null = next((each for each in self._of(users, harness=True) if each.is_harness), None)
            if null is None:
                continue
            own = self.measures.hot(MEDIAN["read"], null).estimate("ms")
            shares = []
            for series in self._of(users):
                for sort in (*CREATING, READ, UPDATE):
                    with suppress(Absent):
                        share = 100 * own.value / self.measures.hot(MEDIAN[sort.name], series).value
                        shares.append((share, f"{sort.name} of {series.title}"))
            above = [share for share in shares if share[0] > GENERATOR_SHARE]
            told = f"below {GENERATOR_SHARE:g} % of every response"
            if above:
                most, which = max(above)
                told = (
                    f"above {GENERATOR_SHARE:g} % of the response in {len(above):,} of {len(shares):,} cells (most in "
                    f"{which}: {number(most, 2)} %)"
                )
            parts.append(f"{estimate_text(own)} with {users:,} {'user' if users == 1 else 'users'}, {told}")
        if not parts:
            raise Absent("the server that answers at once was not measured")
        return f"Asking a server that answers at once takes a median of {'; '.join(parts)}."

    def oracle(self) -> str:
        checked = [run for run in self.run_set.runs if run.manifest.oracle.applicable]
        if not checked:
            raise Absent("no run could be checked")
        wrong = [run.label for run in checked if not run.manifest.oracle.verdict]
        entities = sum(run.manifest.oracle.found for run in checked)
        unknown = done = 0
        for run in checked:
            found: dict[str, Any] = dict(run.manifest.found)["oracle"]
            done += found["resolved_done"]
            unknown += found["resolved_done"] + found["resolved_not"]
        open_ends = f" Of {unknown:,} requests without a certain outcome, {done:,} had been done." if unknown else ""
        if wrong:
            return f"These runs do not hold what was answered with success: {listed(wrong)}.{open_ends}"
        return (
            f"All {len(checked):,} runs hold what was answered with success, and nothing else: {entities:,} entities "
            f"and properties, read back through another client.{open_ends}"
        )

    def durability(self) -> str:
        found = dict.fromkeys(
            f"{series.title}: {series.runs[0].manifest.system.durability}"
            for series in self.run_set.select(harness=False)
            if series.runs
        )
        if not found:
            raise Absent("no catalog has a run")
        return f"They do not promise the same when they answer. {'. '.join(found)}."

    def mistakes(self) -> str:
        """Return sentences on where the report's text has another sign than its own appendix."""
        evidence = CatalogEvidence(self.measures)
        changes = []
        for case in ("50/50", "99/01"):
            change = printed_change(evidence, published.SEQUENTIAL, case, "Write", "mean")[0].estimate("%")
            if change.is_above(0):
                changes.append(f"{case}: {estimate_text(change)} longer")
        gain = printed_gain(evidence, "Create Catalog", published.USERS)[0].estimate("x")
        fewer = (
            f" By Little's law on its own means, the new layer creates {estimate_text(gain)} as many catalogs a second "
        )
        fewer += f"with {published.USERS} users as with one." if gain.is_below(1) else "with many users."
        return (
            f"{len(changes)} signs of its analysis are wrong: it calls writes of the new layer faster in both mixes, "
            f"where its appendix has them slower ({'; '.join(changes)}).{fewer}"
        )
