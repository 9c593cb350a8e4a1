"""Steps that Snakemake's rules call on the command line, each from input files to output files; and `tidemark stack`.

Each imports what it needs itself, so that the analysis does not wait for servers' clients, nor a table for Matplotlib.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from tidemark.errors import AnalysisError, ConfigError, TidemarkError, of_the_machine
from tidemark.paths import Workspace, write_atomically
from tidemark.progress import StatusLine, duration, tell
from tidemark.without_pandas import refuse_pandas

if TYPE_CHECKING:
    from tidemark.config import Config
    from tidemark.runs.plan import Goal
    from tidemark.runs.spec import SeriesSpec

steps = typer.Typer()
stack = typer.Typer(no_args_is_help=True, help="Software stacks: the same systems with other versions.")
Log = Annotated[Path | None, typer.Option(dir_okay=False, help="Also write the output to this file.")]


class Tee(io.TextIOBase):
    """Stream to a terminal and a log; lines that the terminal redraws are not repeated in the log.

    Without a terminal, progress goes only to the log (`aside`), and stderr gets one line per step.
    """

    def __init__(self, terminal: TextIO, log: TextIO) -> None:
        self._terminal, self._log = terminal, log

    def write(self, text: str) -> int:
        if text.startswith("\r"):
            self._terminal.write(text)
            return len(text)
        # On a terminal the text replaces a drawn line, which may have been longer.
        self._terminal.write(f"\x1b[K{text}" if self.isatty() else text)
        self.aside(text)
        return len(text)

    def aside(self, text: str) -> None:
        self._log.write(text)
        self._log.flush()

    def flush(self) -> None:
        self._terminal.flush()

    def isatty(self) -> bool:
        return self._terminal.isatty()


@contextlib.contextmanager
def logged(path: Path | None) -> Iterator[None]:
    """Copy stderr to `path`, with the error that ends the step, if any; do nothing if `path` is None.

    A step with a log was called by a rule: it ends with the pipeline, and reports to it why it failed.
    """
    if path is None:
        yield
        return
    from tidemark.pipeline.failure import PIPELINE, Failure, note
    from tidemark.process_lifetime import die_with_parent

    def report(reason: str, exit_code: int) -> None:
        note(Workspace(Path.cwd()), Failure(path.stem, reason, str(path), exit_code))

    # The pipeline may have been killed while this step was starting; its parent has then changed already.
    die_with_parent(int(os.environ.get(PIPELINE, os.getppid())))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file, contextlib.redirect_stderr(Tee(sys.stderr, file)):
        try:
            yield
        except TidemarkError as error:
            file.write(f"tidemark: {error}\n")
            report(str(error), error.exit_code)
            raise
        except Exception as error:
            traceback.print_exc(file=file)
            if (ours := of_the_machine(error)) is not None:
                report(str(ours), ours.exit_code)
                raise ours from error
            report(f"{type(error).__name__}: {error}", TidemarkError.exit_code)
            raise


@steps.command(hidden=True)
def unpack(
    file: Annotated[Path, typer.Option("--archive", exists=True, dir_okay=False, help="A zip that 'archive' wrote.")],
    target: Annotated[Path, typer.Option(file_okay=False, help="Folder to unpack it into.")],
    log: Log = None,
) -> None:
    """Check every file of an archive, and unpack what results are made from."""
    from tidemark.results.archive.unpack import unpack_archive

    with logged(log):
        unpack_archive(file, target)


@steps.command(hidden=True)
def dataset(
    target: Annotated[Path, typer.Option(file_okay=False, help="Folder for trips.parquet and dataset.json.")],
    config: Annotated[Path, typer.Option(help="The plan whose dataset to prepare.")] = Path(".tidemark/plan.json"),
    log: Log = None,
) -> None:
    """Acquire the trips, check them, and give each an id."""
    with logged(log):
        from tidemark.dataset import make_dataset

        settings = planned_config(config)
        made = make_dataset(settings.dataset, settings.seed, Workspace(Path.cwd()), target / "trips.parquet")
        why = f"; {log} says why" if log else ""
        kind = f"SYNTHETIC replica{why}" if made.synthetic else made.source
        tell(f"dataset: {made.name}, {made.rows:,} trips ({kind})")


def planned_config(plan: Path) -> Config:
    """Return the configuration that plan.json was made from; raise ConfigError if it cannot be read."""
    from tidemark.config import parse
    from tidemark.schema import Origin

    try:
        values = json.loads(plan.read_text())["config"]
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{plan}: cannot be read ({error}); './tidemark all --dry-run' writes it again") from error
    return parse(values, Origin(str(plan), {}))


@steps.command(hidden=True)
def events(
    trips: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="trips.parquet with ids.")],
    target: Annotated[Path, typer.Option(dir_okay=False, help="events.json to write.")],
    log: Log = None,
) -> None:
    """Encode trips as events both ways, read them back, and record their sizes."""
    with logged(log):
        from tidemark.stream.sizes import weigh

        weigh(trips).write(target)


@steps.command(rich_help_panel="Develop")
def provision(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Folders of envs/jars; all when left out.")
    ] = None,
    target: Annotated[Path | None, typer.Option(dir_okay=False, help="File to write once all of them exist.")] = None,
    log: Log = None,
) -> None:
    """Fetch the servers' programs that the locks name, verify each of them, and make them ready."""
    with logged(log):
        provision_servers(Workspace(Path.cwd()), names or [], target)


