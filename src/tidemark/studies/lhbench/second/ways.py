"""Ways in which a second engine, DuckDB, reads the tables of the first one, by the name of the tables' reader."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tidemark.studies.lhbench.judge.readers import DELTA, DUCKLAKE, HUDI, ICEBERG, ICEBERG_SCAN, PARQUET

# The first engine writes no DuckLake tables: DuckDB loads its own from the same files, in the case without a format.
WAYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {PARQUET: (PARQUET, DUCKLAKE), DELTA: (DELTA,), ICEBERG: (ICEBERG_SCAN,)}
)
NONE = {HUDI: "DuckDB has no reader of Hudi's tables"}
CALLED = {PARQUET: "read_parquet", DELTA: "delta_scan", ICEBERG_SCAN: "iceberg_scan", DUCKLAKE: "DuckLake"}
NOT_ASKED = "these runs had no second engine"
