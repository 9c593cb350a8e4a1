"""PaperSection of the study to the paper: sentences, values, a table for each mode, and the cost of the harness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemark.analysis.ages import YOUNG
from tidemark.analysis.formatting import brief, estimate_text, listed, number
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.dataset.distribution import MONTH_TRIPS
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.serde import spelt
from tidemark.runs.spec import BATCH, MODES, SINGLE
from tidemark.studies.streams import published
from tidemark.studies.streams.findings import AGED, Writer
from tidemark.studies.streams.metrics import GROWTH_TO, RATE_OF_FIRST, WRITE_AT, WRITE_MEDIAN

MB = 1e6


def sentences(measures: Measures) -> dict[str, str]:
    """Return all sentences of the study by name: those on its results, then those on how the stream was produced."""
    return Writer(measures).sentences() | streaming(measures.run_set)


def streaming(run_set: RunSet) -> dict[str, str]:
    """Return sentences on how events were produced and read, and on the bytes charged to the systems."""
    return {
        "producer": _producer(run_set),
        "read-ahead": _read_ahead(run_set),
        "stretches": _stretches(run_set),
        "charged": _charged(run_set),
        "checkpoints": _checkpoints(run_set),
    }


def values(run_set: RunSet) -> dict[str, str]:
    """Return single values by name."""
    batches = sorted({series.batch_size for series in run_set.series if series.mode == BATCH})
    threads = sorted({series.threads for series in run_set.select()}) or [1]
    made = {
        "batch-size": listed([f"{size:,}" for size in batches]) or "none",
        "encoding": run_set.config.text("encoding", "default"),
        "compression": run_set.config.text("compression", "default"),
        "threads": f"{listed([f'{count:,}' for count in threads])} thread{'' if threads == [1] else 's'}",
        "producer": listed(sorted({run.manifest.producer_mode for run in run_set.runs})),
        "thesis-rows": f"{MONTH_TRIPS:,}",
    }
    return made | {f"thesis-{name}": value for name, value in published.PUBLICATION.hardware.items()}


def parts(measures: Measures, bench: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the study's objects for values.json: a table of results for each mode, and the cost of the harness."""
    return {"results": {mode: _results(measures, mode) for mode in MODES}, "harness": _harness(bench)}


def _results(measures: Measures, mode: str) -> dict[str, Any]:
    """Return one mode's table in the body of the paper: hot runs, with the thesis's median next to them."""
    heads = ["System", *(head for head, _ in IN_TABLE), "Thesis, median (ms)"]
    rows: list[dict[str, Any]] = []
    for series in measures.run_set.select(mode=mode, harness=False):
        theirs = published.PRINTED.write_ms[mode].get(series.system)
        thesis = f"{theirs.median:,g}" if theirs else "–"
        if not series.hot_runs:
            rows.append(
                {"system": series.title, "missing": series.missing(), "columns": len(heads) - 2, "thesis": thesis}
            )
            continue
        cells = [_cell(measures, quantity, series) for _, quantity in IN_TABLE]
        rows.append({"system": series.title, "cells": cells, "thesis": thesis})
    return {"heads": heads, "rows": rows}


def _cell(measures: Measures, quantity: Metric, series: Series) -> str:
    """Format an estimate with its interval; the unit is in the column head."""
    try:
        return estimate_text(measures.hot(quantity, series).estimate(""))
    except NotAvailable as absent:
        return f"– ({brief(str(absent))})"


# Columns of a mode's table in the body of the paper: the head, and the quantity of a series' hot runs.
IN_TABLE = (
    ("Events/s, commits 1 to 100", RATE_OF_FIRST),
    (f"Commit {AGED} (ms)", WRITE_AT[AGED]),
    (f"Commit {AGED} over {YOUNG} (×)", GROWTH_TO[AGED]),
    ("Median of the window (ms)", WRITE_MEDIAN),
)


def _harness(bench: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the cost of the harness itself; no rows if it was not benchmarked in this workspace."""
    stages = ("poll", "decode", "assemble", "bookkeeping")
    return [
        {
            "name": str(row["name"]),
            "rate": number(row["events_per_s"], 3),
            "range": f"{number(row['least'], 3)} to {number(row['most'], 3)}",
            **{stage: number(row["stages_us"][stage], 2) for stage in stages},
        }
        for row in (bench["rows"] if bench else ())
    ]


def _producer(run_set: RunSet) -> str:
    modes = {run.manifest.producer_mode for run in run_set.runs}
    if modes == {"ahead"}:
        return (
            "The producer fills the topic before the window opens, so it does not compete with the measured loop, and "
            "later runs read it again. If the topic runs dry, the clock stops while the producer adds events."
        )
    return "Each run uses a new topic. The producer runs while the window is open and competes with the measured loop."


def _read_ahead(run_set: RunSet) -> str:
    most = run_set.config.integer("read_ahead", 1)
    if most == 1:
        return "The loop reads and writes one event before it reads the next."
    alone = sorted(
        {series.sweep for series in run_set.series if series.mode == SINGLE and series.read_ahead == 1 and series.runs}
    )
    found = f"The sweep {listed(alone)} reads" if alone else "No series in these results reads"
    return (
        f"One read returns up to {most:,} events that the client has already fetched, the read batch. The loop "
        "decodes, writes and times each event by itself, and assigns each an equal share of the read time. Read "
        "times are therefore means over read batches, not times of single events, and no claim on read times is "
        f"judged by them. {found} one event at a time."
    )


def _stretches(run_set: RunSet) -> str:
    several = [run for run in run_set.runs if run.manifest.stretches > 1]
    if not several:
        return "Every window runs without interruption."
    systems = list(dict.fromkeys(run.manifest.system.title for run in several))
    return (
        f"{len(several):,} windows (of {listed(systems)}) consist of up to "
        f"{max(run.manifest.stretches for run in several):,} stretches: the topic is refilled between them, and that "
        "time does not count."
    )


def _charged(run_set: RunSet) -> str:
    disks = [run.manifest.disk for run in run_set.runs if run.manifest.disk.charged_bytes is not None]
    if not disks:
        why = next((run.manifest.disk.why_not_charged for run in run_set.runs), None)
        return f"These runs do not show it: {why}."
    stream = max(disk.stream_bytes or 0 for disk in disks) / MB
    left = max(disk.left_bytes or 0 for disk in disks) / MB
    seconds = max(disk.sync_seconds or 0.0 for disk in disks)
    return (
        f"In these runs, the stream writes at most {stream:.2f} MB per window, at most {left:.2f} MB are unwritten "
        f"when a window opens, and the sync takes at most {seconds:.2f} s."
    )


def _checkpoints(run_set: RunSet) -> str:
    """Return a sentence on Delta's checkpoint interval if it is set explicitly; otherwise an empty string."""
    found: dict[str, None] = {}
    for series in run_set.select(harness=False):
        for name, value in series.runs[0].manifest.system.options if series.runs else ():
            if name == "checkpoint_interval":
                found[f"{spelt(value)} commits for {series.title}"] = None
    if not found:
        return ""
    return (
        f"Delta's checkpoint interval is set to {listed(list(found))}, as in the format's documentation and the "
        "thesis; the default of delta-rs is 100."
    )
