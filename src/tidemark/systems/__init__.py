"""Every system, found by looking into this folder: a file with a subclass of `System` is a system."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from tidemark.systems.base import System


@cache
def registry() -> dict[str, type[System]]:
    """The systems by their names, in the order of their names."""
    found: dict[str, type[System]] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        for _, item in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(item, System) and "name" in vars(item) and item.__module__ == module.name:
                found[item.name] = item
    return dict(sorted(found.items()))
