"""Selection of the files that hold a Hudi table's rows, by name (copy-on-write, layout 2 of Hudi 1.0 and later).

Standard library only, and loaded by file path: the Flight server is a separate program.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import PurePath

METADATA = ".hoodie"
TIMELINE = f"{METADATA}/timeline"
COMMIT = "commit"  # action of an instant that writes rows of a copy-on-write table


def begun(name: str) -> str | None:
    """Return the instant of a completed commit from the name of its timeline file; None for any other file."""
    instant, separator, rest = name.partition("_")
    return instant if separator and rest.endswith(f".{COMMIT}") else None


def newest[Place: PurePath](files: Iterable[Place], completed: Container[str]) -> list[Place]:
    """Return the newest file of each file group that a completed instant wrote; file names hold group and instant."""
    found: dict[str, tuple[str, Place]] = {}
    for path in files:
        group, _, instant = path.stem.split("_")
        if instant in completed and (group not in found or instant > found[group][0]):
            found[group] = instant, path
    return [path for _, path in found.values()]
