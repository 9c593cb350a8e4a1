"""What became of an attempt at a commit."""

from __future__ import annotations

from tidemark.systems.writers import Fate

ACKED = "acked"  # the call returned
CONFLICT = str(Fate.CONFLICT)  # refused because another commit came first; the writer goes on trying
GIVEN_UP = "given up"  # the same, in the last of its tries
FAILED = str(Fate.FAILED)
UNKNOWN = str(Fate.UNKNOWN)  # it may be committed or not; never tried again
# By the numbers that records have; SENT is one whose writer ended inside the call.
SENT = 0
OUTCOMES = (UNKNOWN, ACKED, CONFLICT, GIVEN_UP, FAILED, UNKNOWN)
NUMBERS = {name: number for number, name in enumerate(OUTCOMES) if number != SENT}
REFUSED = (CONFLICT, GIVEN_UP)
