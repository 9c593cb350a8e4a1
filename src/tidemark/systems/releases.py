"""Known releases of a client library, and the choice of the one whose rules apply to the installed release.

Each client keeps its differences in one place, next to its `Client` (`DUCKDB`, `PYICEBERG`, `DELTA_RS`). Rules are
chosen by the installed version, never by the name of a stack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from tidemark.errors import ProvisionError

type Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Release that the systems were written for; a client's subclass lists what is different in it."""

    version: Version

    def __str__(self) -> str:
        return ".".join(map(str, self.version))


def parse_version(text: str) -> Version:
    """Return the first three numbers: (1, 5, 5) for `1.5.5rc1`."""
    found = (re.match(r"\d+", part) for part in text.split(".")[:3])
    return tuple(int(number[0]) for number in found if number)


@dataclass(frozen=True, slots=True)
class Client[R: Release]:
    """Client library: its name in messages, its package, and the known releases, oldest first."""

    name: str
    package: str
    releases: Sequence[R]

    def installed(self) -> str:
        """Return the installed version."""
        return version(self.package)

    def release(self, installed: str | None = None) -> R:
        """Return the newest known release that is not newer than `installed`; None: than the installed version.

        A release between two known ones is treated as the earlier, and one newer than all as the newest. Raise
        ProvisionError if `installed` is older than all.
        """
        found = installed or self.installed()
        fitting = [each for each in self.releases if each.version <= parse_version(found)]
        if not fitting:
            raise ProvisionError(
                f"{self.name} {found} is installed; {self.releases[0]} is the oldest that works here. Upgrade it."
            )
        return fitting[-1]

    def remark(self, installed: str | None = None) -> str | None:
        """Return a note on an installed release that is not among the known ones; None for a known one."""
        found = installed or self.installed()
        used = self.release(found)
        if parse_version(found) == used.version:
            return None
        newest = used is self.releases[-1]
        what = f"newer than {used}, the newest known here," if newest else "between two that are known here"
        return f"{self.name} {found} is {what} and used as {used} is"
