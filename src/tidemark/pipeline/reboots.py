"""`cold: reboot`: one series per boot, with the machine restarted in between by Tidemark or by the user.

`tidemark all` proceeds from series to series here. A plain Snakemake needs all of its jobs before it starts, and gets
those of this boot.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tidemark.config import Config, load
from tidemark.errors import ConfigError, MachineError, RebootNeeded
from tidemark.machine import reboot
from tidemark.machine.reboot import Restarts, Resume
from tidemark.measure.series import needs_restart
from tidemark.paths import Workspace
from tidemark.pipeline import runner
from tidemark.pipeline.plan import Plan, due, make_plan, provided, refuse_unusable, rounds, to_make, tools
from tidemark.runs.outcome import outcome_path
from tidemark.runs.plan import Round
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.study import registry
from tidemark.systems.registry import variant_of

PREPARATION = "the preparation of programs and trips"
SPARE_RESTARTS = 3  # in addition to one per series: for restarts lost to power failures


def check(config: Config, restarts: Restarts) -> None:
    """Raise ConfigError for restarts that the configuration does not request, MachineError if they are impossible."""
    if config.cold != "reboot" and restarts is not Restarts.NONE:
        place = config.origin.place(("cold",))
        raise ConfigError(
            f"{place}: found '{config.cold}'; --{restarts}-"
            f"{'for-' if restarts is Restarts.WAIT else ''}reboot is for 'reboot' alone"
        )
    if restarts is Restarts.ALLOW:
        reboot.may_restart()


@dataclass(frozen=True, slots=True)
class Boot:
    """Remaining work until the machine is restarted: series, and the one that waits for the restart."""

    series: tuple[SeriesSpec, ...]
    waiting: SeriesSpec


def this_boot(plan: Plan, workspace: Workspace) -> Boot | None:
    """Return what a plain Snakemake may measure in this boot; None if no series waits for another boot."""
    if plan.config.archive is not None or plan.config.cold != "reboot":
        return None
    used = bool(reboot.read(workspace).used_by) or not _is_prepared(plan, workspace)
    allowed: list[SeriesSpec] = []
    for spec in due(plan.series, workspace):
        if used and _needs_restart(spec, workspace):
            return Boot(tuple(allowed), spec)
        allowed.append(spec)
        used = used or registry()[spec.study].workload.unavailable(spec, variant_of(spec)) is None
    return None


def use_boot(plan: Plan, workspace: Workspace) -> None:
    """Record that this boot is used, if a plain Snakemake is about to fetch programs or trips."""
    if plan.config.cold == "reboot" and not _is_prepared(plan, workspace):
        reboot.claim(workspace, PREPARATION, alone=False)


def wait_for_restart(plan: Plan, workspace: Workspace, spec: SeriesSpec) -> int:
    """Record that `spec` waits, print what to do next, and return exit code 11."""
    reboot.write(workspace, replace(reboot.read(workspace), waiting=spec.id, resume=None))
    done = len(plan.series) - len(due(plan.series, workspace))
    return _say(
        f"{done} of {len(plan.series)} series are measured; {spec.id} waits for a restart. Restart the machine and "
        "type the same command again; './tidemark all --allow-reboot' does both by itself (docs/cold-starts.md)."
    )


def run(workspace: Workspace, config_file: Path, overrides: list[str], arguments: list[str], restarts: Restarts) -> int:
    """Run `tidemark all`, with restarts if configuration and command line request them; return the exit code."""
    plan = make_plan(load(config_file, overrides), workspace.root)
    refuse_unusable(plan.config)
    if runner.is_dry(arguments):
        return runner.run_all(workspace, config_file, overrides, arguments)
    check(plan.config, restarts)
    if plan.config.cold != "reboot" or plan.config.archive is not None:
        return runner.run_all(workspace, config_file, overrides, arguments)

    def go_on() -> int:
        runner.make_due_again(plan, workspace)
        count = sum(_needs_restart(spec, workspace) for spec in due(plan.series, workspace))
        command = Resume(str(config_file), tuple(overrides), tuple(arguments), count + SPARE_RESTARTS)
        return _one_series_a_boot(plan, workspace, command, restarts)

    with runner.locked(workspace):
        return _forgotten_at_the_end(workspace, go_on)


def resume(workspace: Workspace) -> int:
    """Continue after a restart, as the installed unit does; return the exit code."""

    def go_on() -> int:
        command = reboot.read(workspace).resume
        if command is None:
            raise MachineError(f"{workspace.root}: nothing waits for a restart here; its systemd unit is removed")
        reboot.settle()
        plan = make_plan(load(Path(command.config_file), list(command.overrides)), workspace.root)
        # Failed series stay failed until the user runs the command again: they could fail at every boot.
        return _one_series_a_boot(plan, workspace, command, Restarts.ALLOW)

    with runner.locked(workspace):
        return _forgotten_at_the_end(workspace, go_on)


def _forgotten_at_the_end(workspace: Workspace, go_on: Callable[[], int]) -> int:
    """Return the result of `go_on`; remove the unit unless the next restart or an interruption ended it.

    The command with which the unit would continue is removed with it.
    """
    status = 1
    try:
        status = go_on()
        return status
    except KeyboardInterrupt:
        status = runner.INTERRUPTED  # the machine shuts down, or the user stops the unit: the next boot continues
        raise
    finally:
        if status not in (RebootNeeded.exit_code, runner.INTERRUPTED):
            reboot.remove(workspace)
            state = reboot.read(workspace)
            if state.resume is not None or state.waiting is not None:
                reboot.write(workspace, replace(state, resume=None, waiting=None))


def _needs_restart(spec: SeriesSpec, workspace: Workspace) -> bool:
    return needs_restart(spec, registry()[spec.study].workload, workspace)


def _one_series_a_boot(plan: Plan, workspace: Workspace, command: Resume, restarts: Restarts) -> int:
    """Prepare, then measure series until one needs an unused boot; if none is left, make everything else."""
    snakemake = runner.Runner(workspace, Path(command.config_file), list(command.overrides), list(command.arguments))
    prepared = [workspace.root / path for path in preparation(plan)]
    before = _stamps(prepared)
    status = snakemake.make(*preparation(plan))
    if status:
        return _ended(plan, workspace, status, snakemake)
    if _stamps(prepared) != before:
        reboot.claim(workspace, PREPARATION, alone=False)
    results_after = {made.number for made in to_make(plan, workspace)}
    last: SeriesSpec | None = None  # last series measured in this boot
    for spec in due(plan.series, workspace):
        if outcome_path(workspace, spec).exists():
            continue  # of a block of rounds, with its first series
        if last is not None and last.repeat < spec.repeat and spec.repeat - 1 in results_after:
            ended = runner.make_round(snakemake, plan, workspace, Round(spec.repeat - 1, rounds(plan)))
            if ended is not None:
                return _ended(plan, workspace, ended, snakemake)
        if _needs_restart(spec, workspace) and reboot.read(workspace).used_by:
            return _restart_for(spec, plan, workspace, command, restarts)
        status = snakemake.make(str(outcome_path(workspace, spec).relative_to(workspace.root)))
        if status:
            return _ended(plan, workspace, status, snakemake)
        last = spec
    return _ended(plan, workspace, snakemake.make(), snakemake)


def _ended(plan: Plan, workspace: Workspace, status: int, snakemake: runner.Runner) -> int:
    if status in (RebootNeeded.exit_code, runner.INTERRUPTED):
        return status
    return runner.verdict(plan, workspace, status, snakemake.failure)


def preparation(plan: Plan) -> list[str]:
    """Return the files made before any series, relative to the workspace's root; a boot that makes them is used."""
    events = {f"{spec.dataset_directory}/events.json" for spec in plan.series if spec.dataset_directory}
    made = {f".tidemark/tools/{name}.json" for spec in plan.series for name in tools(spec)}
    stacks = {f".tidemark/stacks/{spec.stack}.json" for spec in plan.series}
    return [*provided(plan), *sorted(made), *sorted(stacks), *sorted(events)]