def provision_servers(workspace: Workspace, names: list[str], target: Path | None, locks: Path | None = None) -> None:
    """Fetch, verify and prepare the programs of the locks `names`; list them in `target`, or print them.

    Without names, all of `locks` (envs/jars). Servers that use these programs define their own preparation.
    """
    from tidemark.services import registry
    from tidemark.services.programs.provision import LOCKS
    from tidemark.services.programs.provision import provision as provided

    locks = locks or LOCKS
    wanted = names or sorted(path.parent.name for path in locks.glob("*/jgo.lock.toml"))
    found = {name: provided(name, workspace, locks) for name in wanted}
    for kind in registry().values():
        if kind.locks and set(kind.locks) <= set(found):
            kind.provide(workspace)
    said = {name: [jar.name for jar in jars] for name, jars in found.items()}
    if target is not None:
        write_atomically(target, json.dumps(said, indent=1) + "\n")
    else:
        print("\n".join(f"{name}: {len(jars)} jars" for name, jars in said.items()))


@steps.command(rich_help_panel="Develop")
def tool(
    name: Annotated[str, typer.Argument(help="The tool: a lock in envs/tools.")],
    target: Annotated[Path | None, typer.Option(dir_okay=False, help="File to write once it exists.")] = None,
    log: Log = None,
) -> None:
    """Make the environment of a program that a workload uses, from its lock, unless it exists."""
    with logged(log):
        from tidemark.software.tools import provide_tool

        interpreter = provide_tool(name, Workspace(Path.cwd()))
        if target is not None:
            write_atomically(target, json.dumps({"tool": name, "python": str(interpreter)}, indent=1) + "\n")


@steps.command(hidden=True)
def measure(
    spec: Annotated[list[Path], typer.Option(exists=True, dir_okay=False, help="spec.json of a series.")],
    position: Annotated[list[int] | None, typer.Option(help="Its place in the order of all series.")] = None,
    precision: Annotated[float, typer.Option(help="Half-width of intervals, in per cent, that ends rounds.")] = 0.0,
    budget: Annotated[float, typer.Option(help="Minutes after which no round begins.")] = 0.0,
    python: Annotated[str | None, typer.Option(help="Interpreter with the libraries of the analysis.")] = None,
    log: Log = None,
) -> None:
    """Measure a series, or all of a block of rounds; a failure is written to outcome.json and does not end the rest."""
    from tidemark.runs.plan import Goal

    with logged(log):
        refuse_pandas()
        _measure(
            Workspace(Path.cwd()), spec, position or [0] * len(spec), Goal(precision, budget), python or sys.executable
        )


