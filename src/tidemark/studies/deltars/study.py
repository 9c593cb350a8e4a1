"""What does a table cost that is written whole, on a local disk and on HDFS, with Kafka, Spark and Hudi and without?"""

from __future__ import annotations

from tidemark.studies.study import Study

STUDY = Study(
    name="deltars",
    title="Reducing read and write latency using Rust in an offline feature store (G. Manfredi, KTH 2024)",
    question="How long do writing and reading a whole table take with delta-rs, on a local disk and on HDFS, and by "
    "way of Kafka, Spark and Hudi?",
)
