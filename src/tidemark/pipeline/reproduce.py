"""Reproduction of a finding: repeated execution of its script in the environment that its locks name."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tidemark.errors import ConfigError, SystemFailure
from tidemark.machine.inventory import inventory
from tidemark.paths import Workspace, private_directory
from tidemark.results.reference.findings import Attempt, Evidence, Finding, Script, digest_of
from tidemark.runs.views import machine_words
from tidemark.services.iceberg.rest import MAIN_CLASS, compile_launcher
from tidemark.services.programs.process import Child, give, server_environment, unprivileged_account
from tidemark.services.programs.provision import provision
from tidemark.software.stacks import provide
from tidemark.software.tools import provide_tool

LONGEST_S = 300.0
REFERENCE_SERVER = "iceberg-rest"  # its main class listens on every interface, so Tidemark's launcher is used


def reproduce(workspace: Workspace, finding: Finding, runs: int, show: Callable[[str], None]) -> Evidence:
    """Run the finding's script `runs` times, with a line per run to `show`; raise SystemFailure if a run fails."""
    if finding.script is None:
        raise ConfigError(f"the finding '{finding.id}' has no script; to repeat it: {finding.repeat}")
    command = _command(workspace, finding, finding.script)
    tools = [str(provide_tool(name, workspace).parent.absolute()) for name in finding.script.tools]
    path = os.pathsep.join([*tools, os.environ.get("PATH", os.defpath)])
    attempts: list[Attempt] = []
    case, versions, day = None, {}, datetime.now(UTC).date().isoformat()
    for number in range(runs):
        began = time.monotonic()
        # The account that runs scripts may write in this folder.
        with tempfile.TemporaryDirectory(prefix="finding-", dir=private_directory(workspace.work)) as place:
            said = _run(finding, command, give(Path(place)), path)
        attempts.append(Attempt(said["seen"], said["said"], round(time.monotonic() - began, 1)))
        versions = said["versions"]
        if said["seen"] and case is None:
            case = said["evidence"]
        show(f"run {number + 1} of {runs}: {'seen' if said['seen'] else 'not seen'}: {said['said']}")
    machine = machine_words(inventory(workspace.root))
    return Evidence(finding.id, digest_of(finding), machine, tuple(versions.items()), tuple(attempts), case, day)


def _command(workspace: Workspace, finding: Finding, script: Script) -> list[str | Path]:
    command: list[str | Path] = [provide(script.stack, workspace).absolute(), finding.path]
    command += [f"--python={provide(stack, workspace).absolute()}" for stack in script.also]
    jars = [jar for name in script.jars for jar in provision(name, workspace)]
    if REFERENCE_SERVER in script.jars:
        command += [f"--main={MAIN_CLASS}", compile_launcher(workspace, jars).absolute()]
    return [*command, *(jar.absolute() for jar in jars)]


def _run(finding: Finding, command: list[str | Path], folder: Path, path: str) -> dict[str, Any]:
    log = folder / "said.log"
    env = server_environment(HOME=str(folder), TMPDIR=str(folder), PATH=path, PYTHONDONTWRITEBYTECODE="1")
    child = Child.start(
        f"The script of '{finding.id}'", command, log, env=env, cwd=folder, account=unprivileged_account()
    )
    child.run_to_end(LONGEST_S)
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith('{"seen"')]
    if not lines:
        raise SystemFailure(f"{finding.path}: printed no line of JSON with 'seen'; its output:\n{child.tail()}")
    found: dict[str, Any] = json.loads(lines[-1].replace(str(folder), "."))  # kept results name no folder of a machine
    return found
