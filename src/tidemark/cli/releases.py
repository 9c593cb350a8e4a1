"""`tidemark releases`: what changed from each release of a system's client to the next, in counts and in rates."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.anatomy import numbers_of
from tidemark.cli.words import ConfigFile, Overrides
from tidemark.errors import ConfigError, ProvisionError
from tidemark.paths import Workspace, write_if_changed
from tidemark.process_lifetime import say

if TYPE_CHECKING:
    from tidemark.results.reference.release_ledger import ReleaseLedger
    from tidemark.runs.anatomy import Anatomy
    from tidemark.systems.base import System

VERSION = re.compile(r"\d+(\.\d+)+([a-z]+\d+)?")


def releases(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="One of the tables that 'list systems' prints.")],
    versions: Annotated[
        list[str], typer.Argument(metavar="VERSION...", help="Releases of the client's package, oldest first.")
    ],
    counts: Annotated[bool, typer.Option("--counts", help="Count only; measure no rates.")] = False,
    commits: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Commits to count, by number from 1, such as 1,10,100.")
    ] = "10,100",
    stack: Annotated[
        str, typer.Option(metavar="NAME", help="The software stack that has all other packages.")
    ] = "current",
    config: Overrides = None,
    configfile: ConfigFile = Path("config.yaml"),
    keep: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Reference results: the table is kept there, for the site's page."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, with all counts.")] = False,
) -> None:
    """Count the parts of a commit with several releases of a client, and measure each beside the one before.

    Each release gets a stack of its own, PACKAGE-VERSION, which is locked in envs/ and stays there, and the last one a
    second stack, by which the noise floor is measured. A release that cannot be installed or used here says why, and
    the others go on. Rates are measured in rounds, in releases/SYSTEM, until the interval of each release's rate over
    that of the release before is within 5 %, or for 30 minutes; --config precision=2 budget_minutes=90 asks for other
    ends. The same command goes on where it was stopped.
    """
    values = [*(config or []), *(word for word in versions if "=" in word)]
    versions = [word for word in versions if "=" not in word]
    package = _package(system)
    numbers_of(commits)
    _check(versions, package)
    workspace, status = Workspace(Path.cwd()), 0
    if measures := not counts and len(versions) > 1:
        from tidemark.config import load
        from tidemark.pipeline.releases import overrides

        load(configfile, [*overrides(system, [stack]), *values])  # a wrong value is refused before anything is made
    ledger = _counted(system, package, versions, stack, commits, workspace)
    if measures and len(ledger.counted) > 1:
        ledger, status = _measured(ledger, workspace, configfile.absolute(), values)
    if keep is not None:
        from tidemark.results.reference.release_ledger import FOLDER

        path = keep / FOLDER / f"{system}.json"
        write_if_changed(path, ledger.to_json())
        say(f"tidemark: wrote {path}")
    if as_json:
        print(ledger.to_json(), end="")
    else:
        _print(ledger)
    if status:
        raise typer.Exit(status)


def _check(versions: list[str], package: str) -> None:
    """Raise ConfigError unless these are releases, oldest first."""
    from tidemark.systems.releases import parse_version

    if not versions:
        raise ConfigError(f"VERSION: found none; allowed: releases of {package}, such as 1.5.5")
    for version in versions:
        if not VERSION.fullmatch(version):
            raise ConfigError(f"VERSION: found '{version}'; allowed: a release of {package}, such as 1.5.5")
    for before, after in pairwise(versions):
        if before == after or parse_version(before) > parse_version(after):
            raise ConfigError(f"VERSION: found {before} before {after}; allowed: each release once, oldest first")


def _package(system: str) -> str:
    """Return the package whose releases are those of a system's client; raise ConfigError if there is none."""
    from tidemark.cli.listing import one_of
    from tidemark.software.stacks import CLIENTS
    from tidemark.systems.registry import of_kind, registry
    from tidemark.systems.tables import TableSystem

    def found(kind: type[System]) -> list[str]:
        own = {*kind.libraries, *kind.packages.values()}
        return [client.package for client in CLIENTS if client.package in own]

    packages = found(one_of("system", system, registry()))
    if not packages:
        known = [name for name, kind in of_kind(TableSystem).items() if found(kind)]
        raise ConfigError(f"found '{system}', whose client is in no stack; allowed: {', '.join(known)}")
    return packages[0]


