"""Sentences of the chapter, computed: each takes its verb from an interval, or states why it cannot."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tidemark.analysis.prose import SentenceWriter
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import estimate_text, listed, number
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.part import of_part
from tidemark.studies.ingest.quantities import COMMITS, CONFLICTS, FAIRNESS, P50, P99, P999
from tidemark.studies.ingest.settings import RETRIES
from tidemark.studies.ingest.writers.settings import ONE, OWN, WRITERS, mode_of

GENERATOR_SHARE = 20.0  # percent of the null system's rate, above which the load generator must be mentioned


class Writer(SentenceWriter):
    """Sentences on the part `writers`."""

    @property
    def run_set(self) -> RunSet:
        return of_part(self.measures.run_set, WRITERS)

    def sentences(self) -> dict[str, Written]:
        """Return all sentences by name."""
        made = {}
        for name, write in (
            ("alone", self.alone),
            ("scaling", self.scaling),
            ("contention", self.contention),
            ("conflicts", self.conflicts),
            ("retrying", self.retrying),
            ("tail", self.tail),
            ("fairness", self.fairness),
            ("lost", self.lost),
            ("oracle", self.oracle),
            ("generator", self.generator),
            ("durability", self.durability),
        ):
            made[f"ingest-{name}"] = write
        return made

    def _of(self, writers: int, tables: str = ONE, harness: bool = False) -> list[Series]:
        return [each for each in self.run_set.select(harness=harness) if mode_of(each.mode) == (tables, writers)]

    @property
    def _most(self) -> int:
        """The most writers of one table; raises Absent if no table had several."""
        found = [mode_of(each.mode)[1] for each in self.run_set.select(harness=False) if mode_of(each.mode)[0] == ONE]
        if max(found, default=1) == 1:
            raise Absent("no table had several writers")
        return max(found)

    def _said(self, quantity: Quantity, series: list[Series], unit: str | None = None) -> list[str]:
        """Return the quantity of each series that has it, with the title, largest first; raise Absent if none has."""
        found: list[tuple[Estimate, str]] = []
        for each in series:
            with suppress(Absent):
                found.append((self.measures.hot(quantity, each).estimate(unit or quantity.unit), each.title))
        if not found:
            raise Absent("no system has it")
        found.sort(key=lambda pair: -pair[0].value)
        return [f"{estimate_text(estimate)} ({title})" for estimate, title in found]

    def alone(self) -> str:
        said = self._said(COMMITS, self._of(1), "commits a second")
        return f"One writer, undisturbed, commits at these rates: {listed(said)}."

    def scaling(self) -> str:
        """Return the sentence on commits of the most writers over one, by systems that hold what they acknowledged."""
        most = self._most
        alone = {each.system: each for each in self._of(1)}
        parts, more, fewer = [], 0, 0
        for series in self._of(most):
            with suppress(Absent):
                gain = self.measures.ratio(COMMITS, series, alone.get(series.system)).estimate("x")
                parts.append((gain.value, f"{estimate_text(gain)} ({series.title})"))
                more, fewer = more + gain.is_above(1), fewer + gain.is_below(1)
        if not parts:
            raise Absent("no system was measured with one writer and with several")
        parts.sort(reverse=True)
        return (
            f"With {most} writers, one table takes this multiple of the commits of one writer: "
            f"{listed([words for _, words in parts])}. By their intervals, that is more in {more}, fewer in {fewer}, "
            f"and not distinguishable in {len(parts) - more - fewer} of {len(parts)}."
        )

    def contention(self) -> str:
        """Return the sentence on one table over a table per writer: the loss due to the table, not to the machine."""
        own = [each for each in self.run_set.select(harness=False) if mode_of(each.mode)[0] == OWN]
        if not own:
            raise Absent("no writers had a table each")
        writers = max(mode_of(each.mode)[1] for each in own)
        own_of = {each.system: each for each in self._of(writers, OWN)}
        parts = []
        for series in self._of(writers):
            with suppress(Absent):
                ratio = self.measures.ratio(COMMITS, series, own_of.get(series.system)).estimate("x")
                parts.append(f"{estimate_text(ratio)} ({series.title})")
        if not parts:
            raise Absent("no system was measured in both ways")
        return (
            f"{writers} writers of one table commit at this multiple of the rate of {writers} writers with a table "
            f"each, on the same machine: {listed(parts)}."
        )

    def conflicts(self) -> str:
        most = self._most
        parts = []
        for series in self._of(most):
            with suppress(Absent):
                share = self.measures.hot(CONFLICTS, series).scaled(100).estimate("%")
                parts.append((-share.value, f"{estimate_text(share)} ({series.title})"))
        if not parts:
            raise Absent("no system tells")
        said = listed([words for _, words in sorted(parts)])
        return (
            f"Of the commits that {most} writers tried, as far as catalog or client tell, these shares were refused "
            f"because another one came first: {said}."
        )

    def retrying(self) -> str:
        """Return the sentence on the effect of users' own retry settings, if a variant has them."""
        most = self._most
        shipped = {each.runs[0].manifest.system.base: each for each in self._of(most) if each.runs and not _set(each)}
        parts = []
        for series in self._of(most):
            if series.runs and _set(series):
                base = shipped.get(series.runs[0].manifest.system.base)
                with suppress(Absent):
                    rate = self.measures.ratio(COMMITS, series, base).estimate("x")
                    words = f"{series.title} {estimate_text(rate)} the commits"
                    with suppress(Absent):
                        tail = self.measures.ratio(P50, series, base).estimate("x")
                        words += f", each of which takes {estimate_text(tail)} the time at the median"
                    parts.append(words)
        if not parts:
            raise Absent("no system was measured with other settings of retries")
        return (
            f"With retries as users set them, against the same client as shipped, {most} writers: {'; '.join(parts)}."
        )

    def tail(self) -> str:
        most = self._most
        parts = []
        for series in self._of(most):
            with suppress(Absent):
                p50, p99 = (self.measures.hot(quantity, series).estimate("ms") for quantity in (P50, P99))
                words = f"{series.title} {estimate_text(p50)} and {estimate_text(p99)}"
                with suppress(Absent):
                    words += f", p99.9 {estimate_text(self.measures.hot(P999, series).estimate('ms'))}"
                parts.append(words)
        if not parts:
            raise Absent("no run has 100 commits")
        return f"Median and 99th percentile of a commit with its retries, {most} writers: {'; '.join(parts)}."

    def fairness(self) -> str:
        most = self._most
        said = self._said(FAIRNESS, self._of(most))
        return f"Jain's index of the commits of {most} writers, which is 1 where all have as many: {listed(said)}."

    def lost(self) -> str:
        """Return the sentence on systems that lose or double what they acknowledged, and on how to reproduce it."""
        parts: dict[str, list[str]] = {}
        for series in self.run_set.select(harness=False):
            for run in series.runs:
                if run.manifest.oracle.applicable and not run.manifest.oracle.verdict:
                    oracle: dict[str, Any] = dict(run.manifest.found)["oracle"]
                    words = (
                        f"{mode_of(series.mode)[1]} writers: {oracle['words']} of {oracle['expected']:,} acknowledged"
                    )
                    parts.setdefault(f"{series.title} ({series.system})", []).append(words)
        checked = {each.system for each in self.run_set.select(harness=False) if each.runs}
        if not checked:
            raise Absent("no run could be checked")
        if not parts:
            return "No system lost or doubled a row that it had acknowledged."
        said = "; ".join(f"{name}: {', '.join(dict.fromkeys(words))}" for name, words in parts.items())
        names = ", ".join(name.rpartition("(")[2].rstrip(")") + ": {}" for name in parts)
        return (
            f"Of {len(checked)} systems, {len(parts)} did not keep what was acknowledged. {said}. To see it again: "
            f"./tidemark all --config 'studies=[ingest]' 'ingest.systems={{{names}}}'. Speeds of such runs are no "
            "results, and are given nowhere."
        )

    def oracle(self) -> str:
        checked = [run for run in self.run_set.runs if run.manifest.oracle.applicable]
        if not checked:
            raise Absent("no run could be checked")
        exact = sum(run.manifest.oracle.verdict for run in checked)
        rows = sum(run.manifest.oracle.expected for run in checked)
        findings: list[dict[str, Any]] = [dict(run.manifest.found)["oracle"] for run in checked]
        done, not_done = (sum(each[name] for each in findings) for name in ("done", "not_done"))
        unknown = (
            f" Of {done + not_done:,} batches without a certain outcome, {done:,} had been committed."
            if done + not_done
            else " No batch was left without a certain outcome."
        )
        return (
            f"{exact:,} of {len(checked):,} runs hold every acknowledged row once, and no other, of {rows:,} that were "
            f"acknowledged.{unknown}"
        )

    def generator(self) -> str:
        """Return the sentence on writers' rates when a commit costs nothing, and on rates that come near them."""
        parts, above = [], []
        for writers in sorted({mode_of(each.mode)[1] for each in self.run_set.select()}):
            null = next((each for each in self._of(writers, harness=True) if each.is_harness), None)
            if null is None:
                continue
            most = self.measures.hot(COMMITS, null).estimate("commits/s")
            parts.append(f"{number(most.value, 3)} with {writers}")
            for series in self._of(writers):
                with suppress(Absent):
                    if 100 * self.measures.hot(COMMITS, series).value / most.value > GENERATOR_SHARE:
                        above.append(f"{series.title}, {writers} writers")
        if not parts:
            raise Absent("the system that stores nothing was not measured")
        near = f"; above {GENERATOR_SHARE:g} % of that: {listed(above)}" if above else (
            f"; every rate here is below {GENERATOR_SHARE:g} % of it")  # fmt: skip
        return f"Where a commit costs nothing, writers make this many a second: {listed(parts)}{near}."

    def durability(self) -> str:
        found = dict.fromkeys(
            f"{series.title}: {series.runs[0].manifest.system.durability}"
            for series in self.run_set.select(harness=False)
            if series.runs and not _set(series)
        )
        if not found:
            raise Absent("no system has a run")
        return f"They do not promise the same when they acknowledge. {' '.join(found)}"


def _set(series: Series) -> bool:
    """Return True if the series has other retry settings than the client as shipped."""
    options = dict(series.runs[0].manifest.system.options)
    return any(options.get(name) is not None for name in RETRIES)
