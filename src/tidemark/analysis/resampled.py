"""Storage of each run's resampled quantities next to the run files, for tables, figures, claims, paper and report."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidemark import code
from tidemark.analysis.metrics import MetricSet
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.paths import write_atomically
from tidemark.runs.run import RUN_FILES, Run
from tidemark.runs.runset import RunSet

type Resampled = Mapping[tuple[str, str], BootstrapEstimate]  # by quantity name and run label
NAME = "resampled.arrow"
# Code that a run's numbers depend on, in addition to the code of its quantities: stored results are discarded when
# it changes.
METHODS = ("analysis", "runs")
SCHEMA = pa.schema(
    [
        ("stamp", pa.string()),
        ("label", pa.string()),
        ("metric", pa.string()),
        ("centre", pa.float64()),
        ("draws", pa.list_(pa.float64())),
        ("n", pa.int64()),
        ("runs", pa.int64()),
        ("degrees", pa.float64()),
        ("log", pa.bool_()),
        ("lowest", pa.float64()),
        ("highest", pa.float64()),
        ("exact", pa.bool_()),
    ]
)


def write(run_set: RunSet, quantities: Mapping[str, MetricSet], found: Resampled) -> Path:
    """Write `found`, computed from the `quantities` of each study, to the folder of `run_set`, at full precision."""
    runs = {run.label: _stamp(run, quantities[run.manifest.series.study].code) for run in run_set.runs}
    columns: dict[str, list[object]] = {name: [] for name in SCHEMA.names}
    for (name, label), each in found.items():
        lowest, highest = each.bounds or (math.nan, math.nan)
        values = (runs[label], label, name, each.centre, each.draws, each.n, each.runs, each.degrees, each.log)
        for column, value in zip(SCHEMA.names, (*values, lowest, highest, each.is_exact), strict=True):
            columns[column].append(value)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        writer.write_table(pa.table(columns, SCHEMA))
    path = run_set.results / NAME
    write_atomically(path, sink.getvalue().to_pybytes())
    return path


def read(run_set: RunSet, quantities: MetricSet) -> dict[tuple[str, str], BootstrapEstimate]:
    """Return the stored results for the runs of `run_set` and the current code of `quantities`; empty if none."""
    try:
        table = pa.ipc.open_file((run_set.results / NAME).read_bytes()).read_all()
    except (OSError, pa.ArrowInvalid):
        return {}
    if table.schema != SCHEMA:
        return {}
    stamps = {run.label: _stamp(run, quantities.code) for run in run_set.runs}
    columns = {name: table.column(name).to_pylist() for name in SCHEMA.names if name != "draws"}
    draws = table.column("draws").combine_chunks()
    found: dict[tuple[str, str], BootstrapEstimate] = {}
    for place, (stamp, label) in enumerate(zip(columns["stamp"], columns["label"], strict=True)):
        if stamps.get(label) != stamp:
            continue
        values = draws[place].values
        lowest, highest = columns["lowest"][place], columns["highest"][place]
        found[columns["metric"][place], label] = BootstrapEstimate(
            centre=columns["centre"][place],
            draws=None if values is None else np.array(values),
            n=columns["n"][place],
            runs=columns["runs"][place],
            degrees=columns["degrees"][place],
            log=columns["log"][place],
            bounds=None if math.isnan(lowest) else (lowest, highest),
            is_exact=columns["exact"][place],
        )
    return found


def _stamp(run: Run, quantities: tuple[str, ...]) -> str:
    """Return a digest that changes with the run's files, the code that computes its numbers, and NumPy."""
    seen = [_methods(quantities)]
    for name in RUN_FILES:
        state = (run.directory / name).stat()
        seen.append(f"{name} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()


@cache
def _methods(quantities: tuple[str, ...]) -> str:
    return f"NumPy {np.__version__}, {code.digest(code.files(*METHODS, *quantities))}"
