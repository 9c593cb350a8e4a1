"""What `tidemark all` and a plain `snakemake` share: the plan, the lock of the workspace, and the verdict."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidemark.config import Config, from_snakemake, load
from tidemark.errors import ConfigError, Locked
from tidemark.measure.outcome import Outcome, outcome_path
from tidemark.measure.plan import Plan, make_plan
from tidemark.paths import Workspace, private_directory

LOCKED = "TIDEMARK_LOCKED"  # set for children of a pipeline that holds the lock already
# The overrides of `tidemark all`, for the Snakefile: Snakemake reads numbers below the top level as text, and
# mixes what is given for `systems` with the file's instead of putting it in its place.
OVERRIDES = "TIDEMARK_OVERRIDES"
PIPELINE = "TIDEMARK_PIPELINE"  # the process that runs the steps, for them to end with
SNAKEFILE = Path(__file__).parents[2] / "Snakefile"
INTERRUPTED = 130
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
    """Called by the Snakefile: check the configuration and write the plan.

    Without `tidemark all` around it, it also takes the lock and makes failed series due again.
    """
    workspace = Workspace(root)
    overrides = os.environ.get(OVERRIDES)
    if overrides is None:
        plan = make_plan(from_snakemake(values, root / config_file), root)
    else:
        plan = make_plan(load(root / config_file, json.loads(overrides)), root)
    os.environ[PIPELINE] = str(os.getpid())
    if os.environ.get(LOCKED) != "1":
        _held.append(take_lock(workspace))
        os.environ[LOCKED] = "1"
        if plan.config.archive is None:
            make_due_again(plan, workspace)
    if plan.config.archive is None:
        plan.write(workspace)
    return plan


def results_folder(config: Config) -> str:
    """Where the results go, from the workspace's root: an archive's stay apart from those that are measured here."""
    if config.archive is None:
        return "results"
    try:
        with config.archive.open("rb") as file:
            return f"results/archive-{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}/results"
    except OSError as error:
        raise ConfigError(
            f"{config.source}: key 'archive': found '{config.archive}', which cannot be read ({error.strerror}); "
            "allowed: a file that './tidemark archive' wrote, or null"
        ) from error


def command_line(python: str | Path) -> str:
    """How a rule's shell calls us: we replace it, so that each step is Snakemake's own child and ends with it."""
    return f"PYTHONPATH={shlex.quote(str(SNAKEFILE.parent / 'src'))} exec {shlex.quote(str(python))} -m tidemark"


def beside_input(wildcards: object, input: Sequence[str]) -> str:  # noqa: ARG001  Snakemake passes both by name
    """For rules whose first input lies in the results folder: that folder."""
    return str(Path(input[0]).parent)


def make_due_again(plan: Plan, workspace: Workspace) -> None:
    """Have the series that failed measured again; what they said about it is among their attempts."""
    for spec in plan.series:
        path = outcome_path(workspace, spec)
        if path.exists() and Outcome.read(path).status == "failed":
            path.unlink()


class Runner:
    """Runs Snakemake in a workspace whose lock is held, and knows the exit code of the first step that failed."""

    def __init__(
        self, workspace: Workspace, config_file: Path, overrides: list[str], arguments: list[str], cores: int = 1
    ) -> None:
        self.workspace = workspace
        self._options = [
            *arguments,
            "--snakefile",
            str(SNAKEFILE),
            "--cores",
            str(cores),
            "--configfile",
            str(config_file),
        ]
        self._environment = {**os.environ, LOCKED: "1", OVERRIDES: json.dumps(overrides)}

    def make(self, *targets: str) -> int:
        """Make `targets` (everything, when there is none); 0, or the exit code to end with."""
        failed_step(self.workspace).unlink(missing_ok=True)
        # Targets stand before the options, some of which take all words that follow them.
        status = self._wait([sys.executable, "-m", "snakemake", *targets, *self._options])
        if status not in (0, INTERRUPTED):
            with contextlib.suppress(OSError, ValueError):
                return int(failed_step(self.workspace).read_text())
        return status

    def _wait(self, command: list[str]) -> int:
        """Run Snakemake as a child that cannot outlive us; the first Ctrl-C asks it to end, the second ends it.

        It has a process group of its own, so that each Ctrl-C reaches it and its step once, and through us.
        """
        guard = [sys.executable, "-m", "tidemark.lifetime", str(os.getpid()), *command]
        process = subprocess.Popen(guard, cwd=self.workspace.root, env=self._environment, process_group=0)
        how: signal.Signals | None = None
        while True:
            try:
                status = process.wait()
            except KeyboardInterrupt:
                how = signal.SIGINT if how is None else signal.SIGKILL
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, how)
            else:
                if how is None:
                    return status
                print(
                    "tidemark: interrupted; finished runs are kept, the next 'all' goes on from there.",
                    file=sys.stderr,
                )
                return INTERRUPTED


def failed_step(workspace: Workspace) -> Path:
    """Where a step of the pipeline leaves the exit code that Snakemake does not pass on."""
    return workspace.private / "failed-step"


def note_failed_step(workspace: Workspace, exit_code: int) -> None:
    """For the pipeline around this step, if there is one; the first failure counts."""
    if os.environ.get(LOCKED) == "1":
        with contextlib.suppress(OSError), failed_step(workspace).open("x") as file:
            file.write(str(exit_code))


def run_all(workspace: Workspace, config_file: Path, overrides: list[str], arguments: list[str]) -> int:
    """Run the whole pipeline and say how it went; the exit code is that of the first series that failed."""
    plan = make_plan(load(config_file, overrides), workspace.root)
    folder = results_folder(plan.config)
    for note in plan.notes:
        print(f"tidemark: {note}", file=sys.stderr)
    with locked(workspace):
        # Steps share the machine only when nothing is measured on it.
        cores = 1 if plan.config.archive is None else os.cpu_count() or 1
        runner = Runner(workspace, config_file, overrides, arguments, cores)
        if is_dry(arguments):
            return runner.make()
        if plan.config.archive is None:
            sweep(workspace)
            make_due_again(plan, workspace)
        status = runner.make()
    if plan.config.archive is not None:
        if status == 0:
            print(f"tidemark: made from {plan.config.archive}; results are in {workspace.root / folder}")
        return status
    return status if status == INTERRUPTED else verdict(plan, workspace, status)


def sweep(workspace: Workspace) -> None:
    """Drop what a killed pipeline left on servers that are not ours, where it left anything."""
    from tidemark.services.outside import folder_of

    if any(folder_of(workspace).glob("*.jsonl")):
        from tidemark.services import leftovers  # with the clients of all servers, which take a while to import

        leftovers.sweep(workspace)


def is_dry(arguments: list[str]) -> bool:
    """Whether Snakemake is only asked what it would do."""
    return bool({"-n", "--dry-run", "--dryrun"} & set(arguments))


def verdict(plan: Plan, workspace: Workspace, status: int) -> int:
    """Report, and the exit code to end with: that of the first series that failed, else `status`."""
    failures = report(plan, workspace)
    return failures[0].exit_code if failures else status


def report(plan: Plan, workspace: Workspace) -> list[Outcome]:
    """Print how each series ended that did not simply succeed, and what was made; the failed ones."""
    failed: list[Outcome] = []
    done = 0
    for spec in plan.series:
        path = outcome_path(workspace, spec)
        outcome = Outcome.read(path) if path.exists() else None
        if outcome is None:
            print(f"tidemark: {spec.label}: not measured", file=sys.stderr)
        elif outcome.status == "complete":
            done += 1
        else:
            print(f"tidemark: {spec.label}: {outcome.status}: {outcome.reason}", file=sys.stderr)
            if outcome.status == "failed":
                failed.append(outcome)
    print(f"tidemark: {done} of {len(plan.series)} series complete; results are in {workspace.results}")
    if failed:
        print("tidemark: run the same command again to repeat what failed; nothing else is repeated.", file=sys.stderr)
    return failed
