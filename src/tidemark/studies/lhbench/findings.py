"""Findings of the study: each sentence takes its numbers from runs, or states why there are none."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.formatting import estimate_text, listed, number
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.text_blocks import SentenceWriter
from tidemark.runs.runset import Series
from tidemark.runs.views import all_runs
from tidemark.studies.lhbench import metrics, published
from tidemark.studies.lhbench.record import LakeRecord
from tidemark.studies.lhbench.script import BEFORE
from tidemark.studies.lhbench.settings import FILES, LOAD, REFRESH, settings_of
from tidemark.studies.lhbench.verifier.readers import DUCKLAKE


class Writer(SentenceWriter):
    study = "lhbench"
    names = ("loads", "queries", "second", "refreshes", "files", "oracle", "axis")

    def _series(self, part: str) -> list[Series]:
        """Return each system's series with the largest scale that has runs; NotAvailable if there is none."""
        return metrics.largest(metrics.measured_in(self.run_set, part))

    def _values(self, quantity: Metric, part: str) -> str:
        """Return each system's value of `quantity` in words, smallest first; NotAvailable if no system has one."""
        return self.values(quantity, self._series(part))

    def loads(self) -> str:
        return f"The tables were loaded in {self._values(metrics.LOADING, LOAD)}."

    def queries(self) -> str:
        return f"The queries took, as the sum of their medians, {self._values(metrics.TOTAL, LOAD)}."

    def second(self) -> str:
        """Report DuckDB's times on tables that Spark wrote and on tables it loaded itself, or why there are none."""
        words, without = "", []
        for each in self._series(LOAD):
            try:
                self.measures.value(metrics.LOADED_TABLES, each)
            except NotAvailable as absent:
                without.append(f"{each.title}: {absent}")
            with suppress(NotAvailable):
                loaded, asked = (
                    estimate_text(self.measures.value(what, each).estimate("s"))
                    for what in (metrics.LOADED, metrics.total_by(DUCKLAKE, BEFORE))
                )
                words += f" DuckLake's tables it loaded of the same files in {loaded}; there the queries took {asked}."
        times = self._values(metrics.LOADED_TABLES, LOAD) + (
            f" (without a time: {'; '.join(without)})" if without else ""
        )
        return f"To the same queries of the same tables DuckDB answered in {times}.{words}"

    def refreshes(self) -> str:
        return f"A refresh took {self._values(metrics.MERGING, REFRESH)}."

    def files(self) -> str:
        """Report startup and total time of the selective queries, at the largest measured number of files."""
        most = max(settings_of(each).size for each in self._series(FILES))
        startup, whole = (self._values(metrics.OF_SELECTIVE[place], FILES) for place in (0, 2))
        return (
            f"With {most:,.0f} files the startup of the three selective queries together took {startup}; whole queries "
            f"{whole}."
        )

    def oracle(self) -> str:
        """Report whether all tables and answers are correct."""
        runs = require(all_runs(self.run_set.select()), "nothing was measured")
        records = [(run, run.record(LakeRecord)) for run in runs]
        tables = sum(len(phase) for _, record in records for _, phase in record.tables)
        answers = sum(len(phase) for _, record in records for _, phase in record.answers)
        titles = {f"{run.manifest.system.title} ({record.words})" for run, record in records
                  if not run.manifest.oracle.verdict}  # fmt: skip
        failed = sorted({f"{run.manifest.system.title}, {words}" for run, record in records for words in record.failed})
        whole = f"{tables:,} times a table was read without the engine, and {answers:,} answers were compared: "
        verdict = f"not so: {'; '.join(sorted(titles))}" if titles else "all are what they must be"
        return f"{whole}{verdict}." + (f" Queries that failed: {'; '.join(failed)}." if failed else "")

    def axis(self) -> str:
        labelled, hundredth = published.reading(1), published.reading(published.LABELLED)
        return (
            "With the labels of its figure 3 as they stand, "
            f"{number(100 * min(labelled.shares), 3)} % of the files or more are touched at every point, and a line "
            f"through them misses a time by {number(100 * labelled.worst, 2)} %; with a hundredth of them shares are "
            f"{listed([f'{number(100 * share, 3)} %' for share in hundredth.shares])}, and it misses none by more than "
            f"{number(100 * hundredth.worst, 2)} %."
        )
