"""The oracle: the table holds exactly the ids that were acknowledged, each once, in one commit a write.

It is asked before anything else of the system once the window has closed, so that nothing can be committed late.
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
    """Hold `ids` (int64, any order) to the acknowledged ids 0 .. `acknowledged` - 1.

    `missing` and `duplicated` count ids, `unexpected` counts rows with an id that was never acknowledged (or
    with none).
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
    """Read the table through a reader of its own and compare.

    Where `commits_before` (of the table right after `create`) is given, the commits since then must be as many as
    the `operations` that were acknowledged.
    """
    if Capability.READ_BACK not in system.capabilities:
        return Oracle(True, False, acknowledged, 0, 0, 0, 0, system.reader, 0.0)
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
    """What `verdict` found to be otherwise than acknowledged, for whoever reads the error."""
    text = (
        f"{verdict.expected:,} ids were acknowledged, the table holds {verdict.found:,} rows: "
        f"{verdict.missing:,} missing, {verdict.duplicated:,} more than once, "
        f"{verdict.unexpected:,} never acknowledged"
    )
    if verdict.commits is not None and verdict.commits != operations:
        text += f"; {operations:,} writes were acknowledged, the table's history shows {verdict.commits:,} commits"
    return f"{text} (read by {verdict.reader})"
