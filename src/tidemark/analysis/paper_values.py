"""Everything that the paper prints and that is not prose: named values, sentences, tables, figures and claims."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tidemark import __version__
from tidemark.analysis import published
from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.ledger import estimate_text
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import UNITS, Absent, Metric
from tidemark.analysis.paper_sentences import MODES, Writer
from tidemark.analysis.paper_setting import listed
from tidemark.analysis.paper_stacks import StackWriter
from tidemark.analysis.runs import RunSet, Series
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.tables import Cell, Missing, number, shown
from tidemark.dataset.distribution import MONTH_TRIPS
from tidemark.errors import AnalysisError
from tidemark.machine.cold import COLD_SHARE, HOT_SHARE

WIDE_POINTS = 300.0  # a figure above this width takes both columns
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Sources:
    """The results that the paper is made from: JSON objects as tables, figures, claims and bench wrote them."""

    tables: tuple[Mapping[str, Any], ...]
    figures: tuple[Mapping[str, Any], ...]
    claims: Mapping[str, Any]
    bench: Mapping[str, Any] | None

    @classmethod
    def read(cls, results: Path) -> Sources:
        """AnalysisError, naming the file, for what is not there yet."""
        index = _object(results / "tables" / "index.json")
        tables = tuple(_object(results / "tables" / f"{entry['name']}.json") for entry in index["tables"])
        figures = tuple(_object(results / "figures" / "index.json")["figures"])
        bench = results / "bench.json"
        return cls(tables, figures, _object(results / "claims.json"), _object(bench) if bench.exists() else None)


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{path}: cannot be read ({error}); './tidemark all' makes it") from error
    if not isinstance(found, dict):
        raise AnalysisError(f"{path}: found {type(found).__name__}; allowed: an object")
    return found


def values(measures: Measures, sources: Sources, results: Path) -> dict[str, Any]:
    """What values.json holds. Every text in it is ready to print."""
    run_set = measures.run_set
    writer = Writer(measures)
    stacks = StackWriter(measures, sources.claims)
    moment = newest(run_set)
    return {
        "synthetic": any(dataset.synthetic for dataset in run_set.datasets),
        "date": {"year": moment.year, "month": moment.month, "day": moment.day},
        "values": named(run_set, sources),
        "sentences": writer.sentences() | stacks.sentences(),
        "stacks": stacks.table() if stacks.several else None,
        "labelled": sources.claims["labelled"],
        "results": {mode: _results(measures, mode) for mode in MODES},
        "harness": _harness(sources.bench),
        "claims": sources.claims["claims"],
        "systems": [_system(series) for series in _one_a_system(run_set)],
        "tables": [_table(table) for table in sources.tables],
        "figures": [_figure(figure, results) for figure in sources.figures],
    }


def newest(run_set: RunSet) -> datetime:
    """When the last run started: the date of all that is made from it."""
    moments = [datetime.fromisoformat(run.manifest.started_at) for run in run_set.runs]
    if not moments:
        raise AnalysisError(f"{run_set.results}: no series has a run, so there is nothing to write a paper about")
    return max(moments)


def named(run_set: RunSet, sources: Sources) -> dict[str, str]:
    """Single values by name."""
    runs = run_set.runs
    first = runs[0].manifest
    machine, dataset = first.machine, first.dataset
    windows = sorted({run.manifest.window_s for run in runs})
    counts = sources.claims["counts"]
    batches = sorted({series.batch_size for series in run_set.series if series.mode == "batch"})
    made = {
        "version": __version__,
        "date": f"{newest(run_set):%Y-%m-%d}",
        "protocol": listed(list(dict.fromkeys(series.protocol for series in run_set.series))),
        "stack": listed(list(run_set.stacks)),
        "window": _seconds(windows),
        "runs-a-series": f"{max(len(repeat.runs) for repeat in run_set.repeats)}",
        "hot-runs": f"{max(len(repeat.hot_runs) for repeat in run_set.repeats)}",
        "series": f"{len(run_set.repeats):,}",
        "series-complete": f"{sum(repeat.status == 'complete' for repeat in run_set.repeats):,}",
        "systems": f"{len({series.system for series in run_set.series if not series.is_harness}):,}",
        "runs": f"{len(runs):,}",
        "events": f"{sum(run.manifest.events for run in runs):,}",
        "operations": f"{sum(run.manifest.operations for run in runs):,}",
        "batch-size": listed([f"{size:,}" for size in batches]) or "none",
        "seed": str(_config(run_set, "seed")),
        "encoding": str(_config(run_set, "encoding")),
        "compression": str(_config(run_set, "compression")),
        "threads": listed(sorted({f"{series.threads:,}" for series in run_set.select()})) or "1",
        "producer": listed(sorted({run.manifest.producer_mode for run in runs})),
        "dataset": dataset.name,
        "dataset-rows": f"{dataset.rows:,}",
        "dataset-digest": dataset.sha256,
        "dataset-source": "the synthetic replica" if dataset.synthetic else f"source: {dataset.source}",
        "dataset-columns": f"{len(dataset.columns):,}",
        "thesis-rows": f"{MONTH_TRIPS:,}",
        "machines": f"{len(run_set.machines):,}",
        "os": machine.os,
        "kernel": machine.kernel,
        "cpu": machine.cpu_model,
        "cores": f"{machine.cores:,}",
        "memory": f"{machine.memory_bytes / 2**30:.1f} GiB",
        "disk": " ".join(filter(None, [machine.disk_model or machine.disk_device, machine.file_system])) or "unknown",
        "virtualised": machine.virtualised or "not virtualised",
        "cold-below": f"{100 * COLD_SHARE:g} %",
        "hot-above": f"{100 * HOT_SHARE:g} %",
        "confidence": "95 %",
        "replicates": f"{REPLICATES:,}",
        "claims": f"{sum(counts.values()):,}",
    }
    made |= {f"claims-{verdict.replace(' ', '-')}": f"{count:,}" for verdict, count in counts.items()}
    for series in run_set.series:
        if series.stack == run_set.stack:
            made |= {f"version-{name}": version for run in series.runs for name, version in run.manifest.versions}
    made |= {f"thesis-{name}": value for name, value in published.HARDWARE.items()}
    return made


def _seconds(windows: list[float]) -> str:
    shortest, longest = f"{windows[0]:.3g}", f"{windows[-1]:.3g}"
    return f"{shortest} s" if shortest == longest else f"{shortest} to {longest} s"


def _config(run_set: RunSet, key: str) -> object:
    return run_set.config.text(key, "default") if key != "seed" else run_set.config.integer(key, 0)


def _results(measures: Measures, mode: str) -> dict[str, Any]:
    """The table of one mode in the body of the paper: hot runs, with the thesis's median beside ours."""
    heads = ["System", "Median write", "Write p99", "Harness throughput", "Growth per 1,000 commits", "Thesis's median"]
    rows: list[dict[str, Any]] = []
    for series in measures.run_set.select(mode=mode, harness=False):
        theirs = published.WRITE_MS[mode].get(series.system)
        thesis = f"{theirs.median:,g} ms" if theirs else "–"
        if not series.hot_runs:
            rows.append(
                {"system": series.title, "missing": series.missing(), "columns": len(heads) - 2, "thesis": thesis}
            )
            continue
        cells = [
            _estimate(measures, Metric.WRITE_MEDIAN, series),
            _estimate(measures, Metric.WRITE_P99, series),
            _estimate(measures, Metric.HARNESS_RATE, series),
            _growth(measures, series),
        ]
        rows.append({"system": series.title, "cells": cells, "thesis": thesis})
    return {"heads": heads, "rows": rows}


