"""Study of the thesis on stream writes: single events and batches, cold and hot."""

from __future__ import annotations

from tidemark.studies.study import Study

STUDY = Study(
    name="streams",
    title="Evaluating Data Stream Write Performance in Lakehouse Systems",
    question="How fast can a data stream be written into a lakehouse table, event by event and in batches?",
)
