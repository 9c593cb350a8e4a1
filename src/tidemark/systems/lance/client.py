"""Releases of Lance that its system was written for; there is one."""

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
    """What must be said of the installed Lance, if nothing here was written for it."""
    return releases.remark(CLIENT, RELEASES, installed_version())
