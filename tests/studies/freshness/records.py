"""Record of a window for tests, from which they replace fields."""

from __future__ import annotations

from tidemark.studies.freshness.record import FreshnessRecord

RECORD = FreshnessRecord(
    encoding="json", commits=50, cpu_s=(), kills=(), gave_up=False, looks=1, failed_looks=0, producer_cpu_s=0.0,
    latest_s=0.0, exactly_once="",
)  # fmt: skip
