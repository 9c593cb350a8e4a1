"""Old names of commands: they work for one release, are not in the help, and say the new name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import typer

from tidemark import __version__
from tidemark.cli import listing
from tidemark.cli.planning import advise
from tidemark.cli.reference import keep
from tidemark.cli.words import MORE_VALUES
from tidemark.process_lifetime import say


def version() -> None:
    """Print Tidemark's version."""
    print(f"tidemark {__version__}")


# By the old name: the new one, and the function.
OLD: dict[str, tuple[str, Callable[..., None]]] = {
    "series": ("list series", listing.list_series),
    "systems": ("list systems", listing.list_systems),
    "studies": ("list studies", listing.list_studies),
    "presets": ("list presets", listing.list_presets),
    "claims": ("list claims", listing.list_claims),
    "versions": ("list versions", listing.list_versions),
    "config": ("show config", listing.show_config),
    "claim": ("show claim", listing.show_claim),
    "plan": ("advise", advise),
    "reference": ("keep", keep),
    "version": ("--version", version),
}


OLD_NAMES = (*OLD, "bench")


def keep_old_names(app: typer.Typer, stack: typer.Typer, overhead: Callable[..., None]) -> None:
    """Add the old names to the commands of `app`, and 'list' to those of `stack`."""
    for old, (new, function) in (OLD | {"bench": ("overhead", overhead)}).items():
        settings = MORE_VALUES if "context" in signature(function).parameters else None
        app.command(old, hidden=True, context_settings=settings)(_saying(old, new, function))
    stack.command("list", hidden=True)(_saying("stack list", "list stacks", listing.list_stacks))


def _saying(old: str, new: str, function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def renamed(*arguments: Any, **options: Any) -> None:
        say(f"tidemark: '{old}' is now './tidemark {new}'; the old name will go with the next release")
        function(*arguments, **options)

    return renamed
