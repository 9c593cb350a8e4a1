"""Read times of a window's table at its end, as streamed and after maintenance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidemark.errors import SystemFailure
from tidemark.measure.maintenance import timed
from tidemark.measure.reading import Reading, hold, read
from tidemark.runs.manifest import Footprint
from tidemark.systems.base import Capability
from tidemark.systems.tables import TableSystem

NOBODY = "no client is here that can be asked for its rows and never wrote to it"


@dataclass(frozen=True, slots=True)
class Reads:
    """Readings `before` and `after` maintenance, the seconds of its operations (`maintained`), or why there is none."""

    before: Reading | None
    files: int  # data and metadata files before maintenance; `files_after`: after it
    why_not: str = ""
    maintained: tuple[tuple[str, float], ...] = ()
    after: Reading | None = None
    files_after: int = 0
    why_not_after: str = ""

    def found(self) -> dict[str, Any]:
        """Return the readings as JSON data."""
        return {
            "before": None if self.before is None else self.before.seconds,
            "files": self.files,
            "why_not": self.why_not,
            "maintained": [list(each) for each in self.maintained],
            "after": None if self.after is None else self.after.seconds,
            "files_after": self.files_after,
            "why_not_after": self.why_not_after,
        }


def take(table: TableSystem, rows: int, footprint: Footprint, show: Callable[[str], None]) -> Reads:
    """Read `table`, which holds the ids 0 .. `rows` - 1, maintain it, and read it again.

    Raises OracleError if an answer is wrong. Other failures are only recorded: the window is already measured.
    """
    files = _files(footprint)
    if Capability.ASKED not in table.capabilities:
        return Reads(None, files, NOBODY, why_not_after=NOBODY)
    show("reading")
    try:
        before = hold(read(table), rows)
    except SystemFailure as error:
        return Reads(None, files, str(error), why_not_after=str(error))
    refused = table.refuses_maintenance(table.options)
    if refused:
        return Reads(before, files, why_not_after=refused)
    show("maintaining")
    maintained = []
    try:
        writer = table.door().open()
        try:
            for name, operation in writer.maintenance().items():
                maintained.append((name, timed(name, operation)))
        finally:
            writer.close()
        show("reading once more")
        after = hold(read(table), rows)
    except SystemFailure as error:
        return Reads(before, files, "", tuple(maintained), why_not_after=str(error))
    return Reads(before, files, "", tuple(maintained), after, _files(table.footprint()))


def _files(footprint: Footprint) -> int:
    return footprint.data_files + footprint.metadata_files
