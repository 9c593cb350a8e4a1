"""Every kind of server, found by looking into this folder: a file with a named subclass of `Service` has one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.services.base import Service


@cache
def registry() -> dict[str, type[Service]]:
    """The services by their names, in the order of their names; clients of all of them are imported for it."""
    from tidemark.services.base import Service

    found: dict[str, type[Service]] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        for _, item in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(item, Service) and "name" in vars(item) and item.__module__ == module.name:
                found[item.name] = item
    return dict(sorted(found.items()))
