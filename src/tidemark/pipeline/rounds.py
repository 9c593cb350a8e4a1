"""End of the rounds of a measurement: as soon as all ratios are as narrow as asked, or their time is spent.

The rule looks at the widths of intervals alone, never at what they say, and so leaves their coverage as it is
(tests/pipeline/test_stopping.py). It looks after each block of rounds, first after `FIRST_LOOK` blocks: fewer than
three cannot show what a start of the servers adds. A block that was begun is finished; one that is not measured any
more has the outcome `LEFT_OUT`, with the reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from tidemark.errors import AnalysisError
from tidemark.paths import Workspace, write_atomically
from tidemark.pipeline.plan import due, likely_seconds
from tidemark.process_lifetime import run_guarded
from tidemark.runs.outcome import LEFT_OUT, Outcome, SeriesRecord, outcome_path
from tidemark.runs.plan import Goal, PlanFile, Round
from tidemark.runs.spec import SeriesSpec

FIRST_LOOK = 4  # blocks
UNKNOWN_MINUTES = 5.0  # of likely time; as much says half of what this machine's pace is
PAUSE_MINUTES = 5.0  # between two series; a longer time was no part of the measurement
GOAL = "goal.json"  # in the workspace's private folder: the goal for which rounds were left out


def over(
    specs: Sequence[SeriesSpec], goal: Goal, workspace: Workspace, python: str = sys.executable
) -> tuple[str, bool] | None:
    """Return why the block of the series `specs` is not measured any more; None if it is to be measured.

    The second value is True if the block before it was measured. The goal's minutes are those of its study. `python`
    has the analysis's libraries, which that of a stack lacks.
    """
    if goal == Goal():
        return None
    planned = [each for each in PlanFile.read(workspace.plan).series if each.study == specs[0].study]
    series = [SeriesSpec.read(workspace.root / each.directory / "spec.json") for each in planned]
    block, done = specs[0].block, specs[0].repeat - 1
    of_block = [spec for spec in series if spec.block == block]  # those of other stacks included
    if any(SeriesRecord(workspace.root / spec.directory).finished() for spec in of_block):
        return None
    for spec in left_out((spec for spec in series if spec.in_round and spec.repeat == done), workspace):
        return Outcome.read(outcome_path(workspace, spec)).reason or "", False
    ahead = due(series, workspace)
    next_block = [spec for spec in ahead if spec.in_round and spec.block == block]
    after = [spec for spec in ahead if not spec.in_round]
    minutes = spent_minutes(workspace.root / spec.directory for spec in series)
    widths = widths_after(done, workspace, python) if goal.precision and block > FIRST_LOOK else {}
    # Rounds tell how much faster or slower than likely this machine is, but not how much faster it starts servers.
    waiting = {spec.id for spec in ahead}
    likely = likely_seconds(spec for spec in series if spec.id not in waiting) / 60
    pace = minutes / likely if likely else 1.0
    more = (likely_seconds(next_block) * pace + likely_seconds(after) * max(1.0, pace)) / 60
    why = why_to_end(goal, done, widths, minutes, more)
    return None if why is None else (why, True)


def leave_out(specs: Iterable[SeriesSpec], goal: Goal, workspace: Workspace, why: str) -> list[Outcome]:
    """Write the outcome of the series of a block that is not measured any more."""
    write_atomically(workspace.private / GOAL, json.dumps(asdict(goal)) + "\n")
    return [SeriesRecord(workspace.root / spec.directory).end(LEFT_OUT, why) for spec in specs]


def make_due_again(series: Iterable[SeriesSpec], goal: Goal, workspace: Workspace) -> None:
    """Make rounds that were left out for another goal due again."""
    try:
        if Goal(**json.loads((workspace.private / GOAL).read_text())) == goal:
            return
    except (OSError, ValueError, TypeError):
        return
    for spec in left_out(series, workspace):
        outcome_path(workspace, spec).unlink()


def left_out(series: Iterable[SeriesSpec], workspace: Workspace) -> list[SeriesSpec]:
    """Return those of `series` whose round is not measured any more."""
    paths = ((spec, outcome_path(workspace, spec)) for spec in series if spec.in_round)
    return [spec for spec, path in paths if path.exists() and Outcome.read(path).status == LEFT_OUT]


def why_to_end(goal: Goal, number: int, widths: Mapping[str, float], minutes: float, more: float) -> str | None:
    """Return why the rounds end after round `number`, or None if they go on.

    `widths`: half-width of the interval of each ratio, in per cent, by its name; empty before the first look.
    `minutes`: spent so far. `more`: what another block and all that is measured after the rounds would take.
    """
    wide = {name: width for name, width in widths.items() if not width <= goal.precision}
    if goal.precision and widths and not wide:
        return f"the rounds ended after {number}: the 95 % interval of each ratio is within ±{goal.precision:g} %"
    if not goal.minutes or minutes + more <= goal.minutes:
        return None
    said = f"the rounds ended after {number}: with more of them, measuring would take over {goal.minutes:g} minutes"
    if not widths:
        return said
    widest = sorted(wide, key=lambda name: -wide[name])
    others = [f"{len(widest) - 3} more"] if len(widest) > 3 else []
    named = ", ".join([f"{name} (±{wide[name]:.0f} %)" for name in widest[:3]] + others)
    return f"{said}; not yet within ±{goal.precision:g} %: {named}"


def pace(series: Iterable[SeriesSpec], due_ids: Set[str], minutes: float, workspace: Workspace) -> float:
    """Return how much longer than likely the series that are not due took, which is in all `minutes`; 1 without any."""
    ended = (each for each in series if each.id not in due_ids)
    tried = (each for each in ended if SeriesRecord(workspace.root / each.directory).attempts())
    return (minutes + UNKNOWN_MINUTES) / (likely_seconds(tried) / 60 + UNKNOWN_MINUTES)


def spent_minutes(folders: Iterable[Path]) -> float:
    """Return the minutes from the first attempt at any of these series to now, without long pauses."""
    spans = sorted(
        (datetime.fromisoformat(each.started_at), datetime.fromisoformat(each.ended_at or each.started_at))
        for folder in folders
        for each in SeriesRecord(folder).attempts()
    )
    if not spans:
        return 0.0
    total, last = 0.0, spans[0][0]
    for begun, ended in [*spans, (now := datetime.now(last.tzinfo), now)]:
        gap = (begun - last).total_seconds() / 60
        total += gap if 0 < gap <= PAUSE_MINUTES else 0.0
        total += max(0.0, (ended - max(begun, last)).total_seconds() / 60)
        last = max(last, ended)
    return total


def widths_after(number: int, workspace: Workspace, python: str) -> dict[str, float]:
    """Return the half-widths of the ratios after round `number`, in per cent, by their names."""
    # In a process that ends: this one lives while series are made cold, and would keep Arrow in memory.
    target = workspace.private / "widths.json"
    status = run_guarded([python, "-m", "tidemark", "widths", "--number", str(number), "--target", str(target)])
    if status is None:
        raise KeyboardInterrupt
    if status != 0:
        raise AnalysisError(f"the widths of intervals after round {number} could not be computed: see above")
    found: dict[str, float] = json.loads(target.read_text())
    return found


def write_widths(number: int, workspace: Workspace, target: Path) -> None:
    """Write the half-widths of the ratios after round `number`, in per cent, by their names."""
    from tidemark.pipeline.build import ratio_widths

    whole, made = PlanFile.read(workspace.plan), workspace.private / "plan-widths.json"
    done = (each for each in whole.series if SeriesRecord(workspace.root / each.directory).finished())
    series = tuple(each for each in done if each.repeat <= number)  # other studies come after the rounds
    of = Round(number, max(each.repeat for each in whole.series))
    write_atomically(made, replace(whole, series=series, round=of).to_json())
    write_atomically(target, json.dumps(ratio_widths(workspace.results, made)) + "\n")
