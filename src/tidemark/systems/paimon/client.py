"""Known releases of Paimon's Python client; there is one."""

from __future__ import annotations

from importlib.metadata import version

from tidemark.systems import releases
from tidemark.systems.releases import Release

CLIENT = "pypaimon"

# Oldest first.
RELEASES = (Release((2, 1, 0)),)


def installed_version() -> str:
    return version(CLIENT)


def remark() -> str | None:
    """Return a note on the installed client if it is not a known release; otherwise None."""
    return releases.remark(CLIENT, RELEASES, installed_version())
