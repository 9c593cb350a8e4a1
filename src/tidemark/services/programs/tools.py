"""Locations of tools: third-party programs in separate Python environments, which `software.tools` installs."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark import integrity
from tidemark.errors import ConfigError, ProvisionError
from tidemark.integrity import sha256_of
from tidemark.paths import REPOSITORY, Workspace

TOOLS = REPOSITORY / "envs" / "tools"


def tool_lock(name: str) -> Path:
    """Return the lock of the tool `name`; raise ConfigError if there is none."""
    path = TOOLS / f"{name}.lock"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in TOOLS.glob("*.lock"))) or "none"
        raise ConfigError(f"found no tool '{name}', as {path} is missing; allowed: {known}")
    return path


def tool_environment(name: str, workspace: Workspace) -> Path:
    """Return the folder of the tool's environment, which may not exist yet; it changes with the lock."""
    return workspace.cache.absolute() / "tools" / f"{name}-{sha256_of(tool_lock(name))[:12]}"


def tool_packages(name: str, workspace: Workspace) -> Path:
    """Return the folder of its packages, for an interpreter of the same version to use in addition to its own."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return tool_environment(name, workspace) / "lib" / version / "site-packages"


def tool_program(name: str, program: str, workspace: Workspace) -> Path:
    """Return the path of `program` in the tool's environment after `check_tool`, which may raise ProvisionError."""
    return check_tool(name, workspace) / "bin" / program


def check_tool(name: str, workspace: Workspace) -> Path:
    """Return the folder of the tool's environment after checking it, unless it is in an immutable store.

    Raise ProvisionError if it is missing, or differs from what was installed by the hashes of its lock.
    """
    folder = tool_environment(name, workspace)
    found = [] if integrity.in_a_store(folder) else integrity.differences(folder)
    if found is None or found:
        text = "; ".join(found[: integrity.SHOWN]) if found else f"{folder} is not there, or was never finished"
        raise ProvisionError(f"{text}. './tidemark tool {name}' makes it by {tool_lock(name)}.")
    return folder
