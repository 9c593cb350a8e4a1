"""Storage of each run's resampled quantities next to the run files, for tables, figures, claims, paper and report."""

from __future__ import annotations

import hashlib
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
from tidemark.runs.serde import picked, values_of

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
        ("bounds", pa.list_(pa.float64())),
        ("is_exact", pa.bool_()),
    ]
)


def write(run_set: RunSet, quantities: Mapping[str, MetricSet], found: Resampled) -> Path:
    """Write `found`, computed from the `quantities` of each study, to the folder of `run_set`, at full precision."""
    runs = {run.label: _stamp(run, quantities[run.manifest.series.study].code) for run in run_set.runs}
    rows = [
        {"stamp": runs[label], "label": label, "metric": name, **values_of(each)}
        for (name, label), each in found.items()
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
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
    found: dict[tuple[str, str], BootstrapEstimate] = {}
    for row, draws in zip(table.drop_columns(["draws"]).to_pylist(), table.column("draws"), strict=True):
        if stamps.get(row["label"]) == row["stamp"]:
            row["draws"] = None if draws.values is None else np.array(draws.values)
            row["bounds"] = row["bounds"] and tuple(row["bounds"])
            found[row["metric"], row["label"]] = picked(BootstrapEstimate, row)
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
