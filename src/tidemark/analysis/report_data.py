"""What the report shows, small enough for one page: samples thinned so that no peak and no dip is lost."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark import __version__
from tidemark.analysis import style
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Absent, Metric
from tidemark.analysis.run import Run
from tidemark.analysis.runs import Series
from tidemark.analysis.statistics import Replicates
from tidemark.analysis.tables import dataset_label

# Points of all runs together, of one quantity: with all quantities and manifests some 3 MB.
POINTS = 60_000
MOST_POINTS, FEWEST_POINTS = 1_500, 150
TAIL_PERCENT = (100, 99, 95, 90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
BUDGET = ("poll", "decode", "assemble", "write", "bookkeeping", "wait_for_producer", "rest")


def thinned(
    x: NDArray[np.float64], y: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most `most` of the points (x rising): of each stretch of equal count the smallest, a middle and the largest.

    The extremes of all points are always among them, and each point shown is one that was measured.
    """
    if len(x) <= most:
        return x, y
    kept: set[int] = set()
    for places in np.array_split(np.arange(len(x)), most // 3):
        ranked = places[np.argsort(y[places], kind="stable")]
        kept.update((int(ranked[0]), int(ranked[len(ranked) // 2]), int(ranked[-1])))
    chosen = np.array(sorted(kept))
    return x[chosen], y[chosen]


def report_data(measures: Measures, claims: Mapping[str, Any]) -> dict[str, Any]:
    """The report's data as JSON: see workflow/report/page/app.js for who reads what."""
    run_set = measures.run_set
    runs = run_set.runs
    most = max(FEWEST_POINTS, min(MOST_POINTS, POINTS // max(len(runs), 1)))
    colours = style.colours(series.system for series in run_set.series)
    ordered = _ordered(measures)
    systems = {series.system: series for series in sorted(ordered, key=lambda series: series.is_harness)}
    protocols = ", ".join(dict.fromkeys(series.protocol for series in run_set.series))
    operations = sum(run.manifest.operations for run in runs)
    about = f"Tidemark {__version__}; protocol {protocols}; {len(runs):,} runs of {len(run_set.repeats):,} series, "
    about += f"{operations:,} operations. {dataset_label(run_set)}."
    sampling = (
        f"Of a run with more than {most:,} operations, plots over time show stretches of equal count by their "
        "smallest, a middle and their largest value, each as it was measured. Estimates and tails are of all "
        "operations. Dashed lines and faint points are cold runs; bars are 95 % intervals."
    )
    return {
        "about": about,
        "synthetic": any(dataset.synthetic for dataset in run_set.datasets),
        "sampling": sampling,
        "claims": dict(claims),
        "systems": [
            {"name": name, "title": series.title, "colour": colours[name], "harness": series.is_harness}
            for name, series in systems.items()
        ],
        "parts": {part: style.PARTS[part] for part in BUDGET},
        "series": [_series(measures, series, most) for series in ordered],
    }


def _ordered(measures: Measures) -> list[Series]:
    """Series of the main study as tables list them, then those of other studies."""
    run_set = measures.run_set
    main = [series for mode in ("single", "batch") for series in run_set.select(mode=mode)]
    return [*main, *(series for series in run_set.series if series not in main)]


def _series(measures: Measures, series: Series, most: int) -> dict[str, Any]:
    several = len(measures.run_set.stacks) > 1
    return {
        "system": series.system,
        "title": f"{series.title}, stack {series.stack}" if several else series.title,
        "mode": series.mode,
        "mode_title": series.mode_title,
        "study": series.study,
        "status": series.status,
        "reason": series.missing(),
        "estimates": {
            "write": _estimate(lambda: measures.hot(Metric.WRITE_MEDIAN, series)),
            "growth": _estimate(lambda: measures.hot(Metric.RELATIVE_GROWTH, series).scaled(100)),
            "cold": _estimate(lambda: measures.cold_effect(Metric.WRITE_MEDIAN, series)),
        },
        "runs": [_run(measures, run, series.repeat_of(run), most) for run in series.runs],
    }


def _estimate(compute: Callable[[], Replicates]) -> list[float | None] | None:
    try:
        found = compute().estimate("")
    except Absent:
        return None
    if not math.isfinite(found.value):
        return None
    return [_short(found.value), _short(found.low), _short(found.high)]


def _short(value: float | None) -> float | None:
    """Five significant digits, enough for a screen."""
    return None if value is None else float(f"{value:.5g}")


def _points(x: NDArray[np.float64], y: NDArray[np.float64], most: int) -> list[list[float | None]]:
    finite = np.isfinite(y)
    return [[_short(a), _short(b)] for a, b in zip(*thinned(x[finite], y[finite], most), strict=True)]


def _run(measures: Measures, run: Run, repeat: int | None, most: int) -> dict[str, Any]:
    starts = run.column("start_ns") / 1e9
    write = run.column("write_ns") / 1e6
    seconds = run.seconds()
    disk = seconds.disk_bytes_per_s
    # A share of 1 % is the tail of a hundred samples; smaller ones than the run can show are left out.
    shares = [share for share in TAIL_PERCENT if share >= 100 / len(write)]
    tail = zip(np.quantile(write, [1 - share / 100 for share in shares]), shares, strict=True)
    return {
        "number": run.number,
        "title": f"run {run.number}" if repeat is None else f"run {run.number} of repeat {repeat}",
        "label": run.label,
        "events": run.manifest.events,
        "harness": _estimate(lambda: measures.of_run(Metric.HARNESS_RATE, run)),
        "write": _points(starts, write, most),
        "read": _points(starts, run.column("poll_ns") / 1e6, most // 3),
        "cpu": _points(seconds.second, seconds.cpu_percent, most),
        "disk": [] if disk is None else _points(seconds.second, disk / 1e6, most),
        "tail": [[_short(float(time)), share] for time, share in tail],
        "budget": {part: dict(run.manifest.time_budget_ns).get(part, 0) for part in BUDGET},
        "facts": _facts(run),
        "manifest": _manifest(run),
    }


def _manifest(run: Run) -> dict[str, Any]:
    """run.json as it is, without the configuration and the columns, which are the same in all of them."""
    whole: dict[str, Any] = json.loads((run.directory / "run.json").read_text())
    whole.pop("config", None)
    dataset = whole.get("dataset")
    if isinstance(dataset, dict):
        dataset.pop("columns", None)
    return whole


def _facts(run: Run) -> dict[str, str]:
    """What a reader asks of a run first."""
    m = run.manifest
    oracle, proof, footprint = m.oracle, m.cold_proof, m.footprint
    wrong = f"{oracle.missing:,} missing, {oracle.duplicated:,} twice, {oracle.unexpected:,} unexpected"
    verdict = f"holds all {oracle.expected:,} ids, read by {oracle.reader}" if oracle.verdict else f"wrong: {wrong}"
    catalog = "not measurable" if footprint.catalog_bytes is None else f"{footprint.catalog_bytes:,} bytes"
    share = {part: 100 * time / m.elapsed_ns for part, time in m.time_budget_ns}
    made = {
        "Oracle": verdict if oracle.applicable else "nothing is stored, so nothing to check",
        "Cold proof": f"{proof.verdict}: {proof.reason or 'no reason given'} (method {proof.method})",
        "Boot": f"{proof.boot_id}, up for {proof.uptime_s:,.0f} s",
        "Page cache": ", ".join(
            f"{group.group}: {group.resident_bytes:,} of {group.bytes:,} bytes" for group in proof.residency
        )
        or "nothing to look at",
        "History": m.history or "not stated",
        "Warnings": "; ".join(m.marks) or "none",
        "Started": m.started_at,
        "Window": f"{run.elapsed_s:.3f} s (configured: {m.window_s:g} s)",
        "Written": f"{m.events:,} events in {m.operations:,} operations",
        "Time budget": ", ".join(f"{part.replace('_', ' ')} {value:.1f} %" for part, value in share.items()),
        "Stored": f"data {footprint.data_bytes:,} bytes in {footprint.data_files:,} files, metadata "
        f"{footprint.metadata_bytes:,} bytes in {footprint.metadata_files:,} files, catalog {catalog}",
        "Versions": ", ".join(f"{name} {version}" for name, version in m.versions),
        "Durability": m.system.durability,
    }
    if m.flush is not None:
        made["Flush"] = f"{m.flush.rows:,} rows in {m.flush.seconds:.3f} s"
    if m.merge is not None:
        made["Merge"] = f"{m.merge.files_before:,} files to {m.merge.files_after:,} in {m.merge.seconds:.3f} s"
    return made
