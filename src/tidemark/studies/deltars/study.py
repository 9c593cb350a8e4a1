"""Study `deltars`: the cost of writing complete tables, locally and on HDFS, with and without Kafka, Spark and Hudi."""

from __future__ import annotations

from tidemark.studies.study import Study

STUDY = Study(
    name="deltars",
    title="Reducing read and write latency using Rust in an offline feature store (G. Manfredi, KTH 2024)",
    question="How long do writing and reading a whole table take with delta-rs, on a local disk and on HDFS, and by "
    "way of Kafka, Spark and Hudi?",
)
