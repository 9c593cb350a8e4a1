"""Computed sentences of the study's chapter: each takes its numbers from runs, or states why there are none."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.prose import SentenceWriter, or_why
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.words import estimate_text, listed
from tidemark.runs.runset import Series
from tidemark.studies.deltars import published
from tidemark.studies.deltars.parts import (
    fewest_cores,
    find,
    in_order,
    limit_of,
    of,
    sent_and_there,
    tables_of,
)
from tidemark.studies.deltars.quantities import (
    READ_MEAN,
    READ_MEDIAN,
    REFUSED,
    WITH_SOURCE,
    WRITE_MEAN,
    WRITE_MEDIAN,
    of_operation,
    parts,
    times,
)
from tidemark.studies.deltars.settings import shape_of
from tidemark.studies.deltars.window.samples import WRITE

HDFS, LOCAL, BEFORE, LEGACY = "delta-rs-hdfs", "delta-rs-local", "delta-rs-hdfs-before", "legacy"
ENGINE_ALONE = "duckdb-delta-hdfs"
FLOORS = {"on HDFS": (HDFS, "parquet-hdfs"), "on the local disk": (LOCAL, "parquet-local")}
PARTS = {"upload": "uploading", "application": "starting and ending the application", "kafka": "reading the topic",
         "tasks": "Hudi's tasks", "driver": "Spark's driver", "hdfs": "calls of HDFS"}  # fmt: skip
ENGINES = {
    "spark-delta-hdfs": "a session of Spark that runs already and writes Delta",
    "spark-hudi-hdfs": "the same upserting Hudi",
    "spark-hudi-bulk": "the same inserting into Hudi in bulk",
    "arrow-kafka-delta": "delta-rs behind a topic with Arrow batches",
}


class Writer(SentenceWriter):
    def sentences(self) -> dict[str, str]:
        """Return all sentences by name."""
        parts = {
            "writes": self.writes,
            "reads": self.reads,
            "floor": self.floor,
            "releases": self.releases,
            "cores": self.cores,
            "scopes": self.scopes,
            "oracle": self.oracle,
            "misprints": self.misprints,
            "legacy": self.legacy,
            "divided": self.divided,
            "engine": self.engine,
            "legacy-reads": self.legacy_reads,
            "server-reads": self.server_reads,
            "bytes": self.bytes_alone,
            "limit": self.limit,
        }
        return {f"deltars-{name}": or_why(write) for name, write in parts.items()}

    def _pairs(self, quantity: Quantity, system: str, other: str, cores: int) -> list[str]:
        """Return the ratio of two systems, in words, for each table measured with both; Absent if there is none."""
        said = []
        for data in tables_of(self.run_set):
            pair = [find(self.run_set, each, data, cores) for each in (system, other)]
            with suppress(Absent):
                if pair[0] is not None and pair[1] is not None:
                    first, second = (of(self.measures, quantity, each) for each in pair if each is not None)
                    said.append(f"{estimate_text(first.ratio(second).estimate('x'))} ({_rows(data)})")
        if not said:
            raise Absent("no table was measured with both")
        return said

    def _against_local(self, quantity: Quantity, verb: str) -> str:
        cores = fewest_cores(self.run_set)
        pairs = self._pairs(quantity, HDFS, LOCAL, cores)
        processors = "processor" if cores == 1 else "processors"
        return (
            f"With {cores} {processors}, {verb} a complete table on HDFS takes delta-rs this multiple of the time on "
            f"the local disk (medians): {listed(pairs)}."
        )

    def writes(self) -> str:
        return self._against_local(WRITE_MEDIAN, "writing")

    def reads(self) -> str:
        return self._against_local(READ_MEDIAN, "reading")

    def floor(self) -> str:
        """Report the time that writes of the smallest table wait for refused closes on HDFS."""
        cores = fewest_cores(self.run_set)
        series = next(
            (each for each in in_order(self.run_set) if each.system == HDFS and shape_of(each.mode)[1] == cores), None
        )
        if series is None or not series.runs:
            raise Absent("delta-rs on HDFS was not measured")
        refused = of(self.measures, REFUSED, series).estimate("")
        data = shape_of(series.mode)[0]
        groups: dict[int, list[float]] = {}
        for run in series.runs:
            for count, seconds in zip(of_operation(run, WRITE, "refused"), times(run, WRITE), strict=True):
                groups.setdefault(int(count), []).append(float(seconds))
        said = [
            f"{sorted(found)[len(found) // 2]:.2f} s with {count} refused ({len(found)} writes)"
            for count, found in sorted(groups.items())
        ]
        return (
            f"Of the two files that a commit of {_rows(data)} closes on HDFS, the NameNode refuses "
            f"{estimate_text(refused)} at first, and the client sleeps before it asks again: a write takes "
            f"{listed(said)}."
        )

    def releases(self) -> str:
        """Compare the thesis's release line with the current one."""
        said = self._pairs(WRITE_MEDIAN, BEFORE, HDFS, fewest_cores(self.run_set))
        return f"Writing to HDFS takes delta-rs 0.18.2 this multiple of the time of today's release: {listed(said)}."

    def cores(self) -> str:
        counts = sorted({shape_of(each.mode)[1] for each in self.run_set.select() if each.runs})
        if len(counts) < 2:
            raise Absent("clients had one number of processors alone")
        said = []
        for data in tables_of(self.run_set):
            pair = [find(self.run_set, HDFS, data, each) for each in counts[:2]]
            with suppress(Absent):
                few, many = (of(self.measures, WRITE_MEAN, each) for each in pair if each is not None)
                said.append(f"{estimate_text(many.ratio(few).estimate('x'))} ({_rows(data)})")
        if not said:
            raise Absent("no table was measured with both numbers of processors")
        return (
            f"With {counts[1]} processors instead of {counts[0]}, a write to HDFS takes this multiple of the time, in "
            f"the mean: {listed(said)}."
        )

    def scopes(self) -> str:
        said = []
        for series in in_order(self.run_set):
            if series.system == LOCAL and shape_of(series.mode)[1] == fewest_cores(self.run_set):
                with suppress(Absent):
                    ratio = of(self.measures, WITH_SOURCE, series).ratio(of(self.measures, WRITE_MEAN, series))
                    said.append(f"{estimate_text(ratio.estimate('x'))} ({_rows(shape_of(series.mode)[0])})")
        if not said:
            raise Absent("delta-rs on the local disk was not measured")
        return (
            "Timed with the reading of its source, a write to the local disk takes this multiple of the time of the "
            f"call alone: {listed(said)}."
        )

    def legacy(self) -> str:
        """Compare the complete legacy path with the single call of delta-rs."""
        said = self._pairs(WRITE_MEAN, LEGACY, HDFS, fewest_cores(self.run_set))
        return f"To write, the legacy path takes this multiple of the time of delta-rs on HDFS (means): {listed(said)}."

    def legacy_reads(self) -> str:
        said = self._pairs(READ_MEAN, LEGACY, HDFS, fewest_cores(self.run_set))
        return (
            "Its reads, through a Flight server with DuckDB, take this multiple of the time of delta-rs on HDFS "
            f"(means): {listed(said)}."
        )

    def server_reads(self) -> str:
        """Compare legacy reads with the same engine and the same HDFS client without the server."""
        said = self._pairs(READ_MEAN, LEGACY, ENGINE_ALONE, fewest_cores(self.run_set))
        return (
            "Against the same DuckDB over the same client of HDFS in the client's own process, which reads what "
            f"delta-rs wrote, they take this multiple of the time: {listed(said)}; that is what the server, and a "
            "table of Hudi's, add."
        )

    def bytes_alone(self) -> str:
        """Compare delta-rs with a plain file of the same rows, on HDFS and on the local disk."""
        cores = fewest_cores(self.run_set)
        said = []
        for place, (table, file) in FLOORS.items():
            for quantity, verb in ((WRITE_MEDIAN, "write"), (READ_MEDIAN, "read")):
                with suppress(Absent):
                    said.append(f"to {verb} {place}, {listed(self._pairs(quantity, table, file, cores))}")
        if not said:
            raise Absent("no file without a table was measured in addition to delta-rs")
        return (
            "A file of Parquet with the same rows is the floor (medians). delta-rs takes this multiple of its time: "
            f"{'; '.join(said)}."
        )

    def limit(self) -> str:
        """Report the thesis's largest tables if a limit applied, and the rows that a limit left in Tidemark's runs."""
        said = [
            f"of {sent:,} rows sent, {there:,} are in the table"
            for series in in_order(self.run_set)
            for run in series.runs
            if limit_of(run)
            for sent, there in (sent_and_there(run),)
        ]
        ours = f" Where a limit is set here, {listed(said)}, which its oracle refuses." if said else ""
        return published.limited() + ours

    def divided(self) -> str:
        """Report the share of each part in a legacy write, for the smallest and the largest table."""
        cores = fewest_cores(self.run_set)
        found = [each for each in in_order(self.run_set)
                 if each.system == LEGACY and each.runs and shape_of(each.mode)[1] == cores]  # fmt: skip
        if not found:
            raise Absent("the legacy path was not measured")
        said = []
        for series in dict.fromkeys((found[0], found[-1])):
            told, whole = parts(series.runs[0]), float(times(series.runs[0], WRITE).sum())
            shares = [f"{100 * float(told[step].sum()) / whole:.0f} % {words}" for step, words in PARTS.items()]
            said.append(
                f"of {whole / len(told['upload']):.1f} s for {_rows(shape_of(series.mode)[0])}, {listed(shares)}"
            )
        return f"A legacy write divides so: {'; '.join(said)}."

    def engine(self) -> str:
        """Compare paths that differ in one part at a time with delta-rs."""
        cores = fewest_cores(self.run_set)
        said = []
        for system, words in ENGINES.items():
            with suppress(Absent):
                pairs = self._pairs(WRITE_MEAN, system, HDFS, cores)
                said.append(f"{words} takes {listed(pairs)}")
        if not said:
            raise Absent("no path that changes one part alone was measured")
        return f"Of delta-rs's time for the same rows on the same HDFS (1x), {'; '.join(said)}."

    def oracle(self) -> str:
        ran = [each for each in in_order(self.run_set) if each.runs and not each.is_harness]
        if not ran:
            raise Absent("no system was measured")
        wrong = [f"{each.title} ({each.mode})" for each in ran if not _holds(each)]
        if not wrong:
            return f"In all {len(ran)} series each table held what was written, and was read whole."
        return f"Tables do not hold what was written for {listed(wrong)}; they have no times here."

    def misprints(self) -> str:
        return f"In {len(published.misprints())} places its tables contradict one another, or a row its own interval."


def _holds(series: Series) -> bool:
    return all(run.manifest.oracle.verdict for run in series.runs)


def _rows(data: str) -> str:
    return f"{published.WORDS[data]} rows" if data in published.WORDS else data
