"""Tools: software that a workload, server or client needs in addition to its stack, in separate environments.

A tool is a lock in `envs/tools`, made from the requirements next to it. No stack contains its packages, so the clients
under test remain exactly those in the stack's lock. A tool that is a program shares no packages with them; packages
that only one client needs are added after the packages of that client's stack.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tidemark.paths import Workspace
from tidemark.services.programs.tools import tool_environment, tool_lock, tool_packages
from tidemark.software.environments import install, read_lock


def tool_python(name: str, workspace: Workspace) -> Path:
    """Return the interpreter of the tool's environment, which changes with the lock."""
    return tool_environment(name, workspace) / "bin" / "python"


def packages(names: Iterable[str], workspace: Workspace) -> dict[str, Path]:
    """Return the absolute package folders of several tools, by name."""
    return {name: tool_packages(name, workspace).absolute() for name in names}


def provide_tool(name: str, workspace: Workspace) -> Path:
    """Create the tool's environment unless it exists, and return its interpreter."""
    install(tool_lock(name), tool_environment(name, workspace), None)
    return tool_python(name, workspace)


def tool_files(name: str, workspace: Workspace) -> tuple[Path, ...]:
    """Return the code files of its packages, which are read when it starts."""
    found = []
    for parent, _, names in os.walk(tool_environment(name, workspace)):
        found += [Path(parent, each) for each in names if each.endswith((".py", ".pyc", ".so"))]
    return tuple(sorted(found))


def tool_versions(name: str) -> dict[str, str]:
    """Return the version of the tool's main package from its lock, which pip checked by hash."""
    pins = {pin.name.lower(): pin for pin in read_lock(tool_lock(name))}
    return {name: pins[name].version} if name in pins else {}
