"""Outcomes of an attempt at a commit."""

from __future__ import annotations

from tidemark.systems.writers import CommitStatus

ACKED = "acked"  # the call returned
CONFLICT = str(CommitStatus.CONFLICT)  # refused because another commit came first; the writer tries again
GIVEN_UP = "given up"  # the same, at the last of the writer's tries
FAILED = str(CommitStatus.FAILED)
UNKNOWN = str(
    CommitStatus.UNKNOWN
)  # may or may not be committed; tried again only by the part `faults`, by its `retry`
# Outcomes by their number in records; SENT marks an attempt whose writer ended inside the call.
SENT = 0
OUTCOMES = (UNKNOWN, ACKED, CONFLICT, GIVEN_UP, FAILED, UNKNOWN)
NUMBERS = {name: number for number, name in enumerate(OUTCOMES) if number != SENT}
REFUSED = (CONFLICT, GIVEN_UP)
