"""`tidemark stack`: add, test and provide software stacks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.steps import Log, logged
from tidemark.paths import Workspace

stack = typer.Typer(no_args_is_help=True, help="Software stacks: the same systems with other versions.")


@stack.command("add")
def add_stack(
    name: Annotated[str, typer.Argument(help="The new stack's name.")],
    requirements: Annotated[
        Path, typer.Option("--from", exists=True, dir_okay=False, help="A requirements file, as envs/*.in are.")
    ],
) -> None:
    """Lock a new stack, make its environment, and run the conformance suite on it."""
    from tidemark.software.stacks import add

    raise typer.Exit(add(name, requirements, Workspace(Path.cwd())))


@stack.command("test")
def test_stack(name: Annotated[str, typer.Argument(help="The stack to test.")]) -> None:
    """Run the conformance suite in a stack's environment."""
    from tidemark.software.stacks import conform

    raise typer.Exit(conform(name, Workspace(Path.cwd())))


@stack.command("provide")
def provide_stack(
    name: Annotated[str, typer.Argument(help="The stack whose environment to make.")],
    target: Annotated[Path, typer.Option(dir_okay=False, help="File to write once it exists.")],
    log: Log = None,
) -> None:
    """Make a stack's environment from its lock, unless it exists (the pipeline's rules call it)."""
    import json

    from tidemark.paths import write_atomically

    with logged(log):
        from tidemark.software.stacks import provide

        interpreter = provide(name, Workspace(Path.cwd()))
        write_atomically(target, json.dumps({"stack": name, "python": str(interpreter)}, indent=1) + "\n")