def _estimate(measures: Measures, metric: Metric, series: Series) -> str:
    try:
        return estimate_text(measures.hot(metric, series).estimate(UNITS[metric]))
    except Absent as absent:
        return f"– ({brief(str(absent))})"


def _growth(measures: Measures, series: Series) -> str:
    try:
        return estimate_text(measures.hot(Metric.RELATIVE_GROWTH, series).scaled(100).estimate("%"))
    except Absent as absent:
        return f"– ({brief(str(absent))})"


def _harness(bench: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """What the harness costs by itself, if it was benched in this workspace."""
    rows = []
    for row in bench["rows"] if bench else ():
        stages = row["stages_us"]
        rows.append(
            {
                "name": str(row["name"]),
                "rate": number(row["events_per_s"], 3),
                "range": f"{number(row['least'], 3)} to {number(row['most'], 3)}",
                "poll": number(stages["poll"], 2),
                "decode": number(stages["decode"], 2),
                "assemble": number(stages["assemble"], 2),
                "bookkeeping": number(stages["bookkeeping"], 2),
            }
        )
    return rows


def _one_a_system(run_set: RunSet) -> list[Series]:
    found: dict[str, Series] = {}
    for series in run_set.select(harness=False):
        if series.runs:
            found.setdefault(series.system, series)
    return list(found.values())


def _system(series: Series) -> dict[str, str]:
    system = series.runs[0].manifest.system
    made = {"title": series.title, "format": system.format, "client": system.client, "catalog": system.catalog}
    made |= {"durability": system.durability, "level": system.durability_level}
    return made | {"notes": "; ".join(system.notes)}


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table with its cells as texts; columns that are empty throughout are left out, reasons go into notes."""
    reasons: list[str] = []

    def text(cell: Any, unit: str) -> str:
        parsed = _cell(cell)
        if not isinstance(parsed, Missing):
            return shown(parsed, unit, 3)
        reason = brief(parsed.reason)
        if reason not in reasons:
            reasons.append(reason)
        return f"– ({reasons.index(reason) + 1})"

    units = [column["unit"] for column in table["columns"]]
    rows = [[text(*pair) for pair in zip(row, units, strict=True)] for row in table["rows"]]
    kept = [place for place in range(len(table["columns"])) if not rows or any(row[place] for row in rows)]
    heads = [table["columns"][place] for place in kept]
    return {
        "name": table["name"],
        "title": table["title"],
        "heads": [f"{head['title']} ({head['unit']})" if head["unit"] else head["title"] for head in heads],
        "numeric": [all(_is_number(row[place]) for row in table["rows"]) for place in kept],
        "rows": [[row[place] for place in kept] for row in rows],
        "notes": [*table["notes"], *(f"({place}) {reason}." for place, reason in enumerate(reasons, 1))],
    }


def brief(reason: str) -> str:
    """A reason without what differs from run to run, so that a table gives it once."""
    return reason.partition(", the run has")[0]


def _is_number(cell: object) -> bool:
    return cell is None or isinstance(cell, int | float | dict)


def _cell(cell: Any) -> Cell:
    if isinstance(cell, dict) and "missing" in cell:
        return Missing(cell["missing"])
    if isinstance(cell, dict):
        if cell["value"] is None:
            return None
        return Estimate(cell["value"], cell["low"], cell["high"], cell["n"], cell["unit"], cell["runs"])
    return cell  # type: ignore[no-any-return]


def _figure(figure: Mapping[str, Any], results: Path) -> dict[str, Any]:
    name = figure["name"]
    path = f"{name}.svg" if f"{name}.svg" in figure["files"] else None
    wide = False
    if path is not None:
        width = re.search(r'<svg[^>]* width="([0-9.]+)pt"', (results / "figures" / path).read_text()[:4000])
        wide = width is not None and float(width[1]) > WIDE_POINTS
    about = {"title": figure["title"], "reason": figure["reason"], "notes": list(figure["notes"])}
    return {"name": name, "file": path, "wide": wide, **about}
