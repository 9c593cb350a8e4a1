"""Which files of a Hudi table hold its rows, by names alone (copy-on-write, layout 2 of Hudi 1.0 and later).

Standard library only, and loaded by file: the Flight server is a program of its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import PurePath

METADATA = ".hoodie"
TIMELINE = f"{METADATA}/timeline"
COMMIT = "commit"  # the kind of an instant that writes rows of a copy-on-write table


def begun(name: str) -> str | None:
    """The instant of a completed commit, by the name of its file in the timeline; None for another file."""
    instant, separator, rest = name.partition("_")
    return instant if separator and rest.endswith(f".{COMMIT}") else None


def newest[Place: PurePath](files: Iterable[Place], completed: Container[str]) -> list[Place]:
    """Of each group of files the newest one that a completed instant wrote: a file's name tells both."""
    found: dict[str, tuple[str, Place]] = {}
    for path in files:
        group, _, instant = path.stem.split("_")
        if instant in completed and (group not in found or instant > found[group][0]):
            found[group] = instant, path
    return [path for _, path in found.values()]
