"""The oracle: the table holds exactly the ids that were acknowledged, each once."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.systems.base import Capability, System


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader found in the table, against the ids 0 .. expected - 1 that were acknowledged."""

    verdict: bool
    applicable: bool  # False for a system that stores nothing: then there is nothing to hold it to
    expected: int
    found: int
    missing: int
    duplicated: int
    unexpected: int
    reader: str
    seconds: float


def compare(ids: pa.ChunkedArray, acknowledged: int, reader: str = "", seconds: float = 0.0) -> Verdict:
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
    return Verdict(right, True, acknowledged, len(ids), missing, duplicated, unexpected, reader, seconds)


def consult(system: System, acknowledged: int) -> Verdict:
    """Read the table through a reader of its own and compare."""
    if Capability.READ_BACK not in system.capabilities:
        return Verdict(True, False, acknowledged, 0, 0, 0, 0, "none: this system stores nothing", 0.0)
    began = time.perf_counter()
    ids = system.ids()
    return compare(ids, acknowledged, f"{system.client}, a connection of its own", time.perf_counter() - began)
