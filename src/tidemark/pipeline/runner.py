"""Common parts of `tidemark all` and a plain `snakemake`: the plan, the workspace lock, targets, and the verdict."""

from __future__ import annotations

import difflib
import fcntl
import io
import json
import os
import shlex
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tidemark.config import Config, from_snakemake, load
from tidemark.errors import ConfigError, Locked, TidemarkError
from tidemark.integrity import sha256_of
from tidemark.machine import reboot
from tidemark.machine.processes import have_files
from tidemark.paths import ANSWER, REPOSITORY, Workspace, private_directory, try_to_write
from tidemark.pipeline import rounds
from tidemark.pipeline.failure import LOCKED, PIPELINE, TARGETS, Failure, forget, note, noted
from tidemark.pipeline.plan import RESULTS_SECONDS, ROUND, Plan, asked_for, due, likely_seconds, make_plan, to_make
from tidemark.process_lifetime import run_guarded, say
from tidemark.progress import duration, is_quiet, is_verbose
from tidemark.runs.outcome import Outcome, outcome_path
from tidemark.runs.plan import Goal, Round
from tidemark.runs.spec import SeriesSpec
from tidemark.schema import sections
from tidemark.services.leftovers import drop_leftovers

# The overrides of `tidemark all`, for the Snakefile: Snakemake reads numbers below the top level as text, and
# merges the value given for `systems` with the file's instead of replacing it.
OVERRIDES = "TIDEMARK_OVERRIDES"
SERIES = "series_"  # in the names of rules of series
LOGGER = "tidemark"  # Snakemake's name of the plug-in in src/snakemake_logger_plugin_tidemark
USAGE = 2  # exit code of Snakemake for invalid options
REFUSED = ("it ended without a reason", "it does not understand one of the options, as reported above")
UNFINISHED = "it ended without an error before all series were measured"
SNAKEFILE = REPOSITORY / "Snakefile"
RESULTS = "results"  # folder of the workspace; that of an archive is below it
INTERRUPTED = 130
REMOVED = "files of the results, its log among them, were removed while it ran"
MEND = "Mend that and run the command again: what is done is not repeated."
GOES_ON = "The measurement goes on, and results are made again at its end."
# Packages whose code makes results from run files: if one of their files changes, the rules make results again.
RESULT_ROOMS = ("analysis", "results", "planner", "runs", "studies", "pipeline/build.py")
_held: list[int] = []  # locks held for the lifetime of this process


def take_lock(workspace: Workspace) -> int:
    """Lock the workspace, raise Locked if another pipeline holds it; the kernel releases the lock with its holder."""
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
    """Check the configuration and write the plan; called by the Snakefile.

    Without an enclosing `tidemark all`, also take the lock and make failed series due again.
    """
    workspace, path, overrides = Workspace(root), root / config_file, os.environ.get(OVERRIDES)
    config = from_snakemake(values, path) if overrides is None else load(path, json.loads(overrides))
    plan = make_plan(config, root)
    os.environ[PIPELINE] = str(os.getpid())
    if os.environ.get(LOCKED) != "1":
        _held.append(take_lock(workspace))
        os.environ[LOCKED] = "1"
        forget(workspace)
        if plan.config.archive is None:
            make_due_again(plan, workspace)
    if plan.config.archive is None:
        plan.write(workspace, asked_for(plan))
    remove_partial(root / results_folder(plan.config))
    return plan


def remove_partial(results: Path) -> None:
    """Remove tables and figures of which some are missing, so that they are made again.

    Snakemake removes such a folder before it notes that it is being made: if it is killed between, what is left counts
    as complete.
    """
    for folder in (results / "tables", results / "figures"):
        try:
            index = json.loads((folder / "index.json").read_text())[folder.name]
            is_whole = all((folder / name).is_file() for each in index for name in each["files"])
        except (OSError, ValueError, KeyError, TypeError):
            is_whole = False
        if not is_whole:
            shutil.rmtree(folder, ignore_errors=True)


def results_folder(config: Config) -> str:
    """Return the results folder, relative to the workspace's root; an archive's results have a separate one."""
    if config.archive is None:
        return RESULTS
    try:
        return f"{RESULTS}/archive-{sha256_of(config.archive)[:12]}/results"
    except OSError as error:
        raise ConfigError(
            f"{config.origin.place(('archive',))}: found '{config.archive}', which cannot be read ({error.strerror}); "
            "allowed: a file that './tidemark archive' wrote, or null"
        ) from error


def command_line(python: str | Path) -> str:
    """Return the command of a rule's shell; `exec` makes each step Snakemake's direct child, which ends with it."""
    return f"PYTHONPATH={shlex.quote(str(SNAKEFILE.parent / 'src'))} exec {shlex.quote(str(python))} -m tidemark"


