"""Sentences of the chapter, and the findings on the paper's first page: wording and numbers follow from intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from tidemark.analysis.formatting import against, listed, number, with_unit
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.analysis.text_blocks import SentenceWriter, conclusion, or_why, sentence, valued
from tidemark.runs.runset import Series
from tidemark.runs.spec import BATCH, MODES, SINGLE
from tidemark.studies.streams import metrics

WAY = {SINGLE: "One event at a time", BATCH: "In batches"}
INSIDE = {mode: f"{way[:1].lower()}{way[1:]}" for mode, way in WAY.items()}
GROWS, FALLS, FLAT = "grows with the number of commits", "falls with the number of commits", "shows no trend"
AGED = 100  # commits of a table that is compared with a young one
LIKE_HOT = "is not distinguishable from that of hot runs"


@dataclass(frozen=True, slots=True)
class Known:
    """Series with the estimate of one quantity."""

    series: Series
    value: Estimate

    @property
    def title(self) -> str:
        return self.series.title

    @property
    def text(self) -> str:
        """Value without its interval; the tables and figures next to the text show the interval."""
        return with_unit(number(self.value.value, 3), self.value.unit)


class Writer(SentenceWriter):
    def sentences(self) -> dict[str, str]:
        """Return all sentences by name; those of a mode as `name-mode`."""
        made: dict[str, str] = {}
        for mode in MODES:
            for name, write in (
                ("fastest", self.fastest),
                ("order", self.order),
                ("tails", self.tails),
                ("growth", self.growth),
                ("throughputs", self.throughputs),
                ("first-write", self.first_write),
                ("footprint", self.footprint),
            ):
                made[f"{name}-{mode}"] = or_why(partial(write, mode))
            for name, first, second in (
                ("formats", "ducklake", "iceberg-duckdb"),
                ("clients", "iceberg-duckdb", "iceberg-pyiceberg"),
                ("inlining", "ducklake-inlined", "ducklake"),
            ):
                made[f"{name}-{mode}"] = self.pair(first, second, mode)
        for name in ("cold", "files"):
            made[name] = self.together(name)
        made["gain"] = or_why(self.gain)
        made["flush"] = self.flush()
        return made

    def together(self, name: str) -> str:
        """Return the sentence for both modes ("cold" or "files"), written once if it is the same for both."""
        write = {"cold": self.cold, "files": self.files}[name]
        lines = [or_why(partial(write, mode)) for mode in MODES]
        rests = {text.removeprefix(WAY[mode]) for mode, text in zip(MODES, lines, strict=True)}
        if len(rests) > 1:
            return " ".join(lines)
        return f"In both modes{rests.pop()}" if lines[0].startswith(WAY[MODES[0]]) else lines[0]

    def systems(self, mode: str) -> list[Series]:
        """Return the series of a mode that are compared with each other, in table order."""
        return [each for each in self.run_set.select(mode=mode, harness=False) if not each.is_twin]

    def known(self, mode: str, compute: Callable[[Series], BootstrapEstimate], unit: str) -> list[Known]:
        """Return the systems of a mode that have a quantity, in table order.

        Raises NotAvailable if fewer than two do.
        """
        found = [Known(*each) for each in valued(compute, self.systems(mode), unit)]
        require(len(found) >= 2, "fewer than two systems have runs for it")
        return found

    def hot(self, mode: str, quantity: Metric) -> list[Known]:
        return self.known(mode, lambda series: self.measures.hot(quantity, series), quantity.unit)

    def ranked(self, mode: str) -> list[Known]:
        """Return the systems by median write, fastest first."""
        return sorted(self.hot(mode, metrics.WRITE_MEDIAN), key=lambda known: known.value.value)

    def slower(self, a: Known, b: Known) -> Estimate:
        """Return the median write of `a` divided by that of `b`."""
        return self.measures.ratio(metrics.WRITE_MEDIAN, a.series, b.series).estimate("x")

    def alike(self, ranked: list[Known]) -> list[str]:
        """Return the neighbours among `ranked` systems that are not distinguishable, each as `A and B`."""
        pairs = pairwise(ranked)
        return [f"{a.title} and {b.title}" for a, b in pairs if not self.slower(b, a).is_above(1)]

    # Sentences of one mode

    def fastest(self, mode: str) -> str:
        first, *others = self.ranked(mode)
        last = others[-1]
        alike = [known.title for known in others if not self.slower(known, first).is_above(1)]
        if len(alike) == len(others):
            return f"{WAY[mode]}, no system is distinguishably faster than the others; {first.title} ranks first."
        lead = f"{WAY[mode]}, {first.title} has the shortest median write, {first.text}"
        lead += f", but is not distinguishable from {listed(alike)}." if alike else "."
        if last.title in alike:
            return lead
        times = number(self.slower(last, first).value, 3)
        return f"{lead} {last.title} is the slowest and takes {times} times as long."

    def order(self, mode: str) -> str:
        ranked = self.ranked(mode)
        alike = self.alike(ranked)
        names = listed([known.title for known in ranked])
        ranking = f"From fastest to slowest, the systems are {names}."
        if not alike:
            return f"{ranking} Each is distinguishable from the next."
        if len(alike) == 1:
            return f"{ranking} {alike[0]} are not distinguishable from each other."
        return f"{ranking} These neighbours are not distinguishable from each other: {'; '.join(alike)}."

    def tails(self, mode: str) -> str:
        tails = []
        for series in self.systems(mode):
            with suppress(NotAvailable):
                tail = self.measures.first_hot(metrics.WRITE_P90, series).value
                tails.append((tail / self.measures.first_hot(metrics.WRITE_MEDIAN, series).value, series.title))
        require(tails, "no first hot run has enough operations for a 90th percentile")
        (least, calm), (most, wild) = min(tails), max(tails)
        if calm == wild:
            return f"In the first hot run, the 90th percentile of {calm} is {number(least, 3)} times its median."
        return (
            f"In the first hot run, the ratio of the 90th percentile to the median is lowest for {calm}, "
            f"{number(least, 3)}, and highest for {wild}, {number(most, 3)}."
        )

    def growth(self, mode: str) -> str:
        slopes = [(known.title, known.value) for known in self.hot(mode, metrics.GROWTH)]
        return sentence(f"{WAY[mode]}, {trend('the write time', slopes)}")

    def throughputs(self, mode: str) -> str:
        harness, system = self.hot(mode, metrics.HARNESS_RATE), self.hot(mode, metrics.SYSTEM_RATE)
        shares = sorted((100 * h.value.value / s.value.value, h.title) for h, s in zip(harness, system, strict=True))
        (least, first), (most, last) = shares[0], shares[-1]
        if least >= 99:
            return f"{WAY[mode]}, harness throughput is within 1 % of the system throughput of each system."
        return (
            f"{WAY[mode]}, harness throughput is at least {least:.0f} % of system throughput ({first}) and at most "
            f"{most:.0f} % ({last})."
        )

    def cold(self, mode: str) -> str:
        groups: dict[str, list[str]] = {
            "is longer than that of hot runs": [],
            LIKE_HOT: [],
            "is shorter than that of hot runs": [],
        }
        longer, same, shorter = groups
        for known in self.known(mode, partial(self.measures.cold_effect, metrics.WRITE_MEDIAN), "x"):
            groups[against(known.value, longer, shorter, same)].append(known.title)
        return sentence(f"{WAY[mode]}, {conclusion('the median write of run 0', 'it', groups)}")

    def first_write(self, mode: str) -> str:
        found = sorted(
            self.known(mode, partial(self.measures.cold_start, metrics.FIRST_WRITE), "x"),
            key=lambda known: known.value.value,
        )
        first, last = found[0], found[-1]
        states = " or ".join(sorted({run.state for known in found for run in known.series.cold_runs}))
        return (
            f"{WAY[mode]}, the ratio of the first write of run 0 ({states}) to that of a hot run is lowest for "
            f"{first.title}, {number(first.value.value, 3)}, and highest for {last.title}, "
            f"{number(last.value.value, 3)}."
        )

    def footprint(self, mode: str) -> str:
        found = sorted(self.hot(mode, metrics.STORED_PER_EVENT), key=lambda known: known.value.value)
        first, last = found[0], found[-1]
        return (
            f"{WAY[mode]}, {first.title} stores the fewest bytes per event, {number(first.value.value, 3)}, and "
            f"{last.title} the most, {number(last.value.value, 3)}."
        )

    def files(self, mode: str) -> str:
        most = max(self.hot(mode, metrics.FILES_PER_COMMIT), key=lambda known: known.value.value)
        return f"{WAY[mode]}, {most.title} leaves the most files, {number(most.value.value, 3)} per commit."

    def pair(self, first: str, second: str, mode: str) -> str:
        """Return a sentence that compares two systems' throughputs; empty if the configuration lacks either."""
        a, b = self.run_set.find(first, mode), self.run_set.find(second, mode)
        if a is None or b is None:
            return ""
        names = f"{a.title} and {b.title}"
        try:
            ratio = self.measures.ratio(metrics.HARNESS_RATE, a, b).estimate("x")
        except NotAvailable as absent:
            return f"{names} cannot be compared: {absent}."
        word = against(ratio, "a higher", "a lower", "")
        if not word:
            return f"The throughputs of {names} are not distinguishable."
        return (
            f"{a.title} has {word} throughput than {b.title}, {number(ratio.value, 3)} times as many events per second."
        )

    # Sentences on all series

    def gain(self) -> str:
        groups: dict[str, list[str]] = {"raise throughput": [], "do not change it distinguishably": [], "lower it": []}
        more, same, less = groups
        gains = []
        for batch in self.systems(BATCH):
            with suppress(NotAvailable):
                single = self.measures.hot(metrics.HARNESS_RATE, self.run_set.find(batch.system, SINGLE))
                ratio = self.measures.hot(metrics.HARNESS_RATE, batch).ratio(single).estimate("")
                groups[against(ratio, more, less, same)].append(batch.title)
                gains.append((ratio.value, batch.title))
        require(gains, "no system has runs in both modes")
        (least, first), (most, last) = min(gains), max(gains)
        whole = sentence(conclusion("batches", "they", groups))
        if first == last:
            return f"{whole} The factor is {number(least, 3)}."
        ends = f"lowest for {first}, {number(least, 3)}, and highest for {last}, {number(most, 3)}"
        return f"{whole} The factor is {ends}."

    def flush(self) -> str:
        """Return sentences on the cost per row of moving rows into few files, by flushing inlined rows or merging."""
        flushes = [
            (run.manifest.flush.seconds / run.manifest.flush.rows * 1e6, f"{series.title} ({series.mode_title})")
            for mode in MODES
            for series in self.systems(mode)
            for run in series.hot_runs[-1:]
            if run.manifest.flush is not None and run.manifest.flush.rows
        ]
        merges = [
            (run.manifest.merge.seconds / run.manifest.events * 1e6, series.title)
            for series in self.systems(SINGLE)
            for run in series.runs[-1:]
            if run.manifest.merge is not None and run.manifest.merge.files_before > 1
        ]
        flushed = _costs("Flushing inlined rows", flushes) or "No rows were inlined."
        merged = _costs("Merging the files of single events", merges) or "No merge of small files was timed."
        return f"{flushed} {merged}"


