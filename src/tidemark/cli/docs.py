"""`tidemark docs`: the documentation as a site. Its page of all commands is made here, from the commands themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemark.cli.words import OLD_NAMES, TO
from tidemark.errors import TidemarkError
from tidemark.paths import REPOSITORY, Workspace, private_directory
from tidemark.progress import Progress

TOOL, PROGRAM = "docs", "sphinx-build"
COMMANDS = "docs/commands.md"
STRICT = ("--fresh-env", "--write-all", "--nitpicky", "--fail-on-warning", "--keep-going")
HALVES = {"reading sources": 0, "writing output": 50}  # parts of the build, and the per cent that are done before each
DONE = re.compile(rf"({'|'.join(HALVES)})\.\.\. \[ *(\d+)%\]")
WRONG = re.compile(r"\b(WARNING|ERROR|CRITICAL): ")
HEAD = """# Commands

Every command with its arguments and options, as its `--help` prints them. `KEY=VALUE...` stands for any number of
values. `./tidemark artifact` makes this page from the commands.
"""
STEPS = "Steps of the pipeline"
ABOUT_STEPS = "The rules of the pipeline call these, and `./tidemark --help` does not list them."
OF_SNAKEMAKE = "Options of Snakemake"
ABOUT_SNAKEMAKE = "`./tidemark all` passes these to Snakemake, whose documentation describes them:"


def docs(
    target: Annotated[Path, typer.Option(*TO, file_okay=False, help="Folder for the site.")] = Path("build/docs"),
) -> None:
    """Build the documentation as a site that needs no network, and print the path of its first page.

    Warnings, such as a link to a page or an anchor that does not exist, are errors.
    """
    from tidemark.software.tools import provide_tool

    workspace = Workspace(Path.cwd())
    program = provide_tool(TOOL, workspace).with_name(PROGRAM)
    doctrees = private_directory(workspace.private / "docs")
    command = [str(program), *STRICT, "-d", str(doctrees), str(REPOSITORY / "docs"), str(target)]
    said = []
    with (
        Progress("documentation", 100) as progress,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
    ):
        for line in process.stdout or ():
            if (found := DONE.match(line)) is not None:
                progress.update(HALVES[found[1]] + int(found[2]) / 2, found[1])
            else:
                said.append(line)
    if process.returncode:
        print("".join([line for line in said if WRONG.search(line)] or said[-5:]), end="", file=sys.stderr)
        raise TidemarkError(f"the documentation has the errors above; {target} holds what could be built")
    print(f"tidemark: wrote {target / 'index.html'}")


def commands_page(app: Any) -> str:
    """Return the page of all commands of the group `app` as Markdown, in the order of its help."""
    panels: dict[str, list[str]] = {}
    for name, command in app.commands.items():
        if name in OLD_NAMES:
            continue
        panel = STEPS if command.hidden else command.rich_help_panel
        panels.setdefault(panel, []).extend(_command(name, command))
    steps = panels.pop(STEPS)
    panels[STEPS] = [f"{ABOUT_STEPS}\n", *steps]
    panels[OF_SNAKEMAKE] = [f"{ABOUT_SNAKEMAKE}\n", f"{', '.join(f'`{each}`' for each in snakemake_options())}\n"]
    return "\n".join([HEAD, *(line for panel, lines in panels.items() for line in (f"## {panel}\n", *lines))])


def snakemake_options() -> list[str]:
    """Return the long options of Snakemake, which the launcher looks up before it installs Snakemake.

    Without --config, which is an option of `all` itself.
    """
    from snakemake.cli import get_argument_parser  # takes a second to import

    found = (name for action in get_argument_parser()._actions for name in action.option_strings)
    return sorted(name for name in found if name.startswith("--") and name != "--config")


def _command(name: str, command: Any) -> Iterator[str]:
    """Yield the help of a command, or of each command of a group."""
    from tidemark.results.tables.table import markdown_grid

    if hasattr(command, "commands"):
        for below, each in command.commands.items():
            if not each.hidden:
                yield from _command(f"{name} {below}", each)
        return
    yield f"### {name}\n"
    yield f"{command.help}\n"
    context = command.make_context(name, [], resilient_parsing=True)
    rows = []
    for parameter in command.params:
        name, meaning = parameter.get_help_record(context)
        if parameter.param_type_name == "argument":
            name = parameter.metavar or parameter.name
        rows.append((f"`{name}`", meaning.replace("  [", " [").replace("*", "\\*")))
    if rows:
        yield f"{markdown_grid(('argument or option', 'meaning'), rows)}\n"