def beside_input(wildcards: object, input: Sequence[str]) -> str:  # noqa: ARG001  Snakemake passes both by name
    """Return the results folder, for rules whose first input is in it."""
    return str(Path(input[0]).parent)


def is_plain() -> bool:
    """Return True if this is a Snakemake that was started without an enclosing `tidemark all`."""
    return bool(_held)


def make_due_again(plan: Plan, workspace: Workspace) -> None:
    """Make failed series due again, whose reasons are kept among their attempts, and rounds left out for another goal.

    While a series waits for a boot, they stay failed: they would use each boot, and the waiting one never would.
    """
    waiting = reboot.read(workspace).waiting
    if plan.config.cold == "reboot" and any(spec.id == waiting for spec in due(plan.series, workspace)):
        return
    for spec in plan.series:
        path = outcome_path(workspace, spec)
        if path.exists() and Outcome.read(path).status == "failed":
            path.unlink()
    rounds.make_due_again(plan.series, plan.goal, workspace)


class Runner:
    """Runner of Snakemake in a locked workspace; `failure` is the first step that failed.

    The plug-in in src/snakemake_logger_plugin_tidemark writes Snakemake's messages to results/logs/snakemake.log; in
    a dry run, or with another logger, Snakemake prints them itself.
    """

    def __init__(
        self, workspace: Workspace, config_file: Path, overrides: list[str], arguments: list[str], cores: int = 1
    ) -> None:
        self.workspace = workspace
        self.failure: Failure | None = None  # of the last `make`
        own = is_dry(arguments) or "--logger" in arguments
        self._keeps_silent = is_dry(arguments) and not is_verbose()  # Snakemake, unless it fails
        self._options = [*arguments, *([] if own else ["--logger", LOGGER]), "--snakefile", str(SNAKEFILE)]
        self._options += ["--cores", str(cores), "--configfile", str(config_file)]
        self._environment = {**os.environ, LOCKED: "1", OVERRIDES: json.dumps(overrides)}
        self._environment.pop(ROUND, None)

    def make(self, *targets: str, after: Round | None = None) -> int:
        """Make `targets` (everything, if there are none); return 0 or the exit code to end with.

        With `after`, everything is what exists after that round. Raises ConfigError for an unknown target.
        """
        forget(self.workspace)
        self.failure = None
        environment = self._environment | ({} if after is None else {ROUND: str(after.number)})
        # Targets precede the options, some of which take all words that follow them.
        command = [sys.executable, "-m", "tidemark.pipeline.launch", *targets, *self._options]
        with TemporaryFile("w+") as said:
            kept = {"stdout": said} if self._keeps_silent else {}
            status = run_guarded(command, cwd=self.workspace.root, env=environment, **kept)
            said.seek(0)
            if status not in (0, INTERRUPTED, ConfigError.exit_code):
                print(said.read(), end="", flush=True)
        if status is None:
            say("tidemark: interrupted; finished runs are kept, the next 'all' goes on from there.")
            return INTERRUPTED
        if status in (0, INTERRUPTED):
            return status
        if status < 0:
            sent = signal.Signals(-status).name
            how = f"it was ended by {sent}, by another process or by the kernel, which may lack memory"
            ended = Failure("Snakemake", how, "results/logs/snakemake.log", TidemarkError.exit_code)
        else:
            ended = Failure("Snakemake", REFUSED[status == USAGE], None, status)
        self.failure = noted(self.workspace) or ended
        if self.failure.log is not None and not (self.workspace.root / self.failure.log).exists():
            self.failure = Failure("Snakemake", REMOVED, None, self.failure.exit_code)
        if self.failure.step == TARGETS:
            raise ConfigError(self.failure.reason)
        return self.failure.exit_code


def run_all(workspace: Workspace, config_file: Path, overrides: list[str], arguments: list[str]) -> int:
    """Run the complete pipeline and print the verdict; return the exit code, that of the first failed series if any."""
    plan = make_plan(load(config_file, overrides), workspace.root)
    dry = is_dry(arguments)
    folder = results_folder(plan.config)
    for line in plan.notes:
        print(f"tidemark: {line}", file=sys.stderr)
    with locked(workspace):
        shutil.rmtree(workspace.snakemake, ignore_errors=True)
        # Steps run in parallel only if nothing is measured on the machine.
        cores = 1 if plan.config.archive is None else os.cpu_count() or 1
        runner = Runner(workspace, config_file, overrides, arguments, cores)
        if dry:
            status = runner.make()
            if status == 0:
                print("\n".join(f"tidemark: {line}" for line in what_would_follow(plan, workspace)), flush=True)
            return status
        try_to_write(workspace.root / folder)
        if plan.config.archive is None:
            have_files()
            drop_leftovers(workspace)
            make_due_again(plan, workspace)
            if not is_quiet() and (follows := what_follows(plan, workspace)):
                print(f"tidemark: {follows}. Ctrl-C is safe: the next 'all' goes on.", flush=True)
        status = make_in_rounds(runner, plan, workspace)
        if plan.config.archive is None and not arguments:
            status = go_on(runner, plan, workspace, status)
    if plan.config.archive is not None:
        if status == 0:
            print(f"tidemark: made from {plan.config.archive}; results are in {folder}", flush=True)
            _show(workspace, folder)
        elif runner.failure is not None:
            _complain(runner.failure)
        return status
    return status if status == INTERRUPTED else verdict(plan, workspace, status, runner.failure)


