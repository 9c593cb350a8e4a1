"""A run set of two studies whose quantities share names: streams, and writes and reads of complete tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.runs.runset import DELTA, Model, write_run_set

from tidemark.studies.deltars.samples import READ, WRITE, Done

STUDY, MODE = "deltars", "supplier_sf1-2"
TABLES = replace(DELTA, system="delta-rs-local", title="delta-rs", factors=(1.0, 1.0))
FOUND = {
    "data": {"name": "supplier", "file_bytes": 50_000, "sha256": "0" * 64, "rows": 1_000},
    "placed": {},
    "departures": [],
    "client": {},
}
OF_TABLES = {"study": STUDY, "workload": "tables", "mode": MODE, "batch_size": 1}


def add_tables(results: Path, seconds: float = 0.2, model: Model = TABLES) -> Path:
    """Add a series of the study `deltars` to `results`, with writes that take `seconds`, and return `results`."""
    root = results.parent
    kept = json.loads((results / "plan.json").read_text())
    write_run_set(root, [model], window_s=2.0)
    plan = json.loads((results / "plan.json").read_text())
    for item in plan["series"]:
        item.update(OF_TABLES)
        for path in sorted((root / item["directory"]).rglob("run.json")):
            run = json.loads(path.read_text())
            run["series"].update(OF_TABLES)
            run["found"] = FOUND
            run.update(operations=2 * len(STEPS), events=2_000 * len(STEPS), time_budget_ns={"rest": run["elapsed_ns"]})
            path.write_text(json.dumps(run))
            pq.write_table(pa.Table.from_pylist(_operations(seconds)), path.with_name("operations.parquet"))
    plan["series"] = [*kept["series"], *plan["series"]]
    plan["config"] = {**kept["config"], STUDY: {}}
    (results / "plan.json").write_text(json.dumps(plan))
    return results


STEPS: Sequence[float] = (1.3, 1.0, 1.02, 0.98)  # duration of each repetition, as a factor


def _operations(seconds: float) -> list[dict[str, Any]]:
    """Return a write and a read of 1,000 rows for each repetition."""
    found, at = [], 0
    for number, factor in enumerate(STEPS):
        for call, share in ((WRITE, 1.0), (READ, 0.5)):
            elapsed = int(1e9 * seconds * factor * share)
            found.append(asdict(Done(call, number, at, elapsed, 0, elapsed // 2, 10**6, 1_000, 50_000)))
            at += elapsed
    return found
