"""Read times of a window's table at its end, as streamed and after maintenance."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.errors import SystemFailure
from tidemark.measure.table_calls import hold, read, timed
from tidemark.runs.manifest import Footprint
from tidemark.studies.freshness.record import Reads
from tidemark.systems.base import Capability
from tidemark.systems.tables import TableSystem

NOBODY = "no client is here that can be asked for its rows and never wrote to it"


def take(table: TableSystem, rows: int, footprint: Footprint, show: Callable[[str], None]) -> Reads:
    """Read `table`, which holds the ids 0 .. `rows` - 1, maintain it, and read it again.

    Raises OracleError if an answer is wrong. Other failures are only recorded: the window is already measured.
    """
    files = footprint.files
    if Capability.ASKED not in table.capabilities:
        return Reads(None, files, NOBODY, why_not_after=NOBODY)
    show("reading")
    try:
        before = hold(read(table), rows).latencies
    except SystemFailure as error:
        return Reads(None, files, str(error), why_not_after=str(error))
    refused = table.refuses_maintenance(table.options)
    if refused:
        return Reads(before, files, why_not_after=refused)
    show("maintaining")
    maintained = []
    try:
        writer = table.client_factory().open()
        try:
            for name, operation in writer.maintenance().items():
                maintained.append([name, timed(name, operation)])
        finally:
            writer.close()
        show("reading once more")
        after = hold(read(table), rows).latencies
    except SystemFailure as error:
        return Reads(before, files, "", maintained, why_not_after=str(error))
    return Reads(before, files, "", maintained, after, table.footprint().files)