def _is_prepared(plan: Plan, workspace: Workspace) -> bool:
    return all((workspace.root / path).exists() for path in preparation(plan))


def _stamps(paths: list[Path]) -> list[int | None]:
    return [path.stat().st_mtime_ns if path.exists() else None for path in paths]


def _restart_for(spec: SeriesSpec, plan: Plan, workspace: Workspace, command: Resume, restarts: Restarts) -> int:
    """Record that `spec` waits, and restart the machine or ask the user to; return exit code 11."""
    if restarts is not Restarts.ALLOW:
        return wait_for_restart(plan, workspace, spec)
    state = replace(reboot.read(workspace), waiting=spec.id)
    if command.restarts_left == 0:
        raise MachineError(
            f"{spec.id} waits for a restart, but this machine was restarted as often as there were series, and "
            f"{SPARE_RESTARTS} times more; look into {workspace.results / 'logs'} and start again with 'all'"
        )
    left = replace(command, restarts_left=command.restarts_left - 1)
    reboot.write(workspace, replace(state, resume=left))
    reboot.install(workspace)
    _say(f"{spec.id} waits for a restart. This machine restarts now, and goes on by itself; the rest is in "
         f"{workspace.results / 'logs' / 'resume.log'}")  # fmt: skip
    reboot.restart_machine()
    return RebootNeeded.exit_code


def _say(what: str) -> int:
    print(f"tidemark: {what}", file=sys.stderr, flush=True)
    return RebootNeeded.exit_code
