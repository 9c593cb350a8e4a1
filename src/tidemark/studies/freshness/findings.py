"""Findings of the study's chapter: each takes its numbers from runs, or states why there are none."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.formatting import listed, number
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.text_blocks import SentenceWriter
from tidemark.runs.runset import Series
from tidemark.studies.freshness import metrics
from tidemark.studies.freshness.capacity import TOLERATED, capacity
from tidemark.studies.freshness.frontier import frontier_sentence, policy_costs
from tidemark.studies.freshness.record import FreshnessRecord
from tidemark.studies.freshness.settings import FreshnessSettings


class Writer(SentenceWriter):
    study = "freshness"
    names = ("ages", "price", "behind", "capacity", "reads", "killed", "upkeep")

    def _measured(self) -> list[Series]:
        return require([each for each in metrics.steady(self.run_set) if each.runs], "no system was measured")

    def _alike(self) -> list[Series]:
        """Return one series per system, with the rate and the commit interval that most systems share."""
        return metrics.alike(self._measured())

    def ages(self) -> str:
        alike = self._alike()
        rate = FreshnessSettings.of(alike[0]).rate
        return (
            f"With {rate:,} events a second and commits {metrics.policy_of(alike[0])}, the median age of an event when "
            f"a reader first sees it is {self.values(metrics.SEEN_P50, alike, 's')}; the 95th percentile is "
            f"{self.values(metrics.SEEN_P95, alike, 's')}."
        )

    def price(self) -> str:
        return f"The processor time of a million events is then {self.values(metrics.CPU, self._alike(), 's')}."

    def behind(self) -> str:
        """Return a sentence on the systems whose lag grows, by its interval."""
        grows, holds = [], 0
        for each in self._measured():
            with suppress(NotAvailable):
                slope = self.measures.value(metrics.SLOPE, each).estimate("s/s")
                if slope.is_above(TOLERATED):
                    rate = FreshnessSettings.of(each).rate
                    grows.append(f"{each.title} ({metrics.policy_of(each)}, {rate:,} events/s)")
                else:
                    holds += 1
        require(grows or holds, "no series has commits enough to judge its lag by")
        faster = f" by more than {TOLERATED:g} s a second while events arrive"
        if not grows:
            return f"In none of {holds} series does the lag grow{faster}, as far as intervals tell."
        return f"The lag grows{faster} for {listed(grows)}; in {holds} series it does not, or intervals do not show it."

    def capacity(self) -> str:
        """Return a sentence on the highest rate of each climb at which the lag does not grow."""
        found: list[tuple[int, str]] = []
        below: list[str] = []
        for each in metrics.climbed(self.run_set):
            try:
                most = capacity(each.counted_runs)
            except NotAvailable as absent:
                below.append(f"{each.title} ({absent})")
                continue
            found.append((most.rate, f"{each.title} {'at least ' if most.is_least else ''}{most.rate:,}"))
        require(found or below, "no rate was raised step by step")
        lines = [f"{', '.join(words for _, words in sorted(found, reverse=True))}"] if found else []
        lines += [f"none for {listed(below)}"] if below else []
        return (
            "With a rate that is doubled step by step, the highest one in events a second at which the lag does not "
            f"grow is: {'; '.join(lines)}."
        )

    def reads(self) -> str:
        """Return a sentence on the time of the first sum over each system's table with the most commits."""
        most: dict[str, tuple[int, str]] = {}
        for each in self._measured():
            for run in each.counted_runs:
                record = run.record(FreshnessRecord)
                reads = record.reads
                if reads is None or reads.before is None:
                    continue
                words = f"{number(reads.before.sum_s[0], 2)} s after {record.commits:,} commits"
                if reads.after is not None:
                    names = listed([name for name, _ in reads.maintained])
                    words += f", {number(reads.after.sum_s[0], 2)} s after {names}"
                most[each.title] = max(most.get(each.title, (0, "")), (record.commits, f"{each.title}: {words}"))
        require(most, "no table was read at its end")
        return (
            "The first sum over all rows takes a client that never wrote to the table, where a system made most "
            f"commits: {'; '.join(words for _, (_, words) in sorted(most.items()))}."
        )

    def upkeep(self) -> str:
        return frontier_sentence([cost for _, cost in policy_costs(self.measures)])

    def killed(self) -> str:
        """Return a sentence on the systems whose tables hold each event once after kills, and on the others."""
        series = require([each for each in metrics.killed(self.run_set) if each.runs], "nothing was killed")
        exact = [each.title for each in series if all(run.manifest.oracle.verdict for run in each.runs)]
        wrong = [
            f"{each.title} ({run.manifest.oracle.missing:,} missing, {run.manifest.oracle.duplicated:,} more than once)"
            for each in series
            for run in each.runs
            if not run.manifest.oracle.verdict and not metrics.unfinished(run)
        ]
        late = [each.title for each in series if any(metrics.unfinished(run) for run in each.runs)]
        lines = [f"each event is in the table once for {listed(exact)}"] if exact else []
        lines += [f"that does not hold for {listed(wrong)}"] if wrong else []
        lines += [f"not all had come for {listed(late)} when it was stopped"] if late else []
        kills = max(FreshnessSettings.of(each).kills for each in series)
        return f"After {kills} kills, {'; '.join(lines)}."
