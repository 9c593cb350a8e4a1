"""`tidemark completion`: completion in bash, zsh and fish, and the names with which arguments can be completed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from typing import Annotated

import typer

from tidemark.errors import TidemarkError

VARIABLE = "_TIDEMARK_COMPLETE"  # set by a shell that asks; the launcher reads it as well
PROGRAM = "tidemark"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


# The command as it was typed, such as ./tidemark, which need not be on PATH. Typer's script for bash uses it already.
TYPED = {Shell.ZSH: "${words[1]}", Shell.FISH: "(commandline -opc)[1]"}


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell that you use.")],
) -> None:
    """Print a script with which a shell completes commands, options, and names of systems, presets and claims.

    bash: 'source <(./tidemark completion bash)'; zsh, after compinit: 'source <(./tidemark completion zsh)'; fish:
    './tidemark completion fish | source'. Nothing is written to your home.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
    print(re.sub(rf' {PROGRAM}(?=[)"])', lambda _: f" {TYPED[shell]}", script) if shell in TYPED else script)


def heed_completion() -> None:
    """Prepare the answer to a shell that asks for completions, if one asks."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


def one_of_these(module: str, function: str = "registry") -> Callable[[str], list[str]]:
    """Return the completion of an argument that is one of the names that a function of `module` returns.

    What it returns with an id is completed by that. Nothing is offered where the names cannot be found.
    """

    def complete(incomplete: str) -> list[str]:
        try:
            names = [getattr(each, "id", each) for each in getattr(import_module(module), function)()]
        except (TidemarkError, ImportError):  # the latter where set-up has not installed what finds them
            return []
        return [name for name in names if name.startswith(incomplete)]

    return complete
