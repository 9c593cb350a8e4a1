"""Results of the study: its quantities, tables, figures, claims, first table and contribution to the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from tidemark.analysis.ages import AGES, YOUNG
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Floats
from tidemark.planner.cost_model import Cell, Cost, rtt_of
from tidemark.results.publication import PaperSection
from tidemark.results.reference.run_files import RunFiles
from tidemark.results.report.summary_table import SummaryMetric, SystemRuns, cold, hot, questions_of
from tidemark.runs.runset import Series
from tidemark.runs.spec import BATCH, MAIN, MODES, SINGLE
from tidemark.studies.assembly import claims_of, figure_specs_of, tables_of
from tidemark.studies.streams import metrics, paper, published, storage_tables, tables
from tidemark.studies.streams.claims import MEASURES, StreamClaimData
from tidemark.studies.streams.findings import findings
from tidemark.studies.streams.samples import COLUMNS
from tidemark.studies.streams.settings import StreamRecord
from tidemark.studies.streams.study import STUDY
from tidemark.studies.study import Results

HERE = Path(__file__).parent

PERCENT = 100.0
FEWEST_SIZES = 3  # batch sizes: a line fits any two
CLOSE = 0.25  # largest relative deviation of a size from the line


def _sizes(asked: SystemRuns) -> list[tuple[int, BootstrapEstimate]]:
    """Return the median write of each measured batch size, with all other settings equal."""
    found: dict[int, BootstrapEstimate] = {}
    for series in asked.series:
        varies_size = asked.measures.run_set.axis_of(series.sweep) == "batch_size"
        if series.runs and (series.sweep == MAIN or varies_size):
            found.setdefault(series.batch_size, asked.measures.value(metrics.WRITE_MEDIAN, series))
    return sorted(found.items())


def _line(asked: SystemRuns) -> tuple[BootstrapEstimate, BootstrapEstimate]:
    """Return ms per commit without rows and µs per row: a line through all sizes, fitted by relative error."""
    sizes = _sizes(asked)
    require(len(sizes) >= FEWEST_SIZES, "needs the sweep of batch sizes: --config 'streams.sweeps=[main, batch-size]'")
    rows = np.array([size for size, _ in sizes], dtype=np.float64)
    centre, off = _fit(rows, np.array([[each.value] for _, each in sizes]))
    if off > CLOSE:
        raise NotAvailable(f"its write time is no straight line of the rows: a size lies {PERCENT * off:.0f} % off")
    known = [each.draws for _, each in sizes if each.draws is not None]
    draws = None
    if known:
        shape = len(known[0])
        times = [np.exp(each.draws) if each.draws is not None else np.full(shape, each.value) for _, each in sizes]
        draws, _ = _fit(rows, np.array(times))
    n, runs = sum(each.n for _, each in sizes), sum(each.runs for _, each in sizes)
    degrees = min(each.degrees for _, each in sizes)
    found = []
    for place, factor in ((0, 1.0), (1, 1e3)):
        value = float(centre[place, 0]) * factor
        drawn = None if draws is None else draws[place] * factor
        if value <= 0 or (drawn is not None and not (drawn > 0).all()):
            raise NotAvailable("too small to be seen next to the rest of the write")
        found.append(BootstrapEstimate(math.log(value), None if drawn is None else np.log(drawn), n, runs, degrees))
    return found[0], found[1]


def _fit(rows: Floats, times: Floats) -> tuple[Floats, float]:
    """Fit a line to each column: return float64[2, k] (intercepts, slopes) and the largest relative residual.

    `times` is float64[sizes, k]. Least squares of relative residuals: small batches count as much as large ones.
    """
    weights = 1 / times**2
    sums = [np.sum(weights * rows[:, None] ** power, axis=0) for power in range(3)]
    right = [np.sum(weights * times * rows[:, None] ** power, axis=0) for power in range(2)]
    determinant = sums[0] * sums[2] - sums[1] ** 2
    intercept = (right[0] * sums[2] - right[1] * sums[1]) / determinant
    slope = (sums[0] * right[1] - sums[1] * right[0]) / determinant
    off = np.abs(intercept + slope * rows[:, None] - times) / times
    return np.array([intercept, slope]), float(off.max())


def _sizes_used(asked: SystemRuns, _mode: str | None) -> str:
    return f"batches of {', '.join(f'{size:,}' for size, _ in _sizes(asked))}"


def _tidying(asked: SystemRuns, mode: str | None) -> BootstrapEstimate:
    """Return the flush or merge time in seconds per million events, which equals microseconds per row."""
    return asked.measures.hot(
        metrics.FLUSH_PER_ROW if _flushes(asked, mode) else metrics.MERGE_PER_ROW, asked.main(mode)
    )


def _flushes(asked: SystemRuns, mode: str | None) -> bool:
    """Return True if rows are moved into files by a flush, not by a merge.

    Raises NotAvailable if the client has neither.
    """
    timed = [run.manifest for run in asked.main(mode).runs]
    if any(each.flush is not None and each.flush.rows for each in timed):
        return True
    if all(each.merge is None for each in timed):
        raise NotAvailable("no flush or merge was timed: its client has none")
    return False


ALL_QUESTIONS = questions_of(
    __file__,
    {
        "rate-100": hot(metrics.RATE_OF_FIRST),
        **{f"age-{age}": hot(metrics.WRITE_AT[age]) for age in AGES},
        **{f"growth-{age}": hot(metrics.GROWTH_TO[age]) for age in AGES[1:]},
        "rate": hot(metrics.HARNESS_RATE),
        "share": hot(metrics.HARNESS_SHARE),
        "p50": hot(metrics.WRITE_MEDIAN),
        **{f"p{percent}-100": hot(quantity) for percent, quantity in metrics.WRITE_TAIL.items()},
        "p99": hot(metrics.WRITE_P99),
        "files": hot(metrics.FILES_LEFT),
        "on-disk": hot(metrics.ON_DISK),
        "bytes": hot(metrics.STORED_PER_EVENT),
        "cpu-writer": hot(metrics.WRITER_CPU),
        "cpu-servers": hot(metrics.SERVERS_CPU),
        "cpu-stream": hot(metrics.STREAM_CPU),
        "memory-writer": hot(metrics.WRITER_MEMORY),
        "memory-servers": hot(metrics.SERVERS_MEMORY),
        "tidying": _tidying,
        "cold-start": cold(metrics.FIRST_WRITE),
        "fixed": lambda asked, _mode: _line(asked)[0],
        "row": lambda asked, _mode: _line(asked)[1],
    },
    {
        "tidying": lambda asked, mode: "flush" if _flushes(asked, mode) else "merge",
        "fixed": _sizes_used,
        "row": _sizes_used,
    },
)
OF_A_MODE, OF_SIZES = ALL_QUESTIONS[:-2], ALL_QUESTIONS[-2:]
# Questions that the report answers in words.
ASKED = {
    ("rate-100", SINGLE): ("Fastest for single events", "best"),
    ("rate-100", BATCH): ("Fastest in batches", "best"),
    ("growth-100", SINGLE): (f"Slows down most from commit {YOUNG} to 100, single events", "worst"),
    ("files", SINGLE): ("Leaves most files, single events", "worst"),
}
# Columns shown by default: those that decide most choices, few enough to read at a glance.
AT_FIRST = ("rate-100", "age-10", "age-100", "growth-100", "files", "on-disk")
USUAL = {SINGLE: (*AT_FIRST, "cold-start"), BATCH: AT_FIRST}


def _in(mode: str, question: SummaryMetric) -> SummaryMetric:
    asks, extreme = ASKED.get((question.key, mode), (None, "best"))
    usual = question.key in USUAL[mode]
    return replace(question, key=f"{question.key}-{mode}", mode=mode, asks=asks, extreme=extreme, usual=usual)


QUESTIONS = (*(_in(mode, question) for mode in MODES for question in OF_A_MODE), *OF_SIZES)


def _costs(measures: Measures) -> Iterator[Cost]:
    """Yield mean write costs of the main series and of batch-size sweeps: from hot runs, or from a sweep's only run."""
    for series in measures.run_set.series:
        varied = series.sweep == MAIN or measures.run_set.axis_of(series.sweep) == "batch_size"
        if varied and series.runs and not series.is_null_baseline:
            yield _cost(measures, series)


