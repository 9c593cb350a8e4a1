"""Findings of the study's chapter: each takes its numbers from runs, or states why there are none."""

from __future__ import annotations

from contextlib import suppress
from statistics import median_high

from tidemark.analysis.formatting import estimate_text, listed
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.text_blocks import SentenceWriter
from tidemark.studies.deltars import metrics, published
from tidemark.studies.deltars.samples import WRITE, DeltarsSettings, processors_text

HDFS, LOCAL, LEGACY = "delta-rs-hdfs", "delta-rs-local", "legacy"
PARTS = {"upload": "uploading", "application": "starting and ending the application", "kafka": "reading the topic",
         "tasks": "Hudi's tasks", "driver": "Spark's driver", "hdfs": "calls of HDFS"}  # fmt: skip
ENGINES = {
    "spark-delta-hdfs": "a session of Spark that runs already and writes Delta",
    "spark-hudi-hdfs": "the same upserting Hudi",
    "spark-hudi-bulk": "the same inserting into Hudi in bulk",
    "arrow-kafka-delta": "delta-rs behind a topic with Arrow batches",
}


class Writer(SentenceWriter):
    study = "deltars"
    names = ("writes", "legacy", "divided", "engine", "floor", "oracle", "limit")

    def _pairs(self, quantity: Metric, system: str, other: str, cores: int) -> list[str]:
        """Return the ratio of two systems, in words, for each table measured with both.

        Raise NotAvailable if there is none.
        """
        lines = []
        for data in metrics.tables_of(self.run_set):
            pair = [each for name in (system, other) if (each := metrics.find(self.run_set, name, data, cores))]
            with suppress(NotAvailable):
                if len(pair) == 2:
                    first, second = (self.measures.value(quantity, each) for each in pair)
                    lines.append(f"{estimate_text(first.ratio(second).estimate('x'))} ({_rows(data)})")
        return require(lines, "no table was measured with both")

    def writes(self) -> str:
        cores = metrics.fewest_cores(self.run_set)
        pairs = self._pairs(metrics.WRITE_MEDIAN, HDFS, LOCAL, cores)
        return (
            f"With {processors_text(cores)}, writing a complete table on HDFS takes delta-rs this multiple of the time "
            f"on the local disk (medians): {listed(pairs)}."
        )

    def floor(self) -> str:
        """Report the time that writes of the smallest table wait for refused closes on HDFS."""
        cores = metrics.fewest_cores(self.run_set)
        series = next(iter(metrics.in_order(self.run_set, system=HDFS, cores=cores)), None)
        if series is None or not series.runs:
            raise NotAvailable("delta-rs on HDFS was not measured")
        refused = self.measures.value(metrics.REFUSED, series).estimate("")
        data = DeltarsSettings.of(series).data
        lines = [
            f"{median_high(found):.2f} s with {count} refused ({len(found)} writes)"
            for count, found in metrics.by_refusals(series)
        ]
        return (
            f"Of the two files that a commit of {_rows(data)} closes on HDFS, the NameNode refuses "
            f"{estimate_text(refused)} at first, and the client sleeps before it asks again: a write takes "
            f"{listed(lines)}."
        )

    def legacy(self) -> str:
        """Compare the complete legacy path with the single call of delta-rs."""
        said = self._pairs(metrics.WRITE_MEAN, LEGACY, HDFS, metrics.fewest_cores(self.run_set))
        return f"To write, the legacy path takes this multiple of the time of delta-rs on HDFS (means): {listed(said)}."

    def limit(self) -> str:
        """Report the thesis's largest tables if a limit applied, and the rows that a limit left in Tidemark's runs."""
        lines = [
            f"of {sent:,} rows sent, {there:,} are in the table"
            for series in metrics.in_order(self.run_set)
            for run in series.runs
            if metrics.limit_of(run)
            for sent, there in (metrics.sent_and_there(run),)
        ]
        ours = f" Where a limit is set here, {listed(lines)}, which its oracle refuses." if lines else ""
        return published.limited() + ours

    def divided(self) -> str:
        """Report the share of each part in a legacy write, for the smallest and the largest table."""
        cores = metrics.fewest_cores(self.run_set)
        found = [each for each in metrics.in_order(self.run_set, system=LEGACY, cores=cores) if each.runs]
        require(found, "the legacy path was not measured")
        lines = []
        for series in dict.fromkeys((found[0], found[-1])):
            by_step, whole = metrics.parts(series.runs[0]), float(metrics.times(series.runs[0], WRITE).sum())
            shares = [f"{100 * float(by_step[step].sum()) / whole:.0f} % {words}" for step, words in PARTS.items()]
            lines.append(
                f"of {whole / len(by_step['upload']):.1f} s for {_rows(DeltarsSettings.of(series).data)}, "
                f"{listed(shares)}"
            )
        return f"A legacy write divides so: {'; '.join(lines)}."

    def engine(self) -> str:
        """Compare paths that differ in one part at a time with delta-rs."""
        cores, lines = metrics.fewest_cores(self.run_set), []
        for system, words in ENGINES.items():
            with suppress(NotAvailable):
                lines.append(f"{words} takes {listed(self._pairs(metrics.WRITE_MEAN, system, HDFS, cores))}")
        require(lines, "no path that changes one part alone was measured")
        return f"Of delta-rs's time for the same rows on the same HDFS (1x), {'; '.join(lines)}."

    def oracle(self) -> str:
        ran = [each for each in metrics.in_order(self.run_set) if each.runs and not each.is_null_baseline]
        require(ran, "no system was measured")
        wrong = [
            f"{each.title} ({each.mode})" for each in ran if not all(run.manifest.oracle.verdict for run in each.runs)
        ]
        if not wrong:
            return f"In all {len(ran)} series each table held what was written, and was read whole."
        return f"Tables do not hold what was written for {listed(wrong)}; they have no times here."


def _rows(data: str) -> str:
    return f"{published.WORDS[data]} rows" if data in published.WORDS else data
