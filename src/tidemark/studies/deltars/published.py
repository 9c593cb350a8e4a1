"""Numbers that the thesis prints: its appendices B, C and D (copied to thesis.csv), its machine and software."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidemark.results.publication import Publication, printed_rows

HOPSFS, LOCAL, LEGACY = "hopsfs", "local", "legacy"
WRITE, READ, UPLOAD, MATERIALISE = "write", "read", "upload", "materialise"
LATENCY, THROUGHPUT = "latency", "throughput"
CORES = (1, 2, 4, 8)
# The thesis's name for each table, which is also the number of rows in its throughputs.
WORDS = {
    "supplier_sf1": "10K", "supplier_sf10": "100K", "supplier_sf100": "1M",
    "lineitem_sf1": "6M", "lineitem_sf10": "60M",
}  # fmt: skip
THOUSANDS = {"10K": 10, "100K": 100, "1M": 1_000, "6M": 6_000, "60M": 60_000}
ROWS = {
    "supplier_sf1": 10_000, "supplier_sf10": 100_000, "supplier_sf100": 1_000_000,
    "lineitem_sf1": 6_001_215, "lineitem_sf10": 59_986_052,
}  # fmt: skip
LIMIT = 5_000_000  # messages per run that Hudi's streamer takes by default
MICROSECONDS = 1e6  # microseconds per second
TITLES = {
    HOPSFS: "delta-rs HopsFS (the thesis's)", LOCAL: "delta-rs LocalFS (the thesis's)", LEGACY: "Legacy (the thesis's)",
}  # fmt: skip
# The pipeline of the thesis that corresponds to each system.
HEIRS = {
    "delta-rs-hdfs": HOPSFS,
    "delta-rs-local": LOCAL,
    "delta-rs-hdfs-before": HOPSFS,
    "delta-rs-local-before": LOCAL,
    "legacy": LEGACY,
}
PUBLICATION = Publication.read(__file__)
REPETITIONS = 50
# Names and row counts of tables that the thesis misprints, judging by its other numbers; thesis.csv is corrected.
MISNAMED = (
    "Tables D.1 to D.4: the last two rows of each are named 6M; by their times the last is of 60M",
    "Section 3.2.4: lineitem_sf1 is printed with 60000000 rows, as lineitem_sf10 is; all tables call it 6M",
)


@dataclass(frozen=True, slots=True)
class Printed:
    """One row of an appendix: a mean of 50 with its interval, in seconds or in thousands of rows per second."""

    table: str  # table of the appendix, such as B.1
    operation: str
    pipeline: str
    data: str  # as configurations spell it
    cores: int
    quantity: str
    mean: float
    low: float
    high: float

    @property
    def place(self) -> str:
        return f"Table {self.table}, {self.pipeline} {WORDS[self.data]}"


@cache
def rows() -> tuple[Printed, ...]:
    """Return all rows, in the order of the appendices."""
    return printed_rows(Path(__file__).with_name("thesis.csv"), Printed)


@cache
def _by_key() -> dict[tuple[str, str, str, int, str], Printed]:
    return {(each.operation, each.pipeline, each.data, each.cores, each.quantity): each for each in rows()}


def printed(operation: str, pipeline: str, data: str, cores: int, quantity: str = LATENCY) -> Printed | None:
    """Return the latency, or the throughput, that the thesis prints; None if it prints none."""
    return _by_key().get((operation, pipeline, data, cores, quantity))


def seconds(operation: str, pipeline: str, data: str, cores: int = 1) -> float:
    """Return the mean of a printed latency; KeyError if there is none."""
    return _by_key()[operation, pipeline, data, cores, LATENCY].mean


def of_system(system: str, operation: str, data: str, cores: int) -> Printed | None:
    """Return the printed latency of the pipeline that corresponds to a system; None if there is none."""
    return printed(operation, HEIRS.get(system, ""), data, cores)


def ratio(one: Printed | None, other: Printed | None) -> float | None:
    """Return the ratio of two printed means; None if one is not printed."""
    return one.mean / other.mean if one and other else None


def legacy_parts(data: str, cores: int) -> tuple[float, float] | None:
    """Return the printed seconds of uploading and of materialising; None if the thesis prints none."""
    upload, materialise = (printed(each, LEGACY, data, cores) for each in (UPLOAD, MATERIALISE))
    return (upload.mean, materialise.mean) if upload and materialise else None


def misprints() -> list[str]:
    """Return, in words, throughputs that are not rows by latency, intervals without their mean, and wrong names."""
    found = []
    for each in rows():
        if not each.low <= each.mean <= each.high:
            found.append(
                f"{each.place}: the mean {each.mean:g} lies outside its interval {each.low:g} to {each.high:g}"
            )
        if each.quantity == THROUGHPUT:
            took = seconds(each.operation, each.pipeline, each.data, each.cores)
            derived = THOUSANDS[WORDS[each.data]] / took
            if abs(each.mean / derived - 1) > 0.01:
                found.append(f"{each.place}: {each.mean:g} k rows/s are printed, {took:g} s make {derived:.5g}")
    return [*found, *MISNAMED]


def limited() -> str:
    """Return, in words, the legacy path's time per row at 6M and 60M, by all rows and by those that LIMIT leaves."""
    lines = []
    for operation, done in ((MATERIALISE, "materialised"), (READ, "read")):
        took = {data: MICROSECONDS * seconds(operation, LEGACY, data) for data in ("lineitem_sf1", "lineitem_sf10")}
        whole = " and ".join(f"{each / ROWS[data]:.1f}" for data, each in took.items())
        left = " and ".join(f"{each / min(ROWS[data], LIMIT):.1f}" for data, each in took.items())
        lines.append(f"{done} in {whole} µs a row if all are there, and in {left} µs if {LIMIT:,} are")
    legacy, hopsfs = (seconds(READ, each, "lineitem_sf10") for each in (LEGACY, HOPSFS))
    all_read = legacy * ROWS["lineitem_sf10"] / LIMIT
    return (
        f"By the thesis's own times, 6M and 60M rows are {lines[0]}; they are {lines[1]}. At the latter all 60M "
        f"would be read in {all_read:.0f} s: {all_read / hopsfs:.1f} times as long as by delta-rs, and not "
        f"{legacy / hopsfs:.2f}."
    )