def what_follows(plan: Plan, workspace: Workspace) -> str:
    """Return how many series are still to be measured, and how long that takes; empty if none is."""
    wanted = due(plan.series, workspace)
    if not wanted:
        return ""
    seconds = min(plan.seconds, likely_seconds(wanted) + RESULTS_SECONDS)
    rounds = Counter(spec.repeat for spec in wanted if spec.in_round)
    if plan.goal == Goal() or not rounds:
        return f"{len(wanted):,} series to measure, about {duration(seconds)} after set-up"
    after = len(wanted) - rounds.total()
    return (
        f"{max(rounds.values())} series in each round until intervals are narrow enough"
        f"{f', then {after} more' if after else ''}; at most {duration(seconds)} after set-up"
    )


def what_would_follow(plan: Plan, workspace: Workspace) -> Iterator[str]:
    """Yield the lines of a dry run: series, minutes and gigabytes, and the systems of each study and stack."""
    from tidemark.pipeline.build import expected_bytes

    if plan.config.archive is not None:
        place = results_folder(plan.config)
        yield f"all results would be made from {plan.config.archive}, in {place}, and nothing measured"
        return
    if not due(plan.series, workspace):
        yield "nothing is left to measure"
        return
    yield f"{what_follows(plan, workspace)}, and at most {expected_bytes(plan.series) / 1e9:.1f} GB of disk"
    parts: dict[tuple[str, str], list[SeriesSpec]] = {}
    for spec in due(plan.series, workspace):
        parts.setdefault((spec.study, spec.stack), []).append(spec)
    for (study, stack), series in parts.items():
        names = sorted({spec.name for spec in series})
        modes = sorted({spec.mode for spec in series})
        yield f"{study}, stack {stack}: {', '.join(names)}; each as {', '.join(modes)}"
    yield "nothing was done; './tidemark list series' lists all series, and -v here also what Snakemake would run"


def make_in_rounds(runner: Runner, plan: Plan, workspace: Workspace) -> int:
    """Make the results after each round, and then everything; return 0 or the exit code to end with."""
    for each in to_make(plan, workspace) if plan.config.archive is None else ():
        of_rounds = [spec for spec in due(plan.until(each), workspace) if spec.in_round]
        if of_rounds and plan.goal != Goal():  # which may end the rounds before this one
            status = runner.make(*(f"{spec.directory}/outcome.json" for spec in of_rounds))
            if status:
                return status
            if rounds.left_out(of_rounds, workspace):
                break
        ended = make_round(runner, plan, workspace, each)
        if ended is not None:
            return ended
    return runner.make()


def go_on(runner: Runner, plan: Plan, workspace: Workspace, status: int) -> int:
    """Run Snakemake again if it succeeded before all series had ended; return its new exit code, else `status`.

    This can happen after a step that made an existing file again (a newer lock with the same packages).
    """
    if status == 0 and due(plan.series, workspace):
        status = make_in_rounds(runner, plan, workspace)
        if status == 0 and due(plan.series, workspace):
            runner.failure = Failure("Snakemake", UNFINISHED, "results/logs/snakemake.log", 1)
            return runner.failure.exit_code
    return status


def make_round(runner: Runner, plan: Plan, workspace: Workspace, made: Round) -> int | None:
    """Measure up to the round `made`, make its results and print their location; return None or the exit code.

    A failure to make results does not end the pipeline: measuring takes longest, and results are made again after the
    last round. A failure to measure series does, as do other targets given to Snakemake.
    """
    status = runner.make(after=made)
    if status == INTERRUPTED or due(plan.until(made), workspace):
        return status
    if runner.failure is not None:
        _complain(runner.failure, then=GOES_ON)
    elif not is_quiet():
        _show(workspace, before=f"round {made.number} of {made.of} is measured, intervals will still change; ")
    return None


