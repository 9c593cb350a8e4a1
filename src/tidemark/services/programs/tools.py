"""Where a tool lies: a program of others in a Python environment of its own, which `software.tools` makes."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark import seals
from tidemark.errors import ConfigError, ProvisionError
from tidemark.paths import REPOSITORY, Workspace
from tidemark.services.programs.provision import sha256_of

TOOLS = REPOSITORY / "envs" / "tools"


def tool_lock(name: str) -> Path:
    """The lock of the tool `name`; ConfigError where there is none."""
    path = TOOLS / f"{name}.lock"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in TOOLS.glob("*.lock"))) or "none"
        raise ConfigError(f"found no tool '{name}', as {path} is missing; allowed: {known}")
    return path


def tool_environment(name: str, workspace: Workspace) -> Path:
    """The folder of the tool's environment, there or not; it changes with the lock."""
    return workspace.cache.absolute() / "tools" / f"{name}-{sha256_of(tool_lock(name))[:12]}"


def tool_packages(name: str, workspace: Workspace) -> Path:
    """Where its packages lie, for an interpreter of the same version that takes them beside its own."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return tool_environment(name, workspace) / "lib" / version / "site-packages"


def tool_program(name: str, program: str, workspace: Workspace) -> Path:
    """The file `program` of the tool's environment, which is looked at first; ProvisionError as `check_tool` has it."""
    return check_tool(name, workspace) / "bin" / program


def check_tool(name: str, workspace: Workspace) -> Path:
    """The folder of the tool's environment, which is looked at, unless it lies where nobody changes it.

    ProvisionError where it is not there, or is not what was installed by the hashes of its lock.
    """
    folder = tool_environment(name, workspace)
    found = [] if seals.in_a_store(folder) else seals.differences(folder)
    if found is None or found:
        said = "; ".join(found[: seals.SHOWN]) if found else f"{folder} is not there, or was never finished"
        raise ProvisionError(f"{said}. './tidemark tool {name}' makes it by {tool_lock(name)}.")
    return folder
