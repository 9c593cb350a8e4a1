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
from tidemark.cli.reference import keep, site
from tidemark.cli.words import MORE_VALUES, OLD_NAMES
from tidemark.process_lifetime import say


def version() -> None:
    """Print Tidemark's version."""
    print(f"tidemark {__version__}")


FUNCTIONS: dict[str, Callable[..., None]] = {
    "list series": listing.list_series,
    "list systems": listing.list_systems,
    "list studies": listing.list_studies,
    "list presets": listing.list_presets,
    "list claims": listing.list_claims,
    "list versions": listing.list_versions,
    "show config": listing.show_config,
    "show claim": listing.show_claim,
    "advise": advise,
    "keep": keep,
    "site": site,
    "--version": version,
}


def keep_old_names(app: typer.Typer, stack: typer.Typer, overhead: Callable[..., None]) -> None:
    """Add the old names to the commands of `app`, and 'list' to those of `stack`."""
    functions = FUNCTIONS | {"overhead": overhead}
    for old, new in OLD_NAMES.items():
        function = functions[new]
        settings = MORE_VALUES if "context" in signature(function).parameters else None
        app.command(old, hidden=True, context_settings=settings)(_saying(old, new, function))
    stack.command("list", hidden=True)(_saying("stack list", "list stacks", listing.list_stacks))


def _saying(old: str, new: str, function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def renamed(*arguments: Any, **options: Any) -> None:
        say(f"tidemark: '{old}' is now './tidemark {new}'; the old name will go with the next release")
        function(*arguments, **options)

    return renamed
