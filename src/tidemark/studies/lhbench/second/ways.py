"""How a second engine, DuckDB, comes to the tables that the first one made, by the reader that those are known by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tidemark.studies.lhbench.judge.readers import DELTA, DUCKLAKE, HUDI, ICEBERG, ICEBERG_SCAN, PARQUET

# DuckLake has no table of the first engine's: DuckDB loads one of its own, of the same files, where there is no format.
WAYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {PARQUET: (PARQUET, DUCKLAKE), DELTA: (DELTA,), ICEBERG: (ICEBERG_SCAN,)}
)
NONE = {HUDI: "DuckDB has no reader of Hudi's tables"}
CALLED = {PARQUET: "read_parquet", DELTA: "delta_scan", ICEBERG_SCAN: "iceberg_scan", DUCKLAKE: "DuckLake"}
NOT_ASKED = "these runs had no second engine"
