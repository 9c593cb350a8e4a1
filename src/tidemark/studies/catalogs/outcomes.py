"""Outcome of a request, by the status that the server returned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ACKED, CONFLICT, FAILED, UNKNOWN, CASCADED = "acked", "conflict", "failed", "unknown", "cascaded"
WRONG = ("lost", "lost_updates", "undead", "phantom", "doubled", "wrong", "torn")  # counters of an oracle
OUTCOMES = (ACKED, CONFLICT, FAILED, UNKNOWN, CASCADED)
NOT_THERE, CONFLICTED = 404, 409


def outcomes(status: NDArray[np.int64], creates: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Return the outcome of each request; `creates` marks the requests that create something.

    A request that the server failed (5xx) or did not answer may have been done nevertheless: unknown. A creation below
    a missing namespace (404) is the consequence of another failure: cascaded.
    """
    found = np.full(len(status), FAILED, object)
    found[(status >= 500) | (status < 100)] = UNKNOWN
    found[(status >= 200) & (status < 300)] = ACKED
    found[status == CONFLICTED] = CONFLICT
    found[creates & (status == NOT_THERE)] = CASCADED
    return found
