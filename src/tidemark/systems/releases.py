"""Known releases of a client library, and the choice of the one whose rules apply to the installed release.

Each client keeps its differences in one place (`duckdb_client`, `pyiceberg_client`, `delta_client`): a list of
releases, oldest first. Rules are chosen by the installed version, never by the name of a stack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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


def nearest[R: Release](client: str, known: Sequence[R], installed: str) -> R:
    """Return the newest of `known` (oldest first) that is not newer than `installed`.

    A release between two known ones is treated as the earlier, and one newer than all as the newest. Raise
    ProvisionError if `installed` is older than all.
    """
    fitting = [each for each in known if each.version <= parse_version(installed)]
    if not fitting:
        raise ProvisionError(
            f"{client} {installed} is installed; {known[0]} is the oldest that works here. Upgrade it."
        )
    return fitting[-1]


def remark(client: str, known: Sequence[Release], installed: str) -> str | None:
    """Return a note on an installed release that is not among the known ones; None for a known one."""
    used = nearest(client, known, installed)
    if parse_version(installed) == used.version:
        return None
    newest = used is known[-1]
    what = f"newer than {used}, the newest known here," if newest else "between two that are known here"
    return f"{client} {installed} is {what} and used as {used} is"