@steps.command(hidden=True)
def widths(
    number: Annotated[int, typer.Option(help="The last round to look at.")],
    study: Annotated[str, typer.Option(help="Its ratios are looked at.")],
    target: Annotated[Path, typer.Option(help="JSON to write.")],
) -> None:
    """Compute how wide the intervals of ratios are after a round."""
    from tidemark.pipeline.rounds import write_widths

    write_widths(number, study, Workspace(Path.cwd()), target)


def _measure(workspace: Workspace, paths: list[Path], positions: list[int], goal: Goal, python: str) -> None:
    """Measure the series of each spec.json, with a line of progress for it, and one for all series."""
    from tidemark.measure.series import measure_block, measure_series
    from tidemark.pipeline.rounds import leave_out, over
    from tidemark.runs.plan import Goal
    from tidemark.runs.spec import SeriesSpec
    from tidemark.services.http import keep_loopback_direct
    from tidemark.services.leftovers import drop_leftovers
    from tidemark.studies.study import registry

    keep_loopback_direct()
    drop_leftovers(workspace)
    specs = [replace(SeriesSpec.read(path), position=at) for path, at in zip(paths, positions, strict=True)]
    began = time.monotonic()
    due_seconds, done, whole = _due(workspace, specs, goal)
    at_most = "" if goal == Goal() else "at most "  # the goal may end the rounds
    status_line = StatusLine()

    def show(spec: SeriesSpec, what: str) -> None:
        left = max(0.0, due_seconds - (time.monotonic() - began))
        place = f"{done + specs.index(spec) + 1} of {at_most}{whole} series; {at_most or 'about '}{duration(left)} left"
        status_line.show(f"{spec.label}: {what}", f"{place} for all", label=what.partition(":")[0])

    workload = registry()[specs[0].study].workload
    if specs[0].in_round and (end := over(specs, goal, workspace, python)) is not None:
        late = [spec for spec in specs if spec.repeat > end.after]
        leave_out(late, goal, workspace, end.why)
        tell(f"{_rounds(late)}: left out{'' if end.known else f', as {end.why}'}")
        specs = specs[: -len(late)]
        if not specs:
            return
    if specs[0].in_round:
        outcomes = measure_block(specs, workload, workspace, lambda spec: partial(show, spec))
    else:
        outcomes = [measure_series(specs[0], workload, workspace, partial(show, specs[0]))]
    status_line.clear()
    took, (left, *_) = duration(time.monotonic() - began), _due(workspace, [], goal)
    for place, (spec, outcome) in enumerate(zip(specs, outcomes, strict=True), done + 1):
        reason = f": {outcome.reason}" if outcome.reason else ""
        within = took if len(specs) == 1 else f"{_rounds(specs)}, which took {took}"
        of = f"{place} of {at_most}{whole} series"
        rest = f", {at_most or 'about '}{duration(left)} left" if place < whole else ""
        tell(f"{spec.label}: {outcome.status} in {within} ({of}){rest}{reason}")


