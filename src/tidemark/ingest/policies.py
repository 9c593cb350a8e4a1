"""Commit policies: one commit per request, buffered commits, or files that are committed in groups.

The default values are those of kyma's staging buffer and commit coordinator.
"""

from __future__ import annotations

from dataclasses import dataclass

DIRECT, STAGED, BUNDLED = "direct", "staged", "bundled"


@dataclass(frozen=True, slots=True)
class Direct:
    """One commit per request."""

    name = DIRECT


@dataclass(frozen=True, slots=True)
class Staged:
    """Buffered requests: a limit on the buffer's rows, bytes or age triggers one commit of all of them."""

    max_rows: int = 8_000
    max_bytes: int = 16 << 20  # bytes on the wire
    max_age_ms: float = 50.0  # of the oldest request in the buffer

    name = STAGED


@dataclass(frozen=True, slots=True)
class Bundled:
    """Policy like `Staged`, but each flush writes a data file; files that arrive in a window share one commit."""

    max_rows: int = 8_000
    max_bytes: int = 16 << 20
    max_age_ms: float = 50.0
    window_ms: float = 5.0  # starts with the first file
    max_files: int = 128

    name = BUNDLED


type Policy = Direct | Staged | Bundled
POLICIES: dict[str, type[Direct | Staged | Bundled]] = {DIRECT: Direct, STAGED: Staged, BUNDLED: Bundled}
