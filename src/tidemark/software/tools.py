"""What a workload, a server or a client works with beside its stack, in Python environments of their own.

A tool is a lock in `envs/tools`, made from the requirements beside it. No stack has its packages, so that the clients
that are measured stay what the stack's lock names. A tool that is a program meets none of theirs; packages that one
client alone needs are taken by that client after all of its stack's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tidemark.paths import Workspace
from tidemark.services.programs.tools import tool_environment, tool_lock, tool_packages
from tidemark.software.environments import install, read_lock


def tool_python(name: str, workspace: Workspace) -> Path:
    """The interpreter of the tool's environment, which changes with the lock."""
    return tool_environment(name, workspace) / "bin" / "python"


def packages(names: Iterable[str], workspace: Workspace) -> dict[str, Path]:
    """The same of several tools, by their names, wherever it is asked from."""
    return {name: tool_packages(name, workspace).absolute() for name in names}


def provide_tool(name: str, workspace: Workspace) -> Path:
    """Make the tool's environment unless it is there; its interpreter."""
    install(tool_lock(name), tool_environment(name, workspace), None)
    return tool_python(name, workspace)


def tool_files(name: str, workspace: Workspace) -> tuple[Path, ...]:
    """The code of its packages: what is read when it starts."""
    found = []
    for parent, _, names in os.walk(tool_environment(name, workspace)):
        found += [Path(parent, each) for each in names if each.endswith((".py", ".pyc", ".so"))]
    return tuple(sorted(found))


def tool_versions(name: str) -> dict[str, str]:
    """The version of the tool's first package, by its lock, which pip checked by hash."""
    pins = {pin.name.lower(): pin for pin in read_lock(tool_lock(name))}
    return {name: pins[name].version} if name in pins else {}
