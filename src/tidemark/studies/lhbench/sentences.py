"""Computed sentences of the study's chapter: each takes its numbers from runs, or states why there are none."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.prose import SentenceWriter, or_why
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.words import estimate_text, listed, number
from tidemark.runs.runset import Series
from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.axis import reading
from tidemark.studies.lhbench.files.settings import FILES
from tidemark.studies.lhbench.judge.readers import DUCKLAKE
from tidemark.studies.lhbench.load.settings import LOAD
from tidemark.studies.lhbench.measures import LhbenchEvidence, files_growth, printed, printed_ratio
from tidemark.studies.lhbench.merge.settings import MERGE
from tidemark.studies.lhbench.parts import size_of
from tidemark.studies.lhbench.quantities import (
    BYTES,
    GROWTH,
    LOADING,
    MERGING,
    OF_SELECTIVE,
    QUERIES_AFTER,
    TOTAL,
    found,
    in_part,
    merging,
    of,
    slowdown,
)
from tidemark.studies.lhbench.refresh.settings import REFRESH
from tidemark.studies.lhbench.second.quantities import LOADED, LOADED_TABLES, MERGED_TABLES, total_by
from tidemark.studies.lhbench.window.script import BEFORE


class Writer(SentenceWriter):
    def sentences(self) -> dict[str, str]:
        """Return all sentences by name."""
        parts = {
            "loads": self.loads,
            "queries": self.queries,
            "weights": self.weights,
            "second": self.second,
            "second-after": self.second_after,
            "refreshes": self.refreshes,
            "after": self.after,
            "merges": self.merges,
            "slowdowns": self.slowdowns,
            "files": self.files,
            "growth": self.growth,
            "oracle": self.oracle,
            "mistakes": self.mistakes,
            "axis": self.axis,
        }
        return {f"lhbench-{name}": or_why(write) for name, write in parts.items()}

    def _series(self, part: str) -> list[Series]:
        """Return each system's series with the largest scale that has runs; Absent if there is none."""
        chosen = {each.system: each for each in in_part(self.run_set, part) if each.runs}
        if not chosen:
            raise Absent(f"the part '{part}' was not measured")
        return list(chosen.values())

    def _said(self, quantity: Quantity, part: str, unit: str) -> str:
        """Return each system's value of `quantity` in words, smallest first; Absent if no system has one."""
        values = []
        for each in self._series(part):
            with suppress(Absent):
                estimate = of(self.measures, quantity, each).estimate(unit)
                values.append((estimate.value, f"{estimate_text(estimate)} ({each.title})"))
        if not values:
            raise Absent("no system has it")
        return listed([words for _, words in sorted(values)])

    def loads(self) -> str:
        return f"The tables were loaded in {self._said(LOADING, LOAD, 's')}."

    def queries(self) -> str:
        return f"The queries took, as the sum of their medians, {self._said(TOTAL, LOAD, 's')}."

    def weights(self) -> str:
        values = []
        for each in self._series(LOAD):
            with suppress(Absent):
                held = of(self.measures, BYTES, each).value
                values.append((held, f"{number(held / 1e6, 3)} MB ({each.title})"))
        if not values:
            raise Absent("no table was weighed")
        return f"The loaded tables take {listed([words for _, words in sorted(values)])} on the disk."

    def second(self) -> str:
        """Report DuckDB's times on tables that Spark wrote and on tables it loaded itself, or why there are none."""
        words = f"To the same queries of the same tables DuckDB answered in {self._by_second(LOADED_TABLES, LOAD)}."
        for each in self._series(LOAD):
            with suppress(Absent):
                loaded, asked = (
                    estimate_text(of(self.measures, what, each).estimate("s"))
                    for what in (LOADED, total_by(DUCKLAKE, BEFORE))
                )
                words += f" DuckLake's tables it loaded of the same files in {loaded}; there the queries took {asked}."
        return words

    def second_after(self) -> str:
        return f"After all refreshes DuckDB answered in {self._by_second(MERGED_TABLES, REFRESH)}."

    def _by_second(self, quantity: Quantity, part: str) -> str:
        """Return DuckDB's times on each system's tables, and the reason for each system without a time."""
        without = []
        for each in self._series(part):
            try:
                of(self.measures, quantity, each)
            except Absent as absent:
                without.append(f"{each.title}: {absent}")
        return self._said(quantity, part, "s") + (f" (without a time: {'; '.join(without)})" if without else "")

    def refreshes(self) -> str:
        return f"A refresh took {self._said(MERGING, REFRESH, 's')}."

    def after(self) -> str:
        return (
            f"After all refreshes the queries took {self._said(QUERIES_AFTER, REFRESH, 's')}, and the merged tables "
            f"had this multiple of the bytes of the loaded ones: {self._said(GROWTH, REFRESH, 'x')}."
        )

    def _sizes(self) -> list[int]:
        sizes = {int(size) for each in self._series(MERGE) for run in each.runs for size in found(run)["data"]["sets"]}
        return sorted(sizes)

    def merges(self) -> str:
        sizes = self._sizes()
        ends = dict.fromkeys((sizes[0], sizes[-1]))
        said = [f"{size:,} updates took {self._said(merging(size), MERGE, 's')}" for size in ends]
        return f"A merge of {'; one of '.join(said)}."

    def slowdowns(self) -> str:
        largest = self._sizes()[-1]
        return (
            f"After the largest of these merges the queries took this multiple of their time before: "
            f"{self._said(slowdown(largest), MERGE, 'x')}."
        )

    def files(self) -> str:
        """Report startup and total time of the selective queries, at the largest measured number of files."""
        most = max(size_of(each.mode) for each in self._series(FILES))
        said = (f"{words} {self._said(what, FILES, 's')}" for words, what in
                (("took", OF_SELECTIVE[0]), ("whole queries", OF_SELECTIVE[2])))  # fmt: skip
        return f"With {most:,.0f} files the startup of the three selective queries together {'; '.join(said)}."

    def growth(self) -> str:
        evidence = LhbenchEvidence(self.measures)
        systems = {"delta-on-spark": "Delta", "iceberg-on-spark": "Iceberg"}
        said = []
        for system, title in systems.items():
            estimate = files_growth(evidence, OF_SELECTIVE[0], system)[0].estimate("ms")
            said.append(f"{estimate_text(estimate)} ({title})")
        return f"A thousand files more made such a query start later by {listed(said)}."

    def oracle(self) -> str:
        """Report whether all tables and answers are correct."""
        runs = [run for each in self.run_set.select() for run in each.runs]
        if not runs:
            raise Absent("nothing was measured")
        tables = sum(len(phase) for run in runs for phase in found(run)["tables"].values())
        answers = sum(len(phase) for run in runs for phase in found(run)["answers"].values())
        wrong = sorted({f"{run.manifest.system.title} ({found(run)['words']})" for run in runs
                        if not run.manifest.oracle.verdict})  # fmt: skip
        failed = sorted({f"{run.manifest.system.title}, {words}" for run in runs for words in found(run)["failed"]})
        whole = f"{tables:,} times a table was read without the engine, and {answers:,} answers were compared: "
        said = f"not so: {'; '.join(wrong)}" if wrong else "all are what they must be"
        return f"{whole}{said}." + (f" Queries that failed: {'; '.join(failed)}." if failed else "")

    def mistakes(self) -> str:
        evidence = LhbenchEvidence(self.measures)
        totals = [
            printed_ratio(evidence, 4, f"{panel} total", published.ICEBERG, published.DELTA, 200_000)[0].value
            for panel in ("limit", "partition", "value")
        ]
        bars = printed_ratio(evidence, 3, "merge", published.COPY, published.IN_READ, 7_000_000)[0].value
        before, after = (
            printed(2, panel, "Hudi MoR 0.12.0").ratio(printed(2, panel, "Hudi CoW 0.12.0")).value
            for panel in ("queries before", "queries after")
        )
        return (
            "By its own figures, Delta's 7 to 12 times at 200,000 files are ratios of startup times, and the bars make "
            f"{number(min(totals), 2)} to {number(max(totals), 2)} of them; merging on read is {number(bars, 2)} times "
            "faster at the largest merge, not 1.48; and queries on Hudi's merge-on-read tables are "
            f"{number(before, 2)} times slower before the first merge, and {number(after, 2)} times after the last."
        )

    def axis(self) -> str:
        labelled, hundredth = reading(1), reading(published.LABELLED)
        return (
            "With the labels of its figure 3 as they stand, "
            f"{number(100 * min(labelled.shares), 3)} % of the files or more are touched at every point, and a line "
            f"through them misses a time by {number(100 * labelled.worst, 2)} %; with a hundredth of them shares are "
            f"{listed([f'{number(100 * share, 3)} %' for share in hundredth.shares])}, and it misses none by more than "
            f"{number(100 * hundredth.worst, 2)} %."
        )
