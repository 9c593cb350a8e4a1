"""Registry of all systems, discovered from this package: a file with a subclass of `System` is a system."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from functools import cache

from tidemark import code
from tidemark.errors import ConfigError
from tidemark.systems.base import System

# Version of what each system does in a measurement window. Raise it when that changes: the system's series are then due
# again. A system without a version here is identified by the digest of its code, so that each change of the code makes
# its series due. Leave a system out while you are still writing it.
MEASUREMENTS: dict[str, int] = dict.fromkeys((
    "arrow-kafka-delta", "delta-duckdb", "delta-on-spark", "delta-on-spark-before", "delta-rs", "delta-rs-hdfs",
    "delta-rs-hdfs-before", "delta-rs-local", "delta-rs-local-before", "duckdb-delta-hdfs", "duckdb-delta-local",
    "ducklake", "ducklake-catalog-file", "ducklake-catalog-postgres", "ducklake-catalog-sqlite", "ducklake-inlined",
    "ducklake-inlined-postgres", "ducklake-local", "ducklake-quack", "ducklake-sqlite", "flink-iceberg",
    "hudi-on-spark", "iceberg-duckdb", "iceberg-on-spark", "iceberg-on-spark-0p14", "iceberg-on-spark-before",
    "iceberg-on-spark-before-cow", "iceberg-pyiceberg", "kafka-connect-iceberg", "lance", "legacy",
    "nessie-jdbc-postgres", "nessie-memory", "nessie-mongo", "nessie-rocksdb", "null", "null-catalog",
    "null-tables", "paimon", "parquet-hdfs", "parquet-local", "parquet-on-spark", "polaris", "pyiceberg-local",
    "pyiceberg-sql-postgres", "pyiceberg-sql-sqlite", "rest-jdbc-h2", "rest-jdbc-mariadb", "rest-jdbc-postgres",
    "rest-jdbc-postgres-2", "rest-jdbc-postgres-s3", "rest-jdbc-sqlite", "rest-jdbc-sqlite-wal", "rest-memory",
    "spark-delta", "spark-delta-hdfs", "spark-hudi", "spark-hudi-bulk", "spark-hudi-hdfs", "spark-iceberg",
), 1)  # fmt: skip


@cache
def registry() -> dict[str, type[System]]:
    """Return all systems by name, sorted by name.

    Raise ConfigError if a class lacks a required attribute or method, or if two classes have the same name.
    """
    systems: dict[str, type[System]] = {}
    for item in code.named_classes(__name__):
        if issubclass(item, System):
            other = systems.setdefault(item.name, item)
            if other is not item:
                raise ConfigError(f"{_place(item)}: the name '{item.name}' is that of {_place(other)}; give it another")
            _refuse_half(item)
    return dict(sorted(systems.items()))


def _refuse_half(kind: type[System]) -> None:
    lacking = [name for name in System.__annotations__ if not hasattr(kind, name)]
    lacking += [f"{name}()" for name in sorted(getattr(kind, "__abstractmethods__", ()))]
    lacking += [] if is_dataclass(kind.Options) else ["Options as a dataclass"]
    if lacking:
        bases = ", ".join(each.__name__ for each in kind.__bases__)
        raise ConfigError(
            f"{_place(kind)} (system '{kind.name}') lacks {', '.join(lacking)}; see the docstrings of {bases}"
        )


def _place(kind: type[System]) -> str:
    """Return the file and the name of a class."""
    return f"{inspect.getfile(kind)}: class {kind.__name__}"


def of_kind[Kind: System](kind: type[Kind]) -> dict[str, type[Kind]]:
    """Return the systems of one kind, by name."""
    return {name: item for name, item in registry().items() if issubclass(item, kind)}
