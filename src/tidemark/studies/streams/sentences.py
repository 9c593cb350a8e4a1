"""Sentences that depend on results: which word stands in them follows from an interval, and so does every number."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Estimate, Replicates
from tidemark.analysis.words import against, estimate_text, listed, number
from tidemark.runs.names import BATCH, MODES, SINGLE
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.streams.quantities import (
    FIRST_WRITE,
    HARNESS_RATE,
    RELATIVE_GROWTH,
    STORED_PER_EVENT,
    SYSTEM_RATE,
    WRITE_MEDIAN,
    WRITE_P99,
)

EVENT = {SINGLE: "a single event", BATCH: "a batch"}
WAY = {SINGLE: "One event at a time", BATCH: "In batches"}


@dataclass(frozen=True, slots=True)
class Known:
    """A series with one of its quantities."""

    series: Series
    value: Estimate


class Writer:
    """Writes what the runs say; where they say nothing, it writes why."""

    def __init__(self, measures: Measures) -> None:
        self.measures = measures

    @property
    def run_set(self) -> RunSet:
        return self.measures.run_set

    def sentences(self) -> dict[str, str]:
        """All sentences by name; those of a mode as `name-mode`."""
        made: dict[str, str] = {}
        for mode in MODES:
            for name, write in (
                ("fastest", self.fastest),
                ("order", self.order),
                ("tails", self.tails),
                ("growth", self.growth),
                ("throughputs", self.throughputs),
                ("cold", self.cold),
                ("footprint", self.footprint),
            ):
                made[f"{name}-{mode}"] = self._or_why(write, mode)
            for name, first, second in (
                ("formats", "ducklake", "iceberg-duckdb"),
                ("clients", "iceberg-duckdb", "iceberg-pyiceberg"),
                ("inlining", "ducklake-inlined", "ducklake"),
            ):
                made[f"{name}-{mode}"] = self.pair(first, second, mode)
                made[f"{name}-{mode}-alone"] = f"{WAY[mode]}: {made[f'{name}-{mode}']}"
        made["gain"] = self._or_why(lambda _: self.gain(), "")
        made["flush"] = self.flush()
        for mode in MODES:
            made[f"first-write-{mode}"] = self._or_why(self.first_write, mode)
        return made

    @staticmethod
    def _or_why(write: Callable[[str], str], mode: str) -> str:
        try:
            return write(mode)
        except Absent as absent:
            return f"Nothing can be said here: {absent}."

    def known(self, mode: str, compute: Callable[[Series], Replicates], unit: str) -> list[Known]:
        """Systems of a mode with a quantity, in the order of tables; Absent if fewer than two have it."""
        found = []
        for series in self.run_set.select(mode=mode, harness=False):
            with suppress(Absent):
                found.append(Known(series, compute(series).estimate(unit)))
        if len(found) < 2:
            raise Absent("fewer than two systems have runs for it")
        return found

    def hot(self, mode: str, quantity: Quantity) -> list[Known]:
        return self.known(mode, lambda series: self.measures.hot(quantity, series), quantity.unit)

    # Sentences of one mode

    def fastest(self, mode: str) -> str:
        ranked = sorted(self.hot(mode, WRITE_MEDIAN), key=lambda known: known.value.value)
        first, last = ranked[0], ranked[-1]
        ratio = self.measures.ratio(WRITE_MEDIAN, last.series, first.series).estimate("x")
        return (
            f"By the median write of {EVENT[mode]}, {first.series.title} is the fastest with "
            f"{estimate_text(first.value)}, and {last.series.title} the slowest with {estimate_text(last.value)}: "
            f"{estimate_text(ratio)} as long."
        )

    def order(self, mode: str) -> str:
        ranked = sorted(self.hot(mode, WRITE_MEDIAN), key=lambda known: known.value.value)
        alike = []
        for first, second in pairwise(ranked):
            ratio = self.measures.ratio(WRITE_MEDIAN, second.series, first.series).estimate("x")
            if not ratio.is_above(1):
                alike.append(f"{first.series.title} from {second.series.title} ({estimate_text(ratio)})")
        names = listed([known.series.title for known in ranked])
        if not alike:
            return f"From the fastest to the slowest they are {names}, and intervals tell each from the next."
        return f"From the fastest to the slowest they are {names}; intervals do not tell {listed(alike)}."

    def tails(self, mode: str) -> str:
        tails = []
        for series in self.run_set.select(mode=mode, harness=False):
            with suppress(Absent):
                tail = self.measures.first_hot(WRITE_P99, series).value
                tails.append((tail / self.measures.first_hot(WRITE_MEDIAN, series).value, series.title))
        if not tails:
            raise Absent("no first hot run has enough operations for a 99th percentile")
        (least, calm), (most, wild) = min(tails), max(tails)
        if calm == wild:
            return f"The 99th percentile of {calm} is {number(least, 3)} times its median, in the first hot run."
        return (
            f"In the first hot run, the 99th percentile lies between {number(least, 3)} ({calm}) and "
            f"{number(most, 3)} times ({wild}) the median."
        )

    def growth(self, mode: str) -> str:
        unit = "% per 1,000 commits"
        found = self.known(mode, lambda s: self.measures.hot(RELATIVE_GROWTH, s).scaled(100), unit)
        grows = [f"{k.series.title} ({estimate_text(k.value)})" for k in found if k.value.is_above(0)]
        falls = [f"{k.series.title} ({estimate_text(k.value)})" for k in found if k.value.is_below(0)]
        rest = [k.series.title for k in found if not k.value.is_above(0) and not k.value.is_below(0)]
        parts = []
        if grows:
            parts.append(f"the write time grows with the commits for {listed(grows)}")
        if falls:
            parts.append(f"it falls for {listed(falls)}")
        if rest:
            parts.append(f"no change is seen for {listed(rest)}")
        return f"{WAY[mode]}, {'; '.join(parts)}."

    def throughputs(self, mode: str) -> str:
        harness, system = self.hot(mode, HARNESS_RATE), self.hot(mode, SYSTEM_RATE)
        shares = sorted(
            (100 * h.value.value / s.value.value, h.series.title) for h, s in zip(harness, system, strict=True)
        )
        return (
            f"{WAY[mode]}, harness throughput is between {shares[0][0]:.0f} % ({shares[0][1]}) and "
            f"{shares[-1][0]:.0f} % ({shares[-1][1]}) of system throughput; the rest of a window is spent reading, "
            "decoding and assembling events."
        )

    def cold(self, mode: str) -> str:
        found = self.known(mode, lambda series: self.measures.cold_effect(WRITE_MEDIAN, series), "x")
        words: dict[str, list[str]] = {"slower": [], "faster": [], "not to be told apart": []}
        for known in found:
            word = against(known.value, "slower", "faster", "not to be told apart")
            words[word].append(f"{known.series.title} ({estimate_text(known.value)})")
        parts = [
            f"{word} than hot ones for {listed(names)}" for word, names in words.items() if names and word[0] != "n"
        ]
        if words["not to be told apart"]:
            parts.append(f"not to be told from hot ones for {listed(words['not to be told apart'])}")
        return f"{WAY[mode]}, the median write of the first run was {', '.join(parts)}."

    def first_write(self, mode: str) -> str:
        found = sorted(
            self.known(mode, partial(self.measures.cold_start, FIRST_WRITE), "x"), key=lambda known: known.value.value
        )
        first, last = found[0], found[-1]
        states = sorted({run.state for known in found for run in known.series.cold_runs})
        return (
            f"{WAY[mode]}, the very first write of run 0 ({listed(states)}) took between "
            f"{estimate_text(first.value)} ({first.series.title}) and {estimate_text(last.value)} "
            f"({last.series.title}) of the first write of a hot run."
        )

    def footprint(self, mode: str) -> str:
        found = sorted(self.hot(mode, STORED_PER_EVENT), key=lambda known: known.value.value)
        first, last = found[0], found[-1]
        return (
            f"{WAY[mode]}, an event takes between {number(first.value.value, 3)} bytes ({first.series.title}) and "
            f"{number(last.value.value, 3)} bytes ({last.series.title}) of data, metadata and catalog, in the mean of "
            "the hot runs."
        )

    def pair(self, first: str, second: str, mode: str) -> str:
        """The throughput of one system against that of another."""
        a, b = self.run_set.find(first, mode), self.run_set.find(second, mode)
        names = f"{a.title if a else first} and {b.title if b else second}"
        try:
            ratio = self.measures.ratio(HARNESS_RATE, a, b).estimate("x")
        except Absent as absent:
            return f"{names} cannot be compared: {absent}."
        if a is None or b is None:
            return f"{names} cannot be compared."
        word = against(ratio, "a higher", "a lower", "")
        if not word:
            return f"{names} do not differ in throughput as far as can be seen ({estimate_text(ratio)})."
        return f"{a.title} has {word} throughput than {b.title}, {estimate_text(ratio)} of it."

    # Sentences of the whole run set

    def gain(self) -> str:
        gains = []
        for batch in self.run_set.select(mode=BATCH, harness=False):
            with suppress(Absent):
                single = self.measures.hot(HARNESS_RATE, self.run_set.find(batch.system, SINGLE))
                ratio = self.measures.hot(HARNESS_RATE, batch).ratio(single).estimate("")
                gains.append((ratio.value, batch.title, ratio))
        if not gains:
            raise Absent("no system has runs in both modes")
        least, most = min(gains), max(gains)
        return (
            f"Batches raise throughput least for {least[1]}, by a factor of {estimate_text(least[2])}, and most for "
            f"{most[1]}, by {estimate_text(most[2])}."
        )

    def flush(self) -> str:
        parts = []
        for mode in MODES:
            for series in self.run_set.select(mode=mode, harness=False):
                flush = series.hot_runs[-1].manifest.flush if series.hot_runs else None
                if flush is not None and flush.rows:
                    each = number(flush.seconds / flush.rows * 1e6, 3)
                    rows = f"{flush.rows:,} rows of {series.title} in {mode} mode"
                    parts.append(f"{flush.seconds:.2f} s for {rows} ({each} µs a row)")
        merged = []
        for series in self.run_set.select(mode=SINGLE, harness=False):
            merge = series.runs[-1].manifest.merge if series.runs else None
            if merge is not None and merge.files_before > 1:
                each = number(merge.seconds / series.runs[-1].manifest.events * 1e6, 3)
                merged.append(
                    f"{merge.seconds:.2f} s for the {merge.files_before:,} of {series.title} ({each} µs a row)"
                )
        first = (
            f"In the last hot run, flushing inlined rows took {listed(parts)}." if parts else "No rows were inlined."
        )
        if not merged:
            return f"{first} No merge of small files was timed."
        return f"{first} Merging the files of single events took {listed(merged)}."
