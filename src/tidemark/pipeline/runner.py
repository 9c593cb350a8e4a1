"""What `tidemark all` and a plain `snakemake` share: the plan, the lock of the workspace, and the verdict."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidemark.config import Config, from_snakemake, load
from tidemark.errors import ConfigError, Locked, TidemarkError
from tidemark.lifetime import say
from tidemark.machine import reboot
from tidemark.machine.processes import have_files
from tidemark.paths import REPOSITORY, Workspace, private_directory, try_to_write
from tidemark.pipeline.failure import LOCKED, PIPELINE, TARGETS, Failure, forget, noted
from tidemark.pipeline.plan import Plan, make_plan
from tidemark.pipeline.rounds import ROUND, asked_for, due, to_make
from tidemark.results.report.answer_file import read_answer
from tidemark.runs.outcome import Outcome, outcome_path
from tidemark.runs.plan import Round

# The overrides of `tidemark all`, for the Snakefile: Snakemake reads numbers below the top level as text, and
# mixes what is given for `systems` with the file's instead of putting it in its place.
OVERRIDES = "TIDEMARK_OVERRIDES"
LOGGER = "tidemark"  # what Snakemake calls its plug-in in src/snakemake_logger_plugin_tidemark
USAGE = 2  # with which Snakemake ends where it does not understand its options
REFUSED = ("it ended without a reason", "it does not understand one of the options, as reported above")
UNFINISHED = "it ended without an error before all series were measured"
SNAKEFILE = REPOSITORY / "Snakefile"
INTERRUPTED = 130
MEND = "Mend that and run the command again: what is done is not repeated."
GOES_ON = "The measurement goes on, and results are made again at its end."
# The rooms whose code makes results of run files: when a file of theirs changes, the rules make results anew.
RESULT_ROOMS = ("analysis", "results", "runs", "studies", "pipeline/build.py")
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
        forget(workspace)
        if plan.config.archive is None:
            make_due_again(plan, workspace)
    if plan.config.archive is None:
        plan.write(workspace, asked_for(plan))
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
            f"{config.origin.place(('archive',))}: found '{config.archive}', which cannot be read ({error.strerror}); "
            "allowed: a file that './tidemark archive' wrote, or null"
        ) from error


def command_line(python: str | Path) -> str:
    """How a rule's shell calls us: we replace it, so that each step is Snakemake's own child and ends with it."""
    return f"PYTHONPATH={shlex.quote(str(SNAKEFILE.parent / 'src'))} exec {shlex.quote(str(python))} -m tidemark"


def beside_input(wildcards: object, input: Sequence[str]) -> str:  # noqa: ARG001  Snakemake passes both by name
    """For rules whose first input lies in the results folder: that folder."""
    return str(Path(input[0]).parent)


def is_plain() -> bool:
    """Whether this is a Snakemake that was started without `tidemark all` around it."""
    return bool(_held)


def make_due_again(plan: Plan, workspace: Workspace) -> None:
    """Have the series that failed measured again; what they said about it is among their attempts.

    While a series waits for a boot, they stay: each boot would be theirs, and the one that waits would never have it.
    """
    waiting = reboot.read(workspace).waiting
    if plan.config.cold == "reboot" and any(spec.id == waiting for spec in due(plan.series, workspace)):
        return
    for spec in plan.series:
        path = outcome_path(workspace, spec)
        if path.exists() and Outcome.read(path).status == "failed":
            path.unlink()


class Runner:
    """Runs Snakemake in a workspace whose lock is held, and knows the first step that failed.

    What Snakemake says goes into results/logs/snakemake.log, by the plug-in in src/snakemake_logger_plugin_tidemark;
    where it is only asked what it would do, or told of another logger, it speaks for itself.
    """

    def __init__(
        self, workspace: Workspace, config_file: Path, overrides: list[str], arguments: list[str], cores: int = 1
    ) -> None:
        self.workspace = workspace
        self.failure: Failure | None = None  # of the last `make`
        own = is_dry(arguments) or "--logger" in arguments
        self._options = [
            *arguments,
            *([] if own else ["--logger", LOGGER]),
            "--snakefile",
            str(SNAKEFILE),
            "--cores",
            str(cores),
            "--configfile",
            str(config_file),
        ]
        self._environment = {**os.environ, LOCKED: "1", OVERRIDES: json.dumps(overrides)}
        self._environment.pop(ROUND, None)

    def make(self, *targets: str, after: Round | None = None) -> int:
        """Make `targets` (everything, when there is none); 0, or the exit code to end with.

        Everything is what there is `after` a round, where one is given. ConfigError for a target that is none.
        """
        forget(self.workspace)
        self.failure = None
        environment = self._environment | ({} if after is None else {ROUND: str(after.number)})
        # Targets stand before the options, some of which take all words that follow them.
        command = [sys.executable, "-m", "tidemark.pipeline.launch", *targets, *self._options]
        status = self._wait(command, environment)
        if status in (0, INTERRUPTED):
            return status
        if status < 0:
            sent = signal.Signals(-status).name
            how = f"it was ended by {sent}, by another process or by the kernel, which may lack memory"
            ended = Failure("Snakemake", how, "results/logs/snakemake.log", TidemarkError.exit_code)
        else:
            ended = Failure("Snakemake", REFUSED[status == USAGE], None, status)
        self.failure = noted(self.workspace) or ended
        if self.failure.step == TARGETS:
            raise ConfigError(self.failure.reason)
        return self.failure.exit_code

    def _wait(self, command: list[str], environment: dict[str, str]) -> int:
        """Run Snakemake as a child that cannot outlive us; the first Ctrl-C asks it to end, the second ends it.

        It has a process group of its own, so that each Ctrl-C reaches it and its step once, and through us.
        """
        guard = [sys.executable, "-m", "tidemark.lifetime", str(os.getpid()), *command]
        process = subprocess.Popen(guard, cwd=self.workspace.root, env=environment, process_group=0)
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
                say("tidemark: interrupted; finished runs are kept, the next 'all' goes on from there.")
                return INTERRUPTED


def run_all(workspace: Workspace, config_file: Path, overrides: list[str], arguments: list[str]) -> int:
    """Run the whole pipeline and say how it went; the exit code is that of the first series that failed."""
    plan = make_plan(load(config_file, overrides), workspace.root)
    folder = results_folder(plan.config)
    for note in plan.notes:
        print(f"tidemark: {note}", file=sys.stderr)
    with locked(workspace):
        shutil.rmtree(workspace.snakemake, ignore_errors=True)
        # Steps share the machine only when nothing is measured on it.
        cores = 1 if plan.config.archive is None else os.cpu_count() or 1
        runner = Runner(workspace, config_file, overrides, arguments, cores)
        if is_dry(arguments):
            return runner.make()
        try_to_write(workspace.root / folder)
        if plan.config.archive is None:
            have_files()
            drop_leftovers(workspace)
            make_due_again(plan, workspace)
        status = make_in_rounds(runner, plan, workspace)
        if plan.config.archive is None and not arguments:
            status = go_on(runner, plan, workspace, status)
    if plan.config.archive is not None:
        if status == 0:
            print(f"tidemark: made from {plan.config.archive}; results are in {workspace.root / folder}", flush=True)
            _show(workspace.root / folder)
        elif runner.failure is not None:
            _complain(runner.failure)
        return status
    return status if status == INTERRUPTED else verdict(plan, workspace, status, runner.failure)


def make_in_rounds(runner: Runner, plan: Plan, workspace: Workspace) -> int:
    """Make everything, and before that what there is after each round; 0, or the exit code to end with."""
    for each in to_make(plan, workspace) if plan.config.archive is None else ():
        status = make_round(runner, plan, workspace, each)
        if status is not None:
            return status
    return runner.make()


def go_on(runner: Runner, plan: Plan, workspace: Workspace, status: int) -> int:
    """`status`, or what came of asking Snakemake once more where it ended well before all series had ended.

    It may, after a step that made again what was there already (a lock that is newer, with the same packages).
    """
    if status == 0 and due(plan.series, workspace):
        status = make_in_rounds(runner, plan, workspace)
        if status == 0 and due(plan.series, workspace):
            runner.failure = Failure("Snakemake", UNFINISHED, "results/logs/snakemake.log", 1)
            return runner.failure.exit_code
    return status


def make_round(runner: Runner, plan: Plan, workspace: Workspace, made: Round) -> int | None:
    """Measure until the round `made`, make results of it and say where they are; None, or what to end with.

    Results that could not be made end nothing: measuring is what takes long, and they are made again after the last
    round. What keeps series from being measured does, as does whoever asked Snakemake for something else.
    """
    status = runner.make(after=made)
    if status == INTERRUPTED or due(plan.until(made), workspace):
        return status
    if runner.failure is not None:
        _complain(runner.failure, then=GOES_ON)
    else:
        _show(workspace.results, f"round {made.number} of {made.of} is measured, intervals will still change; ")
    return None


def _show(results: Path, before: str = "") -> None:
    """Where the report is, if it was made, and the answer in a few lines."""
    if (results / "report.html").is_file():
        print(f"tidemark: {before}the report is {results / 'report.html'}")
        print("".join(f"    {line}\n" for line in read_answer(results)), end="", flush=True)


def drop_leftovers(workspace: Workspace) -> None:
    """Drop what a killed pipeline left on servers that are not ours, where it left anything."""
    from tidemark.services.outside import folder_of

    if any(folder_of(workspace).glob("*.jsonl")):
        from tidemark.services import leftovers  # with the clients of all servers, which take a while to import

        leftovers.drop_leftovers(workspace)


def is_dry(arguments: list[str]) -> bool:
    """Whether Snakemake is only asked what it would do."""
    return bool({"-n", "--dry-run", "--dryrun"} & set(arguments))


def verdict(plan: Plan, workspace: Workspace, status: int, failure: Failure | None = None) -> int:
    """Say how it went, a failure's reason last; the exit code is that of the first series that failed, else `status`.

    `failure` is the step that ended the pipeline beside the series, if one did.
    """
    ended = [(spec, Outcome.read(path)) for spec in plan.series if (path := outcome_path(workspace, spec)).exists()]
    failed = [(spec, outcome) for spec, outcome in ended if outcome.status == "failed"]
    for spec, outcome in ended:
        if outcome.status == "not-run":
            print(f"tidemark: {spec.label}: not-run: {outcome.reason}", file=sys.stderr)
    counts = [f"{sum(outcome.status == 'complete' for _, outcome in ended)} of {len(plan.series)} series complete"]
    counts += [f"{len(failed)} failed"] * bool(failed)
    counts += [f"{len(plan.series) - len(ended)} not measured"] * (len(ended) < len(plan.series))
    # At once, as the reasons that follow go to the other stream.
    print(f"tidemark: {', '.join(counts)}; results are in {workspace.results}", flush=True)
    if status == 0:  # else the report is still that of before
        _show(workspace.results)
    failures = [
        Failure(spec.label, outcome.reason or "it gave no reason", f"{spec.directory}/measure.log", outcome.exit_code)
        for spec, outcome in failed
    ]
    # Series come last, as the exit code is theirs: a step fails after them where none of them has a run.
    _complain(*([failure] if failure is not None else []), *failures)
    return failed[0][1].exit_code if failed else status


def _complain(*failures: Failure, then: str = MEND) -> None:
    """What their logs say, then a line for each, `then` at the end of the last."""
    for each in failures:
        for line in each.details:
            print(f"    {line}", file=sys.stderr)
        what = f" {then}" if each is failures[-1] else ""
        print(f"tidemark: {each}{what}", file=sys.stderr, flush=True)
