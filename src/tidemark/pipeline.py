"""What `tidemark all` and a plain `snakemake` share: the plan, the lock of the workspace, and the verdict."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidemark.config import from_snakemake, load
from tidemark.errors import Locked, TidemarkError
from tidemark.measure.plan import Plan, make_plan
from tidemark.measure.series import Outcome, outcome_path
from tidemark.paths import Workspace, private_directory

LOCKED = "TIDEMARK_LOCKED"  # set for children of a pipeline that holds the lock already
# The overrides of `tidemark all`, for the Snakefile: Snakemake reads numbers below the top level as text, and
# mixes what is given for `systems` with the file's instead of putting it in its place.
OVERRIDES = "TIDEMARK_OVERRIDES"
SNAKEFILE = Path(__file__).parents[2] / "Snakefile"
_held: list[int] = []  # a lock taken for the life of this process


def take_lock(workspace: Workspace) -> int:
    """Keep other pipelines out of the workspace; the kernel lets go of the lock when the holder ends."""
    path = private_directory(workspace.private) / "pipeline.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 64).decode().strip() or "unknown"
        os.close(descriptor)
        raise Locked(
            f"another pipeline (process {holder}) works in {workspace.root}; wait until it ends, or end it"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


@contextmanager
def locked(workspace: Workspace) -> Iterator[None]:
    descriptor = take_lock(workspace)
    try:
        yield
    finally:
        os.close(descriptor)


def enter(values: Mapping[str, Any], root: Path, config_file: str) -> Plan:
    """Called by the Snakefile: check the configuration, write the plan, and make failed series due again."""
    workspace = Workspace(root)
    overrides = os.environ.get(OVERRIDES)
    if overrides is None:
        plan = make_plan(from_snakemake(values, root / config_file))
    else:
        plan = make_plan(load(root / config_file, json.loads(overrides)))
    if os.environ.get(LOCKED) != "1":
        _held.append(take_lock(workspace))
        os.environ[LOCKED] = "1"
    plan.write(workspace)
    for spec in plan.series:
        path = outcome_path(workspace, spec)
        if path.exists() and Outcome.read(path).status == "failed":
            path.replace(path.with_name("last-failure.json"))
    return plan


def run_all(workspace: Workspace, config_file: Path, overrides: list[str], arguments: list[str]) -> int:
    """Run the whole pipeline and say how it went; the exit code is that of the first series that failed."""
    plan = make_plan(load(config_file, overrides))
    with locked(workspace):
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--cores", "1"]
        command += ["--configfile", str(config_file), *arguments]
        status = _run(command, workspace.root, {LOCKED: "1", OVERRIDES: json.dumps(overrides)})
    if status == 130:
        return status
    if "--dry-run" in arguments or "-n" in arguments:
        return status
    failures = report(plan, workspace)
    if failures:
        return failures[0].exit_code
    return status


def _run(command: list[str], root: Path, environment: Mapping[str, str]) -> int:
    """Run Snakemake as a child that gets our Ctrl-C from the terminal itself and cannot outlive us."""
    guard = [sys.executable, "-m", "tidemark.lifetime", str(os.getpid()), *command]
    process = subprocess.Popen(guard, cwd=root, env={**os.environ, **environment})
    while True:
        try:
            status = process.wait()
            return 130 if status == -2 else status
        except KeyboardInterrupt:
            # Snakemake ends its job and itself; a second Ctrl-C comes here as well and is waited for too.
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(2)
            process.wait()
            print("tidemark: interrupted; finished runs are kept, the next 'all' goes on from there.", file=sys.stderr)
            return 130


def report(plan: Plan, workspace: Workspace) -> list[Outcome]:
    """Print how each series ended that did not simply succeed, and what was made; the failed ones."""
    failed: list[Outcome] = []
    done = 0
    for spec in plan.series:
        path = outcome_path(workspace, spec)
        outcome = Outcome.read(path) if path.exists() else None
        if outcome is None:
            print(f"tidemark: {spec.name} {spec.mode_label}: not measured", file=sys.stderr)
        elif outcome.status == "complete":
            done += 1
        else:
            print(f"tidemark: {spec.name} {spec.mode_label}: {outcome.status}: {outcome.reason}", file=sys.stderr)
            if outcome.status == "failed":
                failed.append(outcome)
    print(f"tidemark: {done} of {len(plan.series)} series complete; results are in {workspace.results}")
    if failed:
        print("tidemark: run the same command again to repeat what failed; nothing else is repeated.", file=sys.stderr)
    return failed


def show_error(error: TidemarkError) -> int:
    """Print `error` for a person and return its exit code."""
    print(f"tidemark: {error}", file=sys.stderr)
    return error.exit_code
