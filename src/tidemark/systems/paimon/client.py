"""Releases of Paimon's Python client that its system was written for; there is one."""

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
    """What must be said of the installed client, if nothing here was written for it."""
    return releases.remark(CLIENT, RELEASES, installed_version())
