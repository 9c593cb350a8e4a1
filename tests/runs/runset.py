"""Run sets with known values: writes the files that measuring would leave, from a model of each system.

A system's write time is `median_ms` times the run's factor times a lognormal, autocorrelated noise of median 1,
plus `slope_ms` for every 1,000 operations before it. Every property that the analysis is to find is a model field.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.runs.models import (
    DELTA,
    DELTA_DUCKDB,
    DUCKLAKE,
    ICEBERG_DUCKDB,
    INLINED,
    NULL,
    PYICEBERG,
    STANDARD,
    Model,
    batched,
)

__all__ = [
    "DELTA",
    "DELTA_DUCKDB",
    "DUCKLAKE",
    "ICEBERG_DUCKDB",
    "INLINED",
    "NULL",
    "PYICEBERG",
    "STANDARD",
    "Model",
    "batched",
    "write_run_set",
]

GROUPS = ("harness", "kafka", "postgres", "catalog", "producer")
ROW_BYTES = 160
SYNC_BYTES = 5_000_000  # written by the sync at the end of a window
REST_BYTES = 200_000
HARNESS_VERSION = "0.1.0"
NEW_IN_2 = ("tidemark", "opening", "first_write_ns", "interference", "warm_up")


def write_times_ms(model: Model, factor: float, window_s: float, rng: np.random.Generator) -> np.ndarray:
    """Return the write times of a run in ms, at least as many as fit into the window."""
    most = int(window_s * 1000 / (model.median_ms * factor) * 1.5) + 50
    phi = model.autocorrelation
    noise = rng.normal(size=most) * math.sqrt(1 - phi**2)
    for place in range(1, most):
        noise[place] += phi * noise[place - 1]
    times = model.median_ms * factor * np.exp(model.sigma * noise) + model.slope_ms * np.arange(most) / 1000
    return times + times * rng.uniform(2, 15, most) * (rng.random(most) < model.outliers)


def run_tables(
    model: Model, factor: float, window_s: float, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], int]:
    """Return the columns of operations.parquet, those of machine.parquet, and the length of the window in ns."""
    write = (write_times_ms(model, factor, window_s, rng) * 1e6).astype(np.int64)
    poll = (model.poll_ms * np.exp(0.3 * rng.normal(size=len(write))) * 1e6).astype(np.int64)
    decode = np.full(len(write), 6_000 * model.batch_size, np.int64)
    assemble = np.full(len(write), 20_000, np.int64)
    cycle = poll + decode + assemble + write + 2_000
    starts = np.concatenate([[0], np.cumsum(cycle)])
    count = int(np.searchsorted(starts, window_s * 1e9))
    count = max(min(count, len(write)), 1)
    operations = {
        "first_id": np.arange(count, dtype=np.int64) * model.batch_size,
        "rows": np.full(count, model.batch_size, np.int32),
        "poll_ns": poll[:count],
        "decode_ns": decode[:count],
        "assemble_ns": assemble[:count],
        "write_ns": write[:count],
        "start_ns": starts[:count].astype(np.int64),
    }
    elapsed = int(starts[count])
    seconds = np.arange(1, int(elapsed / 1e9) + 1, dtype=np.float64)
    busy = 100 / (1 + np.exp(-rng.normal(0, 0.3, len(seconds))))
    machine: dict[str, np.ndarray] = {
        "second": np.append(seconds, elapsed / 1e9 + 0.4),
        "cpu_percent": np.append(busy, 20.0),
        "disk_written_bytes": np.append(
            (model.disk_mb_per_s * 1e6 * np.exp(0.2 * rng.normal(size=len(seconds)))).astype(np.int64), 9_000_000_000
        ),
    }
    for group in GROUPS:
        machine[f"cpu_{group}_percent"] = np.append(rng.uniform(5, 40, len(seconds)), 5.0)
        if group in model.cores:
            machine[f"cpu_{group}_percent"][:] = 100 * model.cores[group]
        largest = round(1e6 * model.memory_mb.get(group, 60.0))
        machine[f"memory_{group}_bytes"] = np.full(len(seconds) + 1, largest // 2)
        machine[f"memory_{group}_bytes"][len(seconds) // 2] = largest
    machine["foreign_percent"] = np.full(len(machine["second"]), 100 * model.foreign_cores)
    machine["steal_percent"] = np.full(len(machine["second"]), 0.5)
    return operations, machine, elapsed


def manifest(
    model: Model,
    identity: str,
    repeat: int,
    number: int,
    operations: Mapping[str, np.ndarray],
    machine: Mapping[str, np.ndarray],
    elapsed: int,
    synthetic: bool,
    position: int,
    protocol: str,
) -> dict[str, Any]:
    """Return run.json, in version 2, of a run of the series `identity`."""
    count, events = len(operations["rows"]), int(operations["rows"].sum())
    parts = {name: int(operations[f"{name}_ns"].sum()) for name in ("poll", "decode", "assemble", "write")}
    parts |= {"bookkeeping": count * 2_000, "wait_for_producer": 0}
    residency = 500_000 if number == 0 else 99_000_000
    opened = {"cold": 400_000, "lukewarm": 45_000_000}.get(model.opening_verdict if number == 0 else "hot", 99_000_000)
    disturbed = [model.disturbed[number]] if number in model.disturbed else []
    # The last second is not part of the window.
    window_bytes = int(machine["disk_written_bytes"][:-1].sum()) + (model.stream_bytes or 0)
    flush = None
    if model.flush_s is not None:
        flush = {"seconds": model.flush_s[number], "rows": events, "data_files": 1, "data_bytes": events * 60}
    merge = None
    if model.merge_s is not None and number == len(model.factors) - 1:
        merge = {"seconds": model.merge_s, "files_before": count, "files_after": 1}
        merge |= {"bytes_before": count * 3_000, "bytes_after": 3_000}
    files = {
        "data_files": 0 if flush else count,
        "data_bytes": 0 if flush else events * 80 + count * 3_000,
        "metadata_files": 3 * count if model.format == "Iceberg" else 0,
        "metadata_bytes": 9_000 * count if model.format == "Iceberg" else 0,
        "catalog_bytes": model.catalog_bytes,
        "reason": None if model.catalog_bytes is not None else "the catalog is on another machine",
    }
    return {
        "schema_version": 2,
        "tidemark": {"version": HARNESS_VERSION, "format": 2, "harness": model.harness},
        "series": {
            "id": identity,
            "workload": "streams",
            "system": model.system,
            "mode": model.mode,
            "batch_size": model.batch_size,
            "stack": model.stack,
            "protocol": protocol,
            "position": position,
            "repeat": repeat,
            "study": "streams",
            "sweep": model.sweep,
            "threads": model.threads,
            "cpus": None,
            "encoding": "record",
            "overlap": False,
            "read_ahead": model.read_ahead,
        },
        "run": number,
        "cold": number == 0,
        "started_at": f"2026-01-02T03:{4 + number:02}:05+00:00",
        "window_s": elapsed / 1e9,
        "elapsed_ns": elapsed,
        "operations": count,
        "events": events,
        "system": {
            "name": model.system,
            "base": model.like or model.system,
            "title": model.title,
            "format": model.format,
            "client": model.client,
            "catalog": model.catalog,
            "in_thesis": True,
            "notes": list(model.notes),
            "options": {},
            "settings": {"threads": str(model.threads), **model.settings},
            "capabilities": list(model.capabilities),
            "durability": "the server's log is flushed before the commit returns",
            "durability_source": "model",
            "durability_level": model.durability_level,
            "type_mappings": [
                {"column": "tpep_pickup_datetime", "given": "timestamp[ns]", "stored": "timestamp[us]", "reason": "x"}
            ]
            if model.format == "Iceberg"
            else [],
        },
        "versions": dict(model.versions),
        "lock_digests": {"envs/thesis.lock": "0" * 64},
        "dataset": {
            "source": "synthetic" if synthetic else "path",
            "synthetic": synthetic,
            "name": "yellow_tripdata_2025-11",
            "kind": "yellow",
            "rows": 4_181_444,
            "sha256": "ab" * 32,
            "columns": [{"name": "id", "type": "int64"}],
            "notes": [],
            "raw": [{"name": "one.parquet", "rows": 4_181_444, "bytes": 71_134_255, "sha256": "ab" * 32}],
            "first_id": 0,
            "last_id": 4_181_443,
            "schema_version": 1,
        },
        "machine": {
            "os": "Debian GNU/Linux 12",
            "kernel": "6.1",
            "cpu_model": "Model CPU",
            "cores": 2,
            "threads": 4,
            "memory_bytes": 16 * 2**30,
            "disk_device": "vda",
            "disk_model": None,
            "disk_rotational": None,
            "file_system": "ext4",
            "free_bytes": 74_560_786_432 - 1_000_000 * position,
            "virtualised": "virtual machine",
            "root": True,
            "identity": model.machine,
        },
        "cold_proof": {
            "method": "evict",
            "boot_id": "11111111-2222-3333-4444-555555555555",
            "uptime_s": 1000.0 + 20 * position + number,
            "cpu_mhz": 2596.138,
            "temperature_c": None,
            "residency": {"kafka program": {"bytes": 100_000_000, "resident_bytes": residency}},
            "verdict": model.cold_verdict if number == 0 else "hot",
            "reason": f"{residency / 1e6:.2f} % of 100,000,000 bytes in the page cache",
            "apart": [],
        },
        "opening": {
            "method": "evict",
            "boot_id": "11111111-2222-3333-4444-555555555555",
            "uptime_s": 1012.0 + 20 * position + number,
            "cpu_mhz": 2596.138,
            "temperature_c": None,
            "residency": {
                "kafka program": {"bytes": 100_000_000, "resident_bytes": opened},
                "client libraries": {"bytes": 100_000_000, "resident_bytes": opened},
                "stream": {"bytes": 40_000_000, "resident_bytes": 40_000_000},
            },
            "verdict": model.opening_verdict if number == 0 else "hot",
            "reason": f"{opened / 1e6:.2f} % of 200,000,000 bytes in the page cache",
            "apart": ["stream"],
        },
        "first_write_ns": int(model.median_ms * 1e6 * (model.first_write if number == 0 else 1.0)),
        "interference": {
            "foreign_cores": model.foreign_cores,
            "kernel_cores": 0.02,
            "steal_cores": 0.005,
            "suspended_seconds": 0.0,
            "clock_step_seconds": 0.0,
            "disturbed": disturbed,
            "foreign_bytes": 40_000,
        },
        "warm_up": None
        if model.warm_up_s is None or number == 0
        else {
            "stretch_s": 1.0,
            "within": 0.05,
            "medians_ms": [model.median_ms] * 4,
            "seconds": model.warm_up_s,
            "steady": model.steady,
        },
        "time_budget_ns": {**parts, "rest": elapsed - sum(parts.values())},
        "marks": disturbed,
        "producer": {
            "mode": "ahead",
            "events": events * 2,
            "seconds": 1.0,
            "cpu_s": 0.5,
            "topped_up": 0,
            "laps": 0.1,
            "stretches": model.stretches,
            "topic_bytes": events * 700,
        },
        "sampler_cpu_s": 0.02,
        "disk": {
            "device": "vda",
            "reason": None,
            "rest_bytes": REST_BYTES,
            "left_bytes": model.left_bytes,
            "settle_seconds": 0.4,
            "window_bytes": window_bytes,
            "sync_bytes": SYNC_BYTES,
            "sync_seconds": 0.25,
            "stream_bytes": model.stream_bytes,
            "written_by": {"kafka": model.stream_bytes, "postgres": 700_000, "harness": 300_000, "producer": 0},
        },
        "oracle": {
            "verdict": True,
            "applicable": model.format != "none",
            "expected": events,
            "found": events,
            "missing": 0,
            "duplicated": 0,
            "unexpected": 0,
            "reader": "a reader of its own",
            "seconds": 0.2,
            "commits": None,
        },
        "flush": flush,
        "merge": merge,
        "footprint": files,
        "footprint_after_flush": {**files, "data_files": 1, "data_bytes": events * 60} if flush else None,
        "logical_bytes": events * ROW_BYTES,
        "history": "cold start" if number == 0 else f"run {number - 1}",
        "found": {},
        "config": dict(model.config),
    }


def as_version_1(
    content: dict[str, Any], machine: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return run.json and machine.parquet in version 1: disk bytes include the stream's log, later fields are cut."""
    old = {key: value for key, value in content.items() if key not in NEW_IN_2} | {"schema_version": 1}
    gone = {
        "series": ("read_ahead", "cpus", "workload"),
        "machine": ("identity",),
        "system": ("durability_level",),
        "cold_proof": ("apart",),
        "producer": ("stretches", "topic_bytes"),
        "oracle": ("commits",),
    }
    for part, keys in gone.items():
        old[part] = {key: value for key, value in old[part].items() if key not in keys}
    old["series"]["study"] = old["series"].pop("sweep")
    disk = content["disk"]
    late = disk["sync_bytes"] + (disk["stream_bytes"] or 0)
    old["disk"] = {"device": disk["device"], "reason": disk["reason"], "written_after_window_bytes": late}
    late_columns = ("foreign_percent", "steal_percent", *(name for name in machine if name.startswith("memory_")))
    return old, {name: values for name, values in machine.items() if name not in late_columns}


