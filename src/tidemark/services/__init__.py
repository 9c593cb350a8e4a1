"""Every kind of server, found by looking into this folder: a file with a named subclass of `Service` has one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tidemark import code

if TYPE_CHECKING:
    from tidemark.services.base import Service


@cache
def registry() -> dict[str, type[Service]]:
    """The services by their names, in the order of their names; clients of all of them are imported for it."""
    from tidemark.services.base import Service

    found = {item.name: item for item in code.named_classes(__name__) if issubclass(item, Service)}
    return dict(sorted(found.items()))
