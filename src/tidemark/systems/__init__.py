"""Every system, found by looking into this folder: a file with a subclass of `System` is a system."""

from __future__ import annotations

from functools import cache

from tidemark import code
from tidemark.systems.base import System


@cache
def registry() -> dict[str, type[System]]:
    """The systems by their names, in the order of their names."""
    found = {item.name: item for item in code.named_classes(__name__) if issubclass(item, System)}
    return dict(sorted(found.items()))


def of_kind[Kind: System](kind: type[Kind]) -> dict[str, type[Kind]]:
    """Those of one kind."""
    return {name: item for name, item in registry().items() if issubclass(item, kind)}
