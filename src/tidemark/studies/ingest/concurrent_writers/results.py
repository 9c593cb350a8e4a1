"""Results of many writers, and their findings: each takes its verb from an interval, or states why it cannot."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.formatting import estimate_text, listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.text_blocks import SentenceWriter
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.assembly import Written
from tidemark.studies.ingest.concurrent_writers import tables
from tidemark.studies.ingest.metrics import COMMITS, CONFLICTS, P50
from tidemark.studies.ingest.part import PartResults, of_part
from tidemark.studies.ingest.record import CheckRecord
from tidemark.studies.ingest.settings import ONE, RETRIES, WRITERS, WritersSettings


class Writer(SentenceWriter):
    """Sentences on the part `writers`."""

    @property
    def run_set(self) -> RunSet:
        return of_part(self.measures.run_set, WRITERS)

    def sentences(self) -> dict[str, Written]:
        """Return all sentences by name."""
        return {
            "ingest-scaling": self.scaling,
            "ingest-conflicts": self.conflicts,
            "ingest-retrying": self.retrying,
            "ingest-lost": self.lost,
        }

    def _of_one_table(self) -> dict[int, list[Series]]:
        """Return the series whose writers share one table, by number of writers."""
        found: dict[int, list[Series]] = {}
        for each in self.run_set.select(harness=False):
            given = WritersSettings.of(each)
            if given.tables == ONE:
                found.setdefault(given.writers, []).append(each)
        return found

    def _of_most(self) -> tuple[int, list[Series]]:
        """Return the most writers of one table and their series; raise NotAvailable if no table had several writers."""
        found = self._of_one_table()
        most = max(found, default=1)
        if most == 1:
            raise NotAvailable("no table had several writers")
        return most, found[most]

    def scaling(self) -> str:
        """Return the sentence on commits of the most writers over one, by systems that hold what they acknowledged."""
        most, series_of_most = self._of_most()
        alone = {each.system: each for each in self._of_one_table().get(1, [])}
        parts, more, fewer = [], 0, 0
        for series in series_of_most:
            with suppress(NotAvailable):
                gain = self.measures.ratio(COMMITS, series, alone.get(series.system)).estimate("x")
                parts.append((gain.value, f"{estimate_text(gain)} ({series.title})"))
                more, fewer = more + gain.is_above(1), fewer + gain.is_below(1)
        if not parts:
            raise NotAvailable("no system was measured with one writer and with several")
        parts.sort(reverse=True)
        return (
            f"With {most} writers, one table takes this multiple of the commits of one writer: "
            f"{listed([words for _, words in parts])}. By their intervals, that is more in {more}, fewer in {fewer}, "
            f"and not distinguishable in {len(parts) - more - fewer} of {len(parts)}."
        )

    def conflicts(self) -> str:
        most, series_of_most = self._of_most()
        parts = []
        for series in series_of_most:
            with suppress(NotAvailable):
                share = self.measures.hot(CONFLICTS, series).scaled(100).estimate("%")
                parts.append((-share.value, f"{estimate_text(share)} ({series.title})"))
        if not parts:
            raise NotAvailable("no system tells")
        said = listed([words for _, words in sorted(parts)])
        return (
            f"Of the commits that {most} writers tried, as far as catalog or client tell, these shares were refused "
            f"because another one came first: {said}."
        )

    def retrying(self) -> str:
        """Return the sentence on the effect of users' own retry settings, if a variant has them."""
        most, series_of_most = self._of_most()
        shipped = {each.runs[0].manifest.system.base: each for each in series_of_most if each.runs and not _set(each)}
        parts = []
        for series in series_of_most:
            if series.runs and _set(series):
                base = shipped.get(series.runs[0].manifest.system.base)
                with suppress(NotAvailable):
                    rate = self.measures.ratio(COMMITS, series, base).estimate("x")
                    words = f"{series.title} {estimate_text(rate)} the commits"
                    with suppress(NotAvailable):
                        tail = self.measures.ratio(P50, series, base).estimate("x")
                        words += f", each of which takes {estimate_text(tail)} the time at the median"
                    parts.append(words)
        if not parts:
            raise NotAvailable("no system was measured with other settings of retries")
        return (
            f"With retries as users set them, against the same client as shipped, {most} writers: {'; '.join(parts)}."
        )

    def lost(self) -> str:
        """Return the sentence on systems that lose or double what they acknowledged, and on how to reproduce it."""
        parts: dict[str, list[str]] = {}
        for series in self.run_set.select(harness=False):
            for run in series.runs:
                if run.manifest.oracle.applicable and not run.manifest.oracle.verdict:
                    oracle, writers = run.record(CheckRecord).oracle, WritersSettings.of(series).writers
                    words = f"{writers} writers: {oracle.words} of {oracle.expected:,} acknowledged"
                    parts.setdefault(f"{series.title} ({series.system})", []).append(words)
        checked = {each.system for each in self.run_set.select(harness=False) if each.runs}
        if not checked:
            raise NotAvailable("no run could be checked")
        if not parts:
            return "No system lost or doubled a row that it had acknowledged."
        said = "; ".join(f"{name}: {', '.join(dict.fromkeys(words))}" for name, words in parts.items())
        names = ", ".join(name.rpartition("(")[2].rstrip(")") + ": {}" for name in parts)
        return (
            f"Of {len(checked)} systems, {len(parts)} did not keep what was acknowledged. {said}. To see it again: "
            f"./tidemark all --config 'studies=[ingest]' 'ingest.systems={{{names}}}'. Speeds of such runs are no "
            "results, and are given nowhere."
        )


def _set(series: Series) -> bool:
    """Return True if the series has other retry settings than the client as shipped."""
    options = dict(series.runs[0].manifest.system.options)
    return any(options.get(name) is not None for name in RETRIES)


def _findings(measures: Measures) -> tuple[Written, ...]:
    writer = Writer(measures)
    return (writer.scaling, writer.conflicts, writer.lost, writer.retrying)


RESULTS = PartResults(
    tables=tables.build,
    figures="tidemark.studies.ingest.concurrent_writers.figures",
    sentences=lambda measures: Writer(measures).sentences(),
    findings=_findings,
)
