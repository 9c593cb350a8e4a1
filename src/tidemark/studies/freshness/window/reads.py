"""What it takes to read the table of a window at its end, as it was streamed and once it is maintained."""

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
    """`before` and `after` maintenance, which took `maintained` seconds by its operations; or why there is none."""

    before: Reading | None
    files: int  # data and metadata of the table before, and after
    why_not: str = ""
    maintained: tuple[tuple[str, float], ...] = ()
    after: Reading | None = None
    files_after: int = 0
    why_not_after: str = ""

    def found(self) -> dict[str, Any]:
        """As JSON has it."""
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
    """Ask `table`, which holds the ids 0 .. `rows` - 1, maintain it, and ask it again.

    OracleError where an answer is wrong. What cannot be done is told; the window is measured by then.
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
