"""Commit policies: one commit per request, buffered commits, or files that are committed in groups.

The default values are those of kyma's staging buffer and commit coordinator.
"""

from __future__ import annotations

from dataclasses import dataclass

DIRECT, STAGED, BUNDLED = "direct", "staged", "bundled"


@dataclass(frozen=True, slots=True)
class PerRequest:
    """One commit per request."""

    name = DIRECT


@dataclass(frozen=True, slots=True)
class GroupCommit:
    """Buffered requests: a limit on the buffer's rows, bytes or age triggers one commit of all of them."""

    max_rows: int = 8_000
    max_bytes: int = 16 << 20  # bytes on the wire
    max_age_ms: float = 50.0  # of the oldest request in the buffer

    name = STAGED


@dataclass(frozen=True, slots=True)
class FileBundling:
    """Policy like `GroupCommit`, but each flush writes a data file; files that arrive in a window share one commit."""

    max_rows: int = 8_000
    max_bytes: int = 16 << 20
    max_age_ms: float = 50.0
    window_ms: float = 5.0  # starts with the first file
    max_files: int = 128

    name = BUNDLED


type Policy = PerRequest | GroupCommit | FileBundling
POLICIES: dict[str, type[PerRequest | GroupCommit | FileBundling]] = {
    DIRECT: PerRequest,
    STAGED: GroupCommit,
    BUNDLED: FileBundling,
}
