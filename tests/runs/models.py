"""Models of systems in a run set; every property that the analysis is to find is a field."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Model:
    """Model of one series. `factors` are the runs' factors on the write time; the first run is cold."""

    system: str
    title: str
    median_ms: float
    mode: str = "single"
    batch_size: int = 1
    sigma: float = 0.08
    autocorrelation: float = 0.4
    slope_ms: float = 0.0
    factors: tuple[float, ...] = (1.0, 1.0, 1.0)
    repeats: tuple[float, ...] = (1.0,)  # a further factor for each repeat of the series
    format: str = "DuckLake"
    client: str = "DuckDB"
    catalog: str = "PostgreSQL"
    poll_ms: float = 0.12
    disk_mb_per_s: float = 1.5
    flush_s: tuple[float, ...] | None = None
    merge_s: float | None = None
    outliers: float = 0.002
    sweep: str = "main"
    threads: int = 1
    config: tuple[tuple[str, Any], ...] = ()  # configuration of its series, as far as a test needs it
    stack: str = "thesis"
    like: str = ""  # the system that it is another name of
    status: str = "complete"
    reason: str | None = None
    exit_code: int = 0
    notes: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ("read-back",)
    catalog_bytes: int | None = 400_000
    cold_verdict: str = "cold"  # of run 0, before the servers start
    opening_verdict: str = "lukewarm"  # of run 0, when its window opens
    first_write: float = 3.0  # duration of run 0's first write in median writes; that of a hot run is 1
    stream_bytes: int | None = 200_000  # the part of the disk's bytes that broker and producer wrote
    left_bytes: int = 300_000  # dirty when the window opened; when idle there were 200,000
    foreign_cores: float = 0.03
    disturbed: Mapping[int, str] = field(default_factory=dict)  # disturbed runs that were kept, with reasons
    measured_again: Mapping[int, str] = field(default_factory=dict)  # runs that were measured again, with reasons
    failures: tuple[tuple[str, str], ...] = ()  # attempts before the one that counts: status and reason
    read_ahead: int = 1
    durability_level: str = "default"
    warm_up_s: float | None = None  # before each hot run
    steady: bool = True
    stretches: int = 1
    cores: Mapping[str, float] = field(default_factory=dict)  # processors that a process group used all the time
    memory_mb: Mapping[str, float] = field(default_factory=dict)  # peak of a process group; 60 unless given
    harness: str = "a" * 64
    machine: str = "0123456789abcdef"
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=lambda: {"duckdb": "1.4.4", "PyArrow": "22.0.0"})

    @property
    def label(self) -> str:
        return "single" if self.mode == "single" else f"batch-{self.batch_size}"

    @property
    def id(self) -> str:
        decisive = f"{self.system} {self.label} {self.sweep} {self.threads} {self.stack}"
        decisive += f" {self.config}" if self.config else ""
        return f"{self.system}/{self.label}/{hashlib.sha256(decisive.encode()).hexdigest()[:12]}"


def batched(model: Model, **changes: Any) -> Model:
    """Return `model` writing batches of 1,000, with `changes`."""
    return replace(model, mode="batch", batch_size=1000, poll_ms=model.poll_ms * 3, **changes)


DUCKLAKE = Model("ducklake", "DuckLake", 10.0, merge_s=1.3, capabilities=("read-back", "merge", "threads"))
INLINED = Model(
    "ducklake-inlined",
    "DuckLake + inlining",
    8.0,
    catalog="DuckDB file",
    flush_s=(0.21, 0.20, 0.19),
    capabilities=("read-back", "flush", "inlining"),
)
PYICEBERG = Model(
    "iceberg-pyiceberg",
    "Iceberg (PyIceberg)",
    50.0,
    sigma=0.05,
    slope_ms=60.0,
    format="Iceberg",
    client="PyIceberg",
    catalog="Iceberg REST",
    notes=("reference REST catalog in place of Polaris",),
)
ICEBERG_DUCKDB = Model(
    "iceberg-duckdb", "Iceberg (DuckDB)", 40.0, slope_ms=10.0, format="Iceberg", catalog="Iceberg REST"
)
NULL = Model("null", "Null", 0.4, format="none", client="none", catalog="none", capabilities=())
DELTA = Model(
    "delta-rs",
    "Delta Lake (delta-rs)",
    12.0,
    format="Delta Lake",
    client="delta-rs",
    catalog="none",
    status="failed",
    reason="delta-rs refused the write: no such column 'Airport_fee'",
    exit_code=7,
    factors=(),
)
DELTA_DUCKDB = replace(
    DELTA,
    system="delta-duckdb",
    title="Delta Lake (DuckDB)",
    client="DuckDB",
    status="not-run",
    reason="the delta extension is not installed",
    exit_code=0,
)
STANDARD: tuple[Model, ...] = (
    DUCKLAKE,
    INLINED,
    PYICEBERG,
    ICEBERG_DUCKDB,
    NULL,
    DELTA,
    DELTA_DUCKDB,
    batched(DUCKLAKE, median_ms=30.0),
    batched(INLINED, median_ms=60.0, flush_s=(2.2, 2.0, 1.9)),
    batched(PYICEBERG, median_ms=90.0, slope_ms=80.0),
    batched(ICEBERG_DUCKDB, median_ms=50.0, slope_ms=0.0),
    batched(NULL, median_ms=0.3),
    batched(DELTA),
    batched(DELTA_DUCKDB),
)
