"""Data of the report, small enough for one page: samples are thinned without losing peaks or dips."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.ages import typical_by_age
from tidemark.analysis.formatting import listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import HIGHER, Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.figures import style
from tidemark.results.report.answer import answers, read_first
from tidemark.results.report.summary_table import Subject, asking, comparisons, question_data, short, shortened
from tidemark.runs.manifest import Footprint
from tidemark.runs.proofs import ColdProof
from tidemark.runs.run import STATES, Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.spec import STAGES
from tidemark.runs.views import harness_words, in_order, machine_words, measured, modes

# Points of one quantity over all runs; with all quantities and manifests, the data is about 3 MB.
POINTS = 60_000
MOST_POINTS, FEWEST_POINTS = 1_500, 150
TAIL_PERCENT = (100, 99, 95, 90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


def thinned(
    x: NDArray[np.float64], y: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return at most `most` points (x ascending): the minimum, a middle and the maximum of each equal-count stretch.

    The extremes of all points are always included, and every point returned is a measured one.
    """
    if len(x) <= most:
        return x, y
    kept: set[int] = set()
    for places in np.array_split(np.arange(len(x)), most // 3):
        ranked = places[np.argsort(y[places], kind="stable")]
        kept.update((int(ranked[0]), int(ranked[len(ranked) // 2]), int(ranked[-1])))
    chosen = np.array(sorted(kept))
    return x[chosen], y[chosen]


def report_data(
    run_set: RunSet, subjects: Sequence[Subject], claims: Mapping[str, Any], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the report's data as JSON; the scripts in workflow/report/page read it.

    `run_set` has the runs of all `subjects`.
    """
    studies = [subject.measures for subject in subjects]
    compared = asking(subjects)
    runs = run_set.runs
    most = max(FEWEST_POINTS, min(MOST_POINTS, POINTS // max(len(runs), 1)))
    names = {series.system for series in run_set.series}
    colours, markers = style.colours(names), style.shapes(names)
    ordered = [(measures, series) for measures in studies for series in _ordered(measures.run_set)]
    systems = {series.system: series for _, series in sorted(ordered, key=lambda pair: pair[1].is_null_baseline)}
    sampling = (
        f"Of a run with more than {most:,} operations, plots over time show stretches of equal count by their "
        "smallest, a middle and their largest value, each as it was measured. Estimates and tails are of all "
        "operations. Dashed lines and faint points are run 0; bars are 95 % intervals. " + " ".join(notes)
    )
    headline = {quantity.key: quantity for measures in studies for quantity in _headline(measures)}
    of_runs = dict.fromkeys(quantity.key for measures in studies for quantity in _of_runs(measures))
    return {
        "title": _title(run_set),
        "read_first": read_first(run_set, studies),
        "answers": [found for each in compared if each.groups for found in answers(each.groups[0], each.questions)],
        "matrix": {
            "questions": [found for each in compared for found in question_data(each.questions, each.groups)],
            "groups": comparisons(compared, colours),
        },
        "gallery": None,
        "durability": _durability(series for _, series in ordered),
        "synthetic": any(dataset.synthetic for dataset in run_set.datasets),
        "sampling": sampling,
        "claims": dict(claims),
        "systems": [
            {
                "name": name,
                "title": series.title,
                "colour": colours[name],
                "marker": markers[name],
                "harness": series.is_null_baseline,
            }
            for name, series in systems.items()
        ],
        "quantities": [
            {"key": each.key, "title": each.title, "unit": each.shown_unit, "signed": each.signed}
            for each in headline.values()
        ],
        "of_runs": list(of_runs),
        "leading": studies[0].quantities.leading.noun,
        "parts": {part: style.PARTS[part] for part in STAGES},
        "series": [_series(measures, series, most) for measures, series in ordered],
    }


def _title(run_set: RunSet) -> str:
    """Return the words by which a report differs from others: its studies, stacks and days."""
    stacks = f"stack{'s' if len(run_set.stacks) > 1 else ''} {listed(in_order(run_set))}"
    return ", ".join(filter(None, (*run_set.studies, stacks, measured(run_set))))


def _ordered(run_set: RunSet) -> list[Series]:
    """Return the series of the main configuration in table order, then those of other sweeps."""
    main = [series for mode in modes(run_set) for series in run_set.select(mode=mode)]
    return [*main, *(series for series in run_set.series if series not in main)]


def _headline(measures: Measures) -> list[Metric]:
    """Return the quantities shown per series: the headline, as comparable shares where these are declared."""
    return [measures.quantities.relative(quantity) for quantity in measures.quantities.headline]


def _of_runs(measures: Measures) -> list[Metric]:
    """Return the quantities shown per run: the first higher-is-better headline quantity, such as events/s."""
    return [quantity for quantity in measures.quantities.headline if quantity.better == HIGHER][:1]


def _shown(measures: Measures, quantity: Metric, series: Series) -> BootstrapEstimate:
    return quantity.as_shown(measures.hot(quantity, series))


def _series(measures: Measures, series: Series, most: int) -> dict[str, Any]:
    several = len(measures.run_set.stacks) > 1
    return {
        "study": series.study,
        "system": series.system,
        "title": f"{series.title}, stack {series.stack}" if several else series.title,
        "mode": series.mode,
        "mode_title": series.mode_title,
        "sweep": series.sweep,
        "status": series.status,
        "reason": series.missing(),
        "attempts": attempts(series),
        "estimates": {
            quantity.key: _estimate(partial(_shown, measures, quantity, series)) for quantity in _headline(measures)
        },
        "cold": _estimate(lambda: measures.cold_effect(measures.quantities.leading, series)),
        "ages": [[age, short(time)] for age, time in typical_by_age(series.hot_runs)],
        "runs": [_run(measures, run, series.repeat_of(run), most) for run in series.runs],
    }


def _estimate(compute: Callable[[], BootstrapEstimate]) -> list[float | None] | None:
    try:
        found = compute().estimate("")
    except NotAvailable:
        return None
    return shortened(found) if math.isfinite(found.value) else None


def _points(x: NDArray[np.float64], y: NDArray[np.float64], most: int) -> list[list[float | None]]:
    finite = np.isfinite(y)
    return [[short(a), short(b)] for a, b in zip(*thinned(x[finite], y[finite], most), strict=True)]


def _run(measures: Measures, run: Run, repeat: int | None, most: int) -> dict[str, Any]:
    starts = run.column("start_ns") / 1e9
    write = run.elapsed_ns() / 1e6
    seconds = run.seconds()
    disk = seconds.disk_bytes_per_s
    # A tail share of 1 % needs a hundred samples; shares too small for the run are omitted.
    shares = [share for share in TAIL_PERCENT if share >= 100 / len(write)]
    tail = zip(np.quantile(write, [1 - share / 100 for share in shares]), shares, strict=True)
    return {
        "number": run.number,
        "title": f"run {run.number}" if repeat is None else f"run {run.number} of repeat {repeat}",
        "label": run.label,
        "place": os.path.relpath(run.directory, measures.run_set.results),
        "state": run.state,
        "disturbed": "; ".join(run.disturbed),
        "events": run.manifest.events,
        "estimates": {
            quantity.key: _estimate(partial(measures.of_run, quantity, run)) for quantity in _of_runs(measures)
        },
        "write": _points(starts, write, most),
        "read": _points(starts, run.column("poll_ns") / 1e6, most // 3) if run.has("poll_ns") else [],
        "cpu": _points(seconds.second, seconds.cpu_percent, most),
        "disk": [] if disk is None else _points(seconds.second, disk / 1e6, most),
        "tail": [[short(float(time)), share] for time, share in tail],
        "budget": {part: dict(run.manifest.time_budget_ns).get(part, 0) for part in STAGES},
        "facts": facts(run),
        "manifest": _manifest(run),
    }


def _manifest(run: Run) -> dict[str, Any]:
    """Return the content of run.json without the configuration and the columns, which are equal in all runs."""
    whole: dict[str, Any] = json.loads((run.directory / "run.json").read_text())
    whole.pop("config", None)
    dataset = whole.get("dataset")
    if isinstance(dataset, dict):
        dataset.pop("columns", None)
    return whole


def attempts(series: Series) -> list[str]:
    """Return a sentence for each repeat with more than one attempt, and for each run that was measured again."""
    found = []
    for repeat in series.repeats:
        which = f"Repeat {repeat.number}" if len(series.repeats) > 1 else "This series"
        if len(repeat.attempts) > 1:
            why = "; ".join(f"{each.status}: {each.reason or 'no reason is known'}" for each in repeat.failures)
            found.append(f"{which} took {len(repeat.attempts):,} attempts. Those before the last: {why}.")
        for each in repeat.disturbed:
            reasons = "; ".join(each.reasons)
            found.append(f"{which}: run {each.number} was disturbed ({reasons}), and was measured once more.")
    return found


def _durability(ordered: Iterable[Series]) -> list[dict[str, str]]:
    """Return the report's table of systems, with the durability of a write when it returns."""
    found: dict[str, dict[str, str]] = {}
    for series in ordered:
        if series.runs and not series.is_null_baseline:
            system = series.runs[0].manifest.system
            made = {"system": series.title, "format": system.format, "client": system.client}
            made |= {"catalog": system.catalog, "level": system.durability_level, "durability": system.durability}
            found.setdefault(f"{series.title} {system.durability_level}", made)
    return list(found.values())


OLD = "not recorded (run files of version 1)"


def _proof(proof: ColdProof) -> str:
    groups = ", ".join(f"{name} {each.resident_bytes:,} of {each.bytes:,} bytes" for name, each in proof.residency)
    return (
        f"{proof.verdict}, {proof.reason or 'no reason given'} (method {proof.method}; in the page cache: "
        f"{groups or 'nothing to look at'})"
    )


def _interference(run: Run) -> str:
    found = run.manifest.interference
    if found is None:
        return OLD
    named = (("foreign", found.foreign_cores), ("stolen", found.steal_cores), ("kernel's", found.kernel_cores))
    cores = ", ".join(f"{name} {'not known' if value is None else f'{value:.3f}'}" for name, value in named)
    told = f"busy processors in the mean: {cores}; suspended for {found.suspended_seconds:.3f} s"
    return f"DISTURBED: {'; '.join(found.disturbed)} ({told})" if found.disturbed else told


def _disk(run: Run) -> str:
    disk = run.manifest.disk
    charged = disk.charged_bytes
    if charged is None:
        return disk.why_not_charged or OLD
    left = "not known" if disk.left_bytes is None else f"{disk.left_bytes:,} bytes"
    took = "" if disk.sync_seconds is None else f" (which took {disk.sync_seconds:.2f} s)"
    return (
        f"{charged:,} bytes are charged to the system: {disk.window_bytes:,} in the window and {disk.sync_bytes:,} by "
        f"a sync after it{took}, less {disk.stream_bytes:,} of the stream. Unwritten when the window opened: {left}"
    )


def _stored(footprint: Footprint) -> str:
    catalog = "not measurable" if footprint.catalog_bytes is None else f"{footprint.catalog_bytes:,} bytes"
    return (
        f"data {footprint.data_bytes:,} bytes in {footprint.data_files:,} files, metadata "
        f"{footprint.metadata_bytes:,} bytes in {footprint.metadata_files:,} files, catalog {catalog}"
    )


def facts(run: Run) -> dict[str, str]:
    """Return the main facts about a run, by label."""
    m = run.manifest
    oracle, footprint = m.oracle, m.footprint
    wrong = f"{oracle.missing:,} missing, {oracle.duplicated:,} twice, {oracle.unexpected:,} unexpected"
    verdict = f"holds all {oracle.expected:,} ids, read by {oracle.reader}" if oracle.verdict else f"wrong: {wrong}"
    share = {part: 100 * time / m.elapsed_ns for part, time in m.time_budget_ns}
    made = {
        "Oracle": verdict if oracle.applicable else "nothing is stored, so nothing to check",
        "Called": f"{run.state}. {STATES}" if run.cold else run.state,
        "Cold proof": f"before the servers start: {_proof(m.cold_proof)}",
        "Opening": f"when the window opens: {_proof(m.opening)}" if m.opening else OLD,
        "First write": OLD if m.first_write_ns is None else f"{m.first_write_ns / 1e6:,.3f} ms",
        "Boot": f"{m.cold_proof.boot_id}, up for {m.cold_proof.uptime_s:,.0f} s",
        "History": m.history or "not stated",
        "Warm-up": m.warm_up.label if m.warm_up else "none",
        "Interference": _interference(run),
        "Disk": _disk(run),
        "Measured by": harness_words(m.harness),
        "Machine": machine_words(m.machine),
        "Warnings": "; ".join(m.marks) or "none",
        "Started": m.started_at,
        "Window": f"{run.elapsed_s:.3f} s (configured: {m.window_text})",
        "Written": f"{m.events:,} events in {m.operations:,} operations",
        "Time budget": ", ".join(f"{part.replace('_', ' ')} {value:.1f} %" for part, value in share.items()),
        "Stored": _stored(footprint) if footprint else "no table",
        "Versions": ", ".join(f"{name} {version}" for name, version in m.versions),
        "Durability": f"{m.system.durability} (level: {m.system.durability_level})",
    }
    if m.stretches > 1:
        made["Window"] += f", measured in {m.stretches:,} stretches: the topic was refilled between them, uncounted"
    if m.flush is not None:
        made["Flush"] = f"{m.flush.rows:,} rows in {m.flush.seconds:.3f} s"
    if m.merge is not None:
        made["Merge"] = f"{m.merge.files_before:,} files to {m.merge.files_after:,} in {m.merge.seconds:.3f} s"
    return made
