"""Every system, found by looking into this folder: a file with a subclass of `System` is a system."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from functools import cache

from tidemark import code
from tidemark.errors import ConfigError
from tidemark.systems.base import System


@cache
def registry() -> dict[str, type[System]]:
    """The systems by their names, in the order of their names.

    ConfigError for a class that lacks what a system must have, and for a name that two of them have.
    """
    systems: dict[str, type[System]] = {}
    for item in code.named_classes(__name__):
        if issubclass(item, System):
            other = systems.setdefault(item.name, item)
            if other is not item:
                raise ConfigError(f"{_place(item)}: the name '{item.name}' is that of {_place(other)}; give it another")
            _refuse_half(item)
    return dict(sorted(systems.items()))


def _refuse_half(kind: type[System]) -> None:
    lacking = [name for name in System.__annotations__ if not hasattr(kind, name)]
    lacking += [f"{name}()" for name in sorted(getattr(kind, "__abstractmethods__", ()))]
    lacking += [] if is_dataclass(kind.Options) else ["Options as a dataclass"]
    if lacking:
        bases = ", ".join(each.__name__ for each in kind.__bases__)
        raise ConfigError(
            f"{_place(kind)} (system '{kind.name}') lacks {', '.join(lacking)}; see the docstrings of {bases}"
        )


def _place(kind: type[System]) -> str:
    """The file of a class, and its name."""
    return f"{inspect.getfile(kind)}: class {kind.__name__}"


def of_kind[Kind: System](kind: type[Kind]) -> dict[str, type[Kind]]:
    """Those of one kind."""
    return {name: item for name, item in registry().items() if issubclass(item, kind)}
