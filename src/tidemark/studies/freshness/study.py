"""Study of freshness: the age of the events that a table shows, and the cost of a lower age."""

from __future__ import annotations

from tidemark.studies.study import Study

STUDY = Study(
    name="freshness",
    title="Freshness: consumers, connectors and engines that land a topic in a table",
    question="How old is an event when a reader of the table can see it, at which rate and at what cost?",
)