def _stack_name(package: str, version: str) -> str:
    return f"{package}-{version}".replace(".", "-")


def _counted(
    system: str, package: str, versions: list[str], stack: str, commits: str, workspace: Workspace
) -> ReleaseLedger:
    """Return the releases with their counts; raise ProvisionError if none could be counted."""
    from tidemark.results.reference.release_ledger import Release, ReleaseLedger
    from tidemark.software.stacks import other_packages
    from tidemark.systems.registry import registry

    made: list[Release] = []
    before = ""  # the stack of the last release that was counted
    for version in versions:
        name = _stack_name(package, version)
        try:
            counts = _count(system, package, version, stack, commits, workspace)
        except ProvisionError as error:
            if len(versions) == 1:
                raise
            made.append(Release(version, reason=str(error)))
            say(f"tidemark: {package} {version}: {error}")
            continue
        besides = tuple(other_packages(name, before, package)) if before else ()
        made.append(Release(version, counts, other_packages=besides))
        before = name
    if not before:
        raise ProvisionError(f"none of these releases of {package} could be counted, as the lines above say")
    return ReleaseLedger(system, registry()[system].title, package, tuple(made), stack=stack)


def _count(system: str, package: str, version: str, stack: str, commits: str, workspace: Workspace) -> Anatomy:
    """Return the counts with one release; raise ProvisionError if it cannot be installed, or not be used here."""
    import msgspec

    from tidemark.runs.anatomy import Anatomy
    from tidemark.software.stacks import lock_release, provide

    name = _stack_name(package, version)
    lock_release(name, package, version, stack)
    provide(name, workspace)
    command = [sys.executable, "-m", "tidemark", "anatomy", system, "--stack", name, "--commits", commits, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProvisionError(re.sub(r"^tidemark(\.errors\.\w+)?: ", "", done.stderr.strip().splitlines()[-1]))
    return msgspec.json.decode(done.stdout, type=Anatomy)


def _measured(
    ledger: ReleaseLedger, workspace: Workspace, config_file: Path, values: list[str]
) -> tuple[ReleaseLedger, int]:
    """Return the ledger with rates, and the exit code of their measurement; end the command if there is no rate."""
    from tidemark.machine.reboot import Restarts
    from tidemark.pipeline.reboots import run
    from tidemark.pipeline.releases import AGAIN, PLAN, overrides, with_rates, workspace_of
    from tidemark.pipeline.runner import INTERRUPTED
    from tidemark.software.stacks import copy

    stacks = {each.version: _stack_name(ledger.package, each.version) for each in ledger.counted}
    last = list(stacks.values())[-1]
    copy(again := f"{last}-{AGAIN}", last)
    own = workspace_of(ledger.system, workspace)
    say(f"tidemark: rates are measured in {own.root.relative_to(workspace.root)}, whose runs 'archive --results' packs")
    asked = [*overrides(ledger.system, [*stacks.values(), again]), *values]
    status = run(own, config_file, asked, [PLAN], Restarts.NONE)
    if status == INTERRUPTED or not (own.root / PLAN).is_file():
        raise typer.Exit(status)
    return with_rates(ledger, own.results, stacks, again), status


def _print(ledger: ReleaseLedger) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tidemark.runs.anatomy import shown

    if len(ledger.counted) == 1 and ledger.measured is None:
        (only,) = ledger.counted
        for number, sources in only.counts.commits.items() if only.counts else ():
            for counts in sources.values():
                print(*(f"{name}: {shown(count)} (commit {number:,})" for name, count in counts.items()), sep="\n")
        return
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
    for head in ledger.heads():
        table.add_column(head)
    for row in ledger.rows():
        table.add_row(*row)
    Console(markup=False, highlight=False).print(table)
    for note in ledger.notes():
        print(note)