def _show(workspace: Workspace, folder: str = RESULTS, before: str = "") -> None:
    """Print the path of the report in `folder`, if it exists, and the answer in a few lines."""
    results = workspace.root / folder
    if (results / "report.html").is_file():
        print(f"tidemark: {before}the report is {folder}/report.html")
        lines = (results / ANSWER).read_text().splitlines() if (results / ANSWER).is_file() else []
        print("".join(f"    {line}\n" for line in lines), end="", flush=True)


def is_dry(arguments: list[str]) -> bool:
    """Return True if the arguments request a dry run of Snakemake; raise ConfigError for an unknown one."""
    if not arguments:
        return False
    from snakemake.cli import get_argument_parser

    with suppress(SystemExit), redirect_stderr(io.StringIO()) as said:
        return bool(get_argument_parser().parse_args(arguments).dryrun)
    raise ConfigError(f"{said.getvalue().strip().rpartition('error: ')[2]}; './tidemark all --help' lists the options")


def verdict(plan: Plan, workspace: Workspace, status: int, failure: Failure | None = None) -> int:
    """Print the verdict, with failures last; return the exit code of the first failed series, else `status`.

    `failure` is the step, other than a series, that ended the pipeline, if any.
    """
    not_needed = {spec.id for spec in rounds.left_out(plan.series, workspace)}
    wanted = [spec for spec in plan.series if spec.id not in not_needed]
    ended = [(spec, Outcome.read(path)) for spec in wanted if (path := outcome_path(workspace, spec)).exists()]
    failed = [(spec, outcome) for spec, outcome in ended if outcome.status == "failed"]
    for spec, outcome in ended:
        if outcome.status == "not-run":
            print(f"tidemark: {spec.label}: not-run: {outcome.reason}", file=sys.stderr)
    counts = [f"{sum(outcome.status == 'complete' for _, outcome in ended)} of {len(wanted)} series complete"]
    counts += [f"{len(failed)} failed"] * bool(failed)
    counts += [f"{len(wanted) - len(ended)} not measured"] * (len(ended) < len(wanted))
    counts += [f"{len(not_needed)} not needed"] * bool(not_needed)
    # Flushed at once, as the reasons that follow go to the other stream.
    print(f"tidemark: {', '.join(counts)}; results are in {RESULTS}", flush=True)
    if status == 0:  # else the report is still the previous one
        _show(workspace)
    failures = [
        Failure(spec.label, outcome.reason or "it gave no reason", f"{spec.directory}/measure.log", outcome.exit_code)
        for spec, outcome in failed
    ]
    # Series come last, as they determine the exit code: a step fails after them if none of them has a run.
    _complain(*([failure] if failure is not None else []), *failures)
    return failed[0][1].exit_code if failed else status


def _complain(*failures: Failure, then: str = MEND) -> None:
    """Print the quoted log lines and then one line for each failure, with `then` at the end of the last."""
    for each in failures:
        for line in each.details:
            print(f"    {line}", file=sys.stderr)
        what = f" {then}" if each is failures[-1] else ""
        print(f"tidemark: {each}{what}", file=sys.stderr, flush=True)


def refuse_unknown(rules: Sequence[Any], config: Config) -> None:
    """End Snakemake with exit code 2 if its command line has a target that none of its `rules` makes.

    By itself it would end with a traceback. `tidemark all` prints the recorded reason; otherwise it is printed here.
    """
    names = [rule.name for rule in rules]
    for target in _targets():
        if target not in names and not any(rule.is_producer(os.path.relpath(target)) for rule in rules):
            reason = f"no target '{target}'; {meant(target, [each for each in names if SERIES not in each], config)}"
            note(Workspace(Path.cwd()), Failure(TARGETS, reason, None, ConfigError.exit_code))
            if OVERRIDES not in os.environ:
                print(f"tidemark: {reason}", file=sys.stderr)
            sys.exit(ConfigError.exit_code)


def _targets() -> list[str]:
    """Return the targets on Snakemake's command line, which Snakemake itself knows only once the rules are read."""
    if Path(sys.argv[0]).name != "snakemake":
        return []
    from snakemake.cli import get_argument_parser

    return list(get_argument_parser().parse_known_args(sys.argv[1:])[0].targets)


def meant(word: str, rules: Collection[str], config: Config) -> str:
    """Return a suggestion with the setting or rule most similar to `word`; all rules if none is similar."""
    protocols = {name for section in config.sections.values() for name in section["protocols"]}
    known = {name: name for name in rules}
    known |= {path.stem: f"--config stacks={path.stem}" for path in (REPOSITORY / "envs").glob("*.lock")}
    known |= {name: f"--config studies={name}" for name in sections()}
    known |= {name: f"--config protocol={name}" for name in protocols}
    nearest = difflib.get_close_matches(word, known, 1, 0.6)
    return f"did you mean {known[nearest[0]]}?" if nearest else f"allowed: {', '.join(rules)}, or a file that one makes"
