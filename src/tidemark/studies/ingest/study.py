"""Study of many writers on one table: kyma's performance page, and a question that the thesis left open."""

from __future__ import annotations

from tidemark.studies.study import Study

STUDY = Study(
    name="ingest",
    title="kyma, performance: ingest by concurrent writers, one commit a request",
    question="How many commits a second does one table take from many writers, and how many are refused or lost?",
)
