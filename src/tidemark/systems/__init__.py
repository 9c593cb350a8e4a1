"""Systems under test, one or more in a file; `registry` finds them."""

from __future__ import annotations

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
    "null-tables", "opensearch", "paimon", "parquet-datafusion", "parquet-hdfs", "parquet-local", "parquet-on-spark",
    "polaris", "pyiceberg-local",
    "pyiceberg-sql-postgres", "pyiceberg-sql-sqlite", "rest-jdbc-h2", "rest-jdbc-mariadb", "rest-jdbc-postgres",
    "rest-jdbc-postgres-2", "rest-jdbc-postgres-s3", "rest-jdbc-sqlite", "rest-jdbc-sqlite-wal", "rest-memory",
    "spark-delta", "spark-delta-hdfs", "spark-hudi", "spark-hudi-bulk", "spark-hudi-hdfs", "spark-iceberg",
), 1)  # fmt: skip
