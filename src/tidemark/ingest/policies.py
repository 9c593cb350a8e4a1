"""When requests are committed: one by one, gathered, or gathered into files that are committed together.

The numbers that stand here are those of kyma's staging buffer and commit coordinator.
"""

from __future__ import annotations

from dataclasses import dataclass

DIRECT, STAGED, BUNDLED = "direct", "staged", "bundled"


@dataclass(frozen=True, slots=True)
class Direct:
    """Each request is a commit of its own."""

    name = DIRECT


@dataclass(frozen=True, slots=True)
class Staged:
    """Requests join a buffer, and all that is in it is one commit: once it has so many rows or bytes, or is so old."""

    max_rows: int = 8_000
    max_bytes: int = 16 << 20  # as requests are sent
    max_age_ms: float = 50.0  # of the oldest request in the buffer

    name = STAGED


@dataclass(frozen=True, slots=True)
class Bundled:
    """As `Staged`, but a flush makes a data file, and files that come within a window are one commit."""

    max_rows: int = 8_000
    max_bytes: int = 16 << 20
    max_age_ms: float = 50.0
    window_ms: float = 5.0  # from the first file on
    max_files: int = 128

    name = BUNDLED


type Policy = Direct | Staged | Bundled
POLICIES: dict[str, type[Direct | Staged | Bundled]] = {DIRECT: Direct, STAGED: Staged, BUNDLED: Bundled}
