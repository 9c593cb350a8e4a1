"""`tidemark releases`: the counts of a commit with several releases of a system's client, and what changed in each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.anatomy import numbers_of
from tidemark.errors import ConfigError, ProvisionError
from tidemark.paths import Workspace
from tidemark.process_lifetime import say

if TYPE_CHECKING:
    from tidemark.runs.anatomy import Anatomy
    from tidemark.systems.base import System

VERSION = re.compile(r"\d+(\.\d+)+([a-z]+\d+)?")


def releases(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="One of the tables that 'list systems' prints.")],
    versions: Annotated[
        list[str], typer.Argument(metavar="VERSION...", help="Releases of the client's package, oldest first.")
    ],
    commits: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Commits to count, by number from 1, such as 1,10,100.")
    ] = "10,100",
    stack: Annotated[
        str, typer.Option(metavar="NAME", help="The software stack that has all other packages.")
    ] = "current",
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts of all releases as JSON.")] = False,
) -> None:
    """Count the parts of a commit with several releases of a client, and name what changed from each to the next.

    Each release gets a stack of its own, PACKAGE-VERSION, which is locked in envs/ and stays there: 'all' measures it
    as it does any other stack. A release that cannot be installed or used here says why, and the others go on.
    """
    from tidemark.runs.anatomy import shown

    client = _package(system)
    numbers_of(commits)
    for version in versions:
        if not VERSION.fullmatch(version):
            raise ConfigError(f"VERSION: found '{version}'; allowed: a release of {client}, such as 1.5.5")
    workspace = Workspace(Path.cwd())
    found: dict[str, Anatomy] = {}
    reasons: dict[str, str] = {}
    for version in versions:
        try:
            found[version] = _count(system, client, version, stack, commits, workspace)
        except ProvisionError as error:
            reasons[version] = str(error)
            say(f"tidemark: {client} {version}: {error}")
    if as_json:
        counted = {version: json.loads(each.to_json()) for version, each in found.items()}
        print(json.dumps({"system": system, "package": client, "releases": counted, "not counted": reasons}, indent=1))
        return
    pairs = list(found.items())
    for (version, each), (before, kept) in zip(pairs[1:], pairs, strict=False):
        print(f"{client} {before} to {version}:")
        differences = list(each.differences(kept, "before"))
        print("\n".join(f"  {said}" for said in differences) or "  every count is the same")
    if len(pairs) == 1:
        for number, sources in pairs[0][1].commits.items():
            for counts in sources.values():
                print(*(f"{name}: {shown(count)} (commit {number:,})" for name, count in counts.items()), sep="\n")
    if len(pairs) > 1:
        names = ", ".join(_stack_name(client, version) for version in found)
        measured = f"./tidemark all --config 'stacks=[{names}]' 'streams.systems={{{system}: {{}}}}'"
        say(f"tidemark: how fast they are, in the same rounds, measures: {measured}")
    if not found:
        raise ProvisionError(f"none of these releases of {client} could be counted, as the lines above say")


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
        raise ProvisionError(done.stderr.strip().splitlines()[-1].removeprefix("tidemark: "))
    return msgspec.json.decode(done.stdout, type=Anatomy)