def trend(subject: str, slopes: Iterable[tuple[str, Estimate]]) -> str:
    """Return whether `subject` grows with the number of commits, by system: `slopes` by title."""
    groups: dict[str, list[str]] = {GROWS: [], FLAT: [], FALLS: []}
    for title, slope in slopes:
        groups[GROWS if slope.is_above(0) else FALLS if slope.is_below(0) else FLAT].append(title)
    return conclusion(subject, "it", groups)


def _costs(what: str, found: list[tuple[float, str]]) -> str:
    """Return a sentence on the lowest and highest cost of `what` in µs per row; empty if `found` is empty."""
    if not found:
        return ""
    (least, first), (most, last) = min(found), max(found)
    lowest = f"{what} after the last run costs {number(least, 3)} µs per row for {first}"
    return f"{lowest}." if first == last else f"{lowest} and {number(most, 3)} µs for {last}."


def findings(measures: Measures) -> list[str]:
    """Return the known findings: fastest system per mode, largest slowdown, most files, and cold-start effect."""
    writer = Writer(measures)
    fastest = (partial(_fastest, writer, mode) for mode in MODES)
    writes = (*fastest, partial(_growth_and_files, writer), partial(_cold, writer))
    return [found for write in writes if (found := or_nothing(write))]


def or_nothing(write: Callable[[], str]) -> str:
    """Return a sentence, or an empty string if the runs do not support it."""
    try:
        return write()
    except NotAvailable:
        return ""