def _cost(measures: Measures, series: Series) -> Cost:
    runs = series.hot_runs or series.runs
    growth = files = None
    with suppress(NotAvailable):
        slope = measures.value(metrics.GROWTH, series)
        growth = slope.value if slope.estimate("").is_above(0) else 0.0
    with suppress(NotAvailable):
        files = measures.value(metrics.FILES_PER_COMMIT, series).value
    return Cost(
        system=series.system,
        title=series.title,
        stack=series.stack,
        promise=runs[0].manifest.system.durability,
        cell=Cell(series.batch_size, rtt_ms=rtt_of(runs[0])),
        commit_ms=1000 * series.batch_size / measures.value(metrics.SYSTEM_RATE, series).value,
        commits=sum(run.manifest.operations for run in runs) / len(runs) / 2,
        growth_ms=growth,
        files=files,
    )


RESULTS = Results(
    quantities=metrics.QUANTITIES,
    views=(HERE / "views.sql").read_text(),
    publication=published.PUBLICATION,
    tables=tables_of(published, tables, storage_tables),
    figure_specs=figure_specs_of("tidemark.studies.streams.thesis_figures", "tidemark.studies.streams.figures"),
    claims=claims_of(
        STUDY,
        metrics.QUANTITIES,
        MEASURES,
        StreamClaimData,
        rates={SINGLE: 2_000.0, BATCH: 80_000.0},
        set_up_bytes=2.0e9,
        remarks=(
            "Claims on cold runs are tested on cold starts: the thesis restarted the machine, then started servers, "
            "filled topics and measured. Claims on reading single events are tested only in runs that read one at a "
            "time, as the thesis did. The thesis's tool hands over a batch with one chunk for each event: claims on "
            "times of batches are tested by series that do so where these were measured ('streams.sweeps=[main, "
            "chunks]'), and by contiguous batches otherwise.",
        ),
    ),
    paper=PaperSection(
        chapter=HERE / "chapter.typ",
        front=HERE / "front.typ",
        values=paper.values,
        sentences=paper.sentences,
        parts=paper.parts,
        findings=findings,
    ),
    notes=lambda run_set: tables.reading_notes(run_set.series),
    questions=QUESTIONS,
    costs=_costs,
    first_figure="ages",
    run_files=RunFiles((COLUMNS,), (StreamRecord,)),
)
