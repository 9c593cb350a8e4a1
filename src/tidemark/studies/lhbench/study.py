"""Study `lhbench`: the cost of the designs of Delta Lake, Hudi and Iceberg on one engine."""

from __future__ import annotations

from tidemark.studies.study import Study

STUDY = Study(
    name="lhbench",
    title="LHBench: Delta Lake, Hudi and Iceberg on one engine",
    question="What do three table formats cost on one engine, when tables are loaded, queried and merged into?",
)
