"""Oracle: check that the table holds exactly the acknowledged ids, each once, in one commit per write.

It runs before any other request to the system once the window has closed, which could make it commit late. What commits
late without a request leaves files that are younger than the last write; a stream is refused for them.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidemark.runs.proofs import Oracle
from tidemark.systems.base import Capability
from tidemark.systems.tables import TableSystem


def compare(ids: pa.ChunkedArray, acknowledged: int, reader: str = "", seconds: float = 0.0) -> Oracle:
    """Compare `ids` (int64, any order) with the acknowledged ids 0 .. `acknowledged` - 1.

    `missing` and `duplicated` count ids, `unexpected` counts rows whose id was never acknowledged, or is null.
    """
    seen = np.zeros(acknowledged, np.int64)
    unexpected = 0
    for chunk in ids.chunks:
        unexpected += chunk.null_count
        values = chunk.drop_null().to_numpy()
        known = values[(values >= 0) & (values < acknowledged)]
        unexpected += len(values) - len(known)
        seen += np.bincount(known, minlength=acknowledged)
    missing, duplicated = int((seen == 0).sum()), int((seen > 1).sum())
    right = not (missing or duplicated or unexpected)
    return Oracle(right, True, acknowledged, len(ids), missing, duplicated, unexpected, reader, seconds)


def consult(
    system: TableSystem, acknowledged: int, operations: int | None = None, commits_before: int | None = None
) -> Oracle:
    """Read the table through a separate reader and compare its ids with the acknowledged ones.

    If `commits_before` (of the table right after `create`) is given, the number of commits since then must equal
    the number of acknowledged `operations`.
    """
    if Capability.READ_BACK not in system.capabilities:
        return Oracle.not_applicable(acknowledged, system.reader)
    began = time.perf_counter()
    ids = system.ids()
    seconds = time.perf_counter() - began
    commits_after = None if commits_before is None else system.commits()
    verdict = compare(ids, acknowledged, system.reader, seconds)
    if commits_before is None or commits_after is None:
        return verdict
    commits = commits_after - commits_before
    return replace(verdict, commits=commits, verdict=verdict.verdict and commits == operations)


def difference(verdict: Oracle, operations: int) -> str:
    """Describe how the table differs from what was acknowledged, for an error message."""
    text = (
        f"{verdict.expected:,} ids were acknowledged, the table holds {verdict.found:,} rows: "
        f"{verdict.missing:,} missing, {verdict.duplicated:,} more than once, "
        f"{verdict.unexpected:,} never acknowledged"
    )
    if verdict.commits is not None and verdict.commits != operations:
        text += f"; {operations:,} writes were acknowledged, the table's history shows {verdict.commits:,} commits"
    return f"{text} (read by {verdict.reader})"
