"""What became of a request, by the status that the server answered with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ACKED, CONFLICT, FAILED, UNKNOWN, CASCADED = "acked", "conflict", "failed", "unknown", "cascaded"
WRONG = ("lost", "lost_updates", "undead", "phantom", "doubled", "wrong", "torn")  # what an oracle counts
OUTCOMES = (ACKED, CONFLICT, FAILED, UNKNOWN, CASCADED)
NOT_THERE, CONFLICTED = 404, 409


def outcomes(status: NDArray[np.int64], creates: NDArray[np.bool_]) -> NDArray[np.object_]:
    """The outcome of each request; `creates`: whether it creates something.

    A request that the server failed at (5xx), or that was not answered, may have been done all the same: unknown.
    A creation below a namespace that is not there (404) is the consequence of another failure, and cascaded.
    """
    found = np.full(len(status), FAILED, object)
    found[(status >= 500) | (status < 100)] = UNKNOWN
    found[(status >= 200) & (status < 300)] = ACKED
    found[status == CONFLICTED] = CONFLICT
    found[creates & (status == NOT_THERE)] = CASCADED
    return found
