"""Study of the report on a catalog's persistence: its operations one by one and concurrently."""

from __future__ import annotations

from tidemark.studies.study import Study

STUDY = Study(
    name="catalogs",
    title="Apache Polaris persistence: EclipseLink with PostgreSQL against a new layer with MongoDB",
    question="What does each operation of a catalog cost, alone and with many users at once?",
)