def attempts(model: Model) -> dict[str, Any]:
    """Return the parts of outcome.json on a series' attempts and on its runs that were measured again."""
    ends = [*model.failures, (model.status, model.reason)]
    tried = [
        {
            "number": place,
            "started_at": f"2026-01-02T0{place}:00:00+00:00",
            "ended_at": None if status == "killed" else f"2026-01-02T0{place}:05:00+00:00",
            "status": status,
            "reason": reason,
            "exit_code": 0 if status in ("complete", "killed") else 7,  # unknown for a killed one
        }
        for place, (status, reason) in enumerate(ends, 1)
        if status != "not-run"
    ]
    again = [
        {"run": number, "attempt": 1, "directory": f"disturbed/run-{number}-1", "reasons": [reason]}
        for number, reason in model.measured_again.items()
    ]
    return {"attempts": tried, "disturbed": again}


def write_run_set(
    root: Path,
    models: Sequence[Model] = STANDARD,
    *,
    window_s: float = 20.0,
    seed: int = 1,
    synthetic: bool = True,
    protocol: str = "quick",
    config: Mapping[str, Any] | None = None,
    version: int = 2,
    of_round: int | None = None,
) -> Path:
    """Write `models` below `root`/results and return that folder; `config` holds the relevant part of the plan's.

    `version` is that of the run files. With `of_round` the results are those of a round: all repeats are measured, but
    the plan has only the series up to that round.
    """
    results = root / "results"
    plan = []
    rounds = range(max(len(model.repeats) for model in models))
    planned = [(repeat, model) for repeat in rounds for model in models if repeat < len(model.repeats)]
    for position, (repeat, model) in enumerate(planned):
        identity = model.id if repeat == 0 else f"{model.id}-{repeat + 1}"
        relative = f"results/runs/{identity}"
        folder = root / relative
        folder.mkdir(parents=True)
        plan.append(
            {
                "id": identity,
                "system": model.system,
                "title": model.title,
                "base": model.like or model.system,
                **({"workload": "streams"} if version > 1 else {}),
                "mode": model.mode,
                "batch_size": model.batch_size,
                "protocol": protocol,
                "stack": model.stack,
                **({"study": "streams", "workload": "streams"} if version > 1 else {}),
                "sweep" if version > 1 else "study": model.sweep,
                "threads": model.threads,
                "position": position,
                "repeat": repeat + 1,
                "repeats": model.id,
                "directory": relative,
                **({"read_ahead": model.read_ahead, "cpus": None, "settings": {}} if version > 1 else {}),
            }
        )
        written = [(number, f"run-{number}", 1.0) for number in range(len(model.factors))]
        written += [(number, f"disturbed/run-{number}-1", 1.5) for number in model.measured_again]
        for number, place, slower in written:
            name = f"{seed} {identity} {number}{'' if slower == 1.0 else ' disturbed'}".encode()
            rng = np.random.default_rng(int.from_bytes(hashlib.sha256(name).digest()[:8]))
            factor = model.factors[number] * model.repeats[repeat] * slower
            operations, machine, elapsed = run_tables(model, factor, window_s, rng)
            target = folder / place
            target.mkdir(parents=True)
            content = manifest(
                model, identity, repeat + 1, number, operations, machine, elapsed, synthetic, position, protocol
            )
            if slower != 1.0:
                reasons = [model.measured_again[number]]
                content["interference"]["disturbed"] = reasons
                content["marks"] = reasons
            if version == 1:
                content, machine = as_version_1(content, machine)
            pq.write_table(pa.table(operations), target / "operations.parquet")
            pq.write_table(pa.table(machine), target / "machine.parquet")
            (target / "run.json").write_text(json.dumps(content, indent=1))
        outcome = {
            "status": model.status,
            "reason": model.reason,
            "exit_code": model.exit_code,
            "runs": list(range(len(model.factors))),
        }
        if version > 1:
            outcome |= attempts(model)
        (folder / "outcome.json").write_text(json.dumps(outcome))
    whole = {"schema_version": 1, "config": {"protocol": protocol, "seed": seed, **(config or {})}, "series": plan}
    if version > 1 and models:
        whole["tidemark"] = {"version": HARNESS_VERSION, "format": 2, "harness": models[-1].harness}
        whole["machine"] = {"identity": models[-1].machine}
        whole["notes"] = []
    if of_round is not None:
        whole["series"] = [each for each in plan if each["repeat"] <= of_round]
        whole["round"] = {"number": of_round, "of": len(rounds)}
    (results / "plan.json").write_text(json.dumps(whole, indent=1))
    return results
