"""Known releases of Lance; there is one."""

from __future__ import annotations

from importlib.metadata import version

from tidemark.systems import releases
from tidemark.systems.releases import Release

CLIENT = "pylance"

# Oldest first.
RELEASES = (Release((14, 0, 2)),)


def installed_version() -> str:
    return version(CLIENT)


def remark() -> str | None:
    """Return a note on the installed Lance if it is not a known release; otherwise None."""
    return releases.remark(CLIENT, RELEASES, installed_version())
