"""`tidemark anatomy`: the parts of single commits in exact counts, and their differences from kept ones."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.errors import ConfigError, CountsDiffer
from tidemark.paths import REPOSITORY, Workspace
from tidemark.process_lifetime import say

if TYPE_CHECKING:
    from tidemark.runs.anatomy import Anatomy
    from tidemark.systems.base import Variant

DISTANCES_MS = (1, 20, 70)
WIDTH = 120  # characters of a line


def anatomy(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A table or a pipeline of 'list systems'.")],
    commits: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Commits to count, by number from 1, such as 1,10,100,1000.")
    ] = "1,10,100",
    rows: Annotated[int, typer.Option(min=1, max=100_000, help="Rows of a commit.")] = 1,
    columns: Annotated[
        int, typer.Option(min=2, max=1000, help="Columns of a row; a trip has 21, and more are these again.")
    ] = 21,
    runs: Annotated[
        int, typer.Option(min=1, help="Tables to write; what differs between them is shown as a range.")
    ] = 2,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the system; 'show system SYSTEM' lists them."),
    ] = None,
    stack: Annotated[
        str, typer.Option(metavar="NAME", help="The software stack; 'list stacks' lists them.")
    ] = "thesis",
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Counts of --json that were kept; exit code 15 if they differ."
        ),
    ] = None,
    sequence: Annotated[
        bool,
        typer.Option("--sequence", help="Also who asks which server for what in one commit, in order, with times."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON, to be kept.")] = False,
) -> None:
    """Count the parts of one commit of a system: files, operations on them, SQL, round trips and requests.

    Servers are started, and two tables are written: a count that is the same in both is exact. A pipeline gets the
    events of a commit when the commit before has been counted.
    With --against each count that differs from a kept one is named in words, for the tests of a client.
    """
    from tidemark.runs.anatomy import Anatomy

    variant, given = _variant(system, option or [])
    numbers = numbers_of(commits)
    kept = None if against is None else Anatomy.read(against)
    _enter(stack)
    from tidemark.measure.anatomy.session import take_apart
    from tidemark.pipeline.runner import locked
    from tidemark.progress import Progress

    workspace = Workspace(Path.cwd())
    with locked(workspace), Progress(f"commits of {system}", runs * max(numbers)) as progress:
        found = take_apart(
            variant, given, workspace, stack, numbers, rows, runs, lambda done, _all: progress.update(done), columns
        )
    if not sequence:
        found = replace(found, steps=())
    if as_json:
        print(found.to_json(), end="")
    else:
        _print_table(found)
    if kept is not None:
        differences = list(found.differences(kept))
        for source, reason in found.left_out(kept).items():
            say(f"tidemark: {source} not compared: {reason}")
        for said in differences:
            print(said, file=sys.stderr if as_json else sys.stdout)
        if differences:
            raise CountsDiffer(f"{len(differences)} counts differ from {against}, as the lines above say")
        say(f"tidemark: every count is as in {against}")


def _variant(name: str, given: list[str]) -> tuple[Variant, dict[str, Any]]:
    """Return the system with the options `given` (KEY=VALUE), and these; raise ConfigError if it writes no table."""
    import yaml

    from tidemark.cli.listing import one_of
    from tidemark.schema import Origin
    from tidemark.systems.registry import SystemEntry, of_kind, registry, variant
    from tidemark.systems.sinks import StreamingSink
    from tidemark.systems.tables import TableSystem

    kind = one_of("system", name, registry())
    if not issubclass(kind, (TableSystem, StreamingSink)):
        allowed = ", ".join((*of_kind(TableSystem), *of_kind(StreamingSink)))
        raise ConfigError(f"found '{name}', which is {kind.kind}; allowed: {allowed}")
    options: dict[str, Any] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--option: found '{pair}'; allowed: KEY=VALUE, as 'show system {name}' lists them")
        if key in (*options, "like", "title"):
            raise ConfigError(f"--option: found '{pair}'; allowed: each option of '{name}' once")
        try:
            options[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"--option: found '{pair}', whose value is not YAML; allowed: KEY=VALUE") from error
    if "rtt_ms" in options:
        raise ConfigError("--option: found rtt_ms; allowed: all others, as a distance changes no count")
    return variant(SystemEntry.parse(name, options), Origin("--option", {}), ()), options


def numbers_of(commits: str) -> list[int]:
    words = commits.split(",")
    if not all(word.isdecimal() and len(word) < 6 and int(word) > 0 for word in words):
        found = commits if len(commits) < 100 else f"{commits[:100]}..."
        raise ConfigError(f"--commits: found '{found}'; allowed: numbers from 1 to 99999 with commas between them")
    return sorted({int(word) for word in words})


def _enter(stack: str) -> None:
    """Continue in the environment of `stack`, unless this is it: clients and servers come from there."""
    from tidemark.software.stacks import PIPELINE, provide

    interpreter = provide(stack, Workspace(Path.cwd()))
    if stack != PIPELINE and Path(sys.prefix) != interpreter.parents[1]:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
        os.execve(interpreter, [str(interpreter), "-m", "tidemark", *sys.argv[1:]], environment)


def _print_table(found: Anatomy) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tidemark.runs.anatomy import IN_SERIES, Source, shown

    console = Console()
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    size = f"{found.rows:,} row{'' if found.rows == 1 else 's'} and {found.columns} columns"
    print(f"{found.title}: a commit of {size}" + (f" ({versions})" if versions else ""))
    if found.pipeline:
        print("A pipeline with " + ", ".join(f"{name}: {value}" for name, value in found.pipeline.items()))
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("")
    for number in found.commits:
        table.add_column(f"commit {number:,}", justify="right", no_wrap=True)
    for source in Source:
        names = {name for counts in found.commits.values() for name in counts.get(source, {})}
        for name in sorted(names):
            table.add_row(name, *(shown(counts.get(source, {}).get(name, (0, 0))) for counts in found.commits.values()))
        if names:
            table.add_section()
    console.print(table)
    if found.steps:
        _print_steps(found)
    for left_out, reason in found.not_counted.items():
        print(f"Not counted: {left_out}: {reason}.")
    last = max(found.commits)
    for name, (_, trips) in found.commits[last].get(Source.NETWORK, {}).items():
        if name.startswith(IN_SERIES):
            distances, longer = (", ".join(f"{each * ms:,}" for ms in DISTANCES_MS) for each in (1, trips))
            print(f"At a distance of {distances} ms, the {name} of commit {last:,} take {longer} ms.")


def _print_steps(found: Anatomy) -> None:
    from tidemark.runs.anatomy import CLIENT

    print(f"What is asked in one commit after commit {max(found.commits):,}, the quickest of several:\n")
    print(f"{'at ms':>8} {'takes ms':>9} {'bytes to':>9} {'bytes from':>10}  server: request or statement")
    for each in found.steps:
        sizes = f"{each.sent_bytes:9,} {each.received_bytes:10,}"
        whom = each.server if each.by == CLIENT else f"  {each.server} by {each.by}"
        line = f"{each.began_ms:8.1f} {each.took_ms:9.1f} {sizes}  {whom}: {each.asked or '(another message)'}"
        print(line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}...")
    print()
