"""Results of windows in run.json, for tests without runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidemark.runs.serde import Fields, read

EMPTY: dict[str, Any] = {"tables": {}, "answers": {}, "footprints": {}, "words": "exact", "failed": [], "data": {}}


def record_of(**found: Any) -> Callable[[Any], Any]:
    """Return `Run.record` of a run with these results; those that are not given are empty."""
    return lambda kind: read(kind, Fields("run.json", {**EMPTY, **found}, "found."))
