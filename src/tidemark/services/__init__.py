"""All kinds of servers, found in this folder: each named subclass of `Service` in a file defines one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tidemark import code

if TYPE_CHECKING:
    from tidemark.services.base import Service


@cache
def registry() -> dict[str, type[Service]]:
    """Return the services by name, sorted by name; this imports the client libraries of all of them."""
    from tidemark.services.base import Service

    found = {item.name: item for item in code.named_classes(__name__) if issubclass(item, Service)}
    return dict(sorted(found.items()))