def _rounds(specs: list[SeriesSpec]) -> str:
    first, last = specs[0].repeat, specs[-1].repeat
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def _due(workspace: Workspace, specs: list[SeriesSpec], goal: Goal) -> tuple[float, int, int]:
    """Return the expected seconds of `specs` and those without an outcome, the number done, and the total number.

    The seconds include overheads, at the pace so far, and are at most those that the `goal` of rounds leaves.
    The plan is read: making it again would take seconds for every series.
    """
    from tidemark.pipeline.plan import likely_seconds
    from tidemark.pipeline.rounds import pace, spent_minutes
    from tidemark.runs.outcome import outcome_path
    from tidemark.runs.plan import PlanFile
    from tidemark.runs.spec import SeriesSpec

    try:
        folders = [workspace.root / each.directory for each in PlanFile.read(workspace.plan).series]
        series = [SeriesSpec.read(folder / "spec.json") for folder in folders]
    except (AnalysisError, ConfigError, OSError):
        series = specs
    ours = {spec.id for spec in specs}
    due = [each for each in series if each.id in ours or not outcome_path(workspace, each).exists()]
    seconds = likely_seconds(due) * pace(series, {each.id for each in due}, workspace)
    if goal.minutes:
        spent = spent_minutes(workspace.root / each.directory for each in series)
        seconds = min(seconds, max(0.0, 60 * (goal.minutes - spent)))
    return seconds, len(series) - len(due), len(series)


@steps.command(hidden=True)
def measured(
    plan: Annotated[Path, typer.Option(help="The plan whose series have ended.")],
    target: Annotated[Path, typer.Option(help="File to write it to, for the results.")],
    log: Annotated[Path | None, typer.Option(help="Also write the output to this file.")] = None,
) -> None:
    """Check that results can be made: at least one run of one series exists."""
    with logged(log):
        from tidemark.runs.outcome import Outcome
        from tidemark.runs.plan import PlanFile

        folders = [Path.cwd() / each.directory for each in PlanFile.read(plan).series]
        if not any(Outcome.read(folder / "outcome.json").runs for folder in folders):
            raise AnalysisError(
                f"{plan}: no series has a run, so there is nothing to make results of; what was made before stays as "
                "it was"
            )
        write_atomically(target, plan.read_bytes())


@steps.command(rich_help_panel="Look")
def analyse(
    what: Annotated[str, typer.Argument(help="database, tables, figures, claims, paper or report.")],
    results: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="Folder with plan.json and the runs.")
    ] = Path("results"),
    log: Log = None,
) -> None:
    """Build one kind of result from the run files."""
    kinds = ("database", "tables", "figures", "claims", "paper", "report")
    with logged(log):
        if what not in kinds:
            raise ConfigError(f"found '{what}'; allowed: {', '.join(kinds)}")
        # Steps share the cores as processes; more threads in each would compete for them. NumPy reads it once.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if what != "figures":
            refuse_pandas()
        getattr(import_module("tidemark.pipeline.build"), f"build_{what}")(results)


@steps.command(hidden=True)
def resume() -> None:
    """Continue after a restart that 'all --allow-reboot' requested; the systemd unit that it installed calls this."""
    from tidemark.pipeline.reboots import resume as go_on

    raise typer.Exit(go_on(Workspace(Path.cwd())))


@stack.command("add")
def add_stack(
    name: Annotated[str, typer.Argument(help="The new stack's name.")],
    requirements: Annotated[
        Path, typer.Option("--from", exists=True, dir_okay=False, help="A requirements file, as envs/*.in are.")
    ],
) -> None:
    """Lock a new stack, make its environment, and run the conformance suite on it."""
    from tidemark.software.stacks import add

    raise typer.Exit(add(name, requirements, Workspace(Path.cwd())))


@stack.command("test")
def test_stack(name: Annotated[str, typer.Argument(help="The stack to test.")]) -> None:
    """Run the conformance suite in a stack's environment."""
    from tidemark.software.stacks import conform

    raise typer.Exit(conform(name, Workspace(Path.cwd())))


@stack.command("provide")
def provide_stack(
    name: Annotated[str, typer.Argument(help="The stack whose environment to make.")],
    target: Annotated[Path, typer.Option(dir_okay=False, help="File to write once it exists.")],
    log: Log = None,
) -> None:
    """Make a stack's environment from its lock, unless it exists (the pipeline's rules call it)."""
    with logged(log):
        from tidemark.software.stacks import provide

        interpreter = provide(name, Workspace(Path.cwd()))
        write_atomically(target, json.dumps({"stack": name, "python": str(interpreter)}, indent=1) + "\n")