def _fastest(writer: Writer, mode: str) -> str:
    ranked = writer.ranked(mode)
    first, last = ranked[0], ranked[-1]
    extremes = writer.slower(last, first)
    if not extremes.is_above(1):
        return f"{WAY[mode]}, the slowest system is not distinguishable from the fastest, {first.title}."
    alike = writer.alike(ranked)
    neighbours = "every system is distinguishable from the next"
    if alike:
        neighbours = f"{alike[0]} are not distinguishable"
    if len(alike) > 1:
        neighbours = f"these neighbours are not distinguishable: {'; '.join(alike)}"
    return (
        f"{WAY[mode]}, {first.title} has the shortest median write, {first.text}, and {last.title} the longest, "
        f"{number(extremes.value, 3)} times that; {neighbours}."
    )


def _growth_and_files(writer: Writer) -> str:
    grown: list[tuple[Known, str]] = []
    for mode in MODES:
        with suppress(NotAvailable):
            grown += [(known, mode) for known in writer.hot(mode, metrics.GROWTH) if known.value.is_above(0)]
    slows = "No system slows down distinguishably as commits add up"
    if grown:
        known, mode = max(grown, key=lambda pair: pair[0].value.value)
        more = with_unit(number(known.value.value * AGED / 1_000, 3), "ms")
        slows = f"{known.title} slows down most: {INSIDE[mode]}, {AGED} commits add {more} to a write"
    try:
        most = max(writer.hot(SINGLE, metrics.FILES_PER_COMMIT), key=lambda known: known.value.value)
    except NotAvailable:
        return f"{slows}."
    return f"{slows}; {most.title} leaves the most files, {number(most.value.value, 3)} per commit."


def _cold(writer: Writer) -> str:
    longer: list[str] = []
    first: list[Known] = []
    known = False
    for mode in MODES:
        with suppress(NotAvailable):
            effects = writer.known(mode, partial(writer.measures.cold_effect, metrics.WRITE_MEDIAN), "x")
            longer += [f"{each.title} {INSIDE[mode]}" for each in effects if each.value.is_above(1)]
            known = True
        with suppress(NotAvailable):
            first += writer.known(mode, partial(writer.measures.cold_start, metrics.FIRST_WRITE), "x")
    require(known, "no series has both a run 0 and a hot run")
    states = " or ".join(sorted({run.state for each in first for run in each.series.cold_runs}))
    median = f"the median write is longer than in hot runs for {listed(longer)}"
    if not longer:
        median = "no median write is distinguishably longer than in hot runs"
    if not first:
        return f"In run 0, {median}."
    most = max(first, key=lambda each: each.value.value)
    return (
        f"In run 0 ({states}), {median}; the first write takes up to {number(most.value.value, 3)} times as long, for "
        f"{most.title}."
    )
