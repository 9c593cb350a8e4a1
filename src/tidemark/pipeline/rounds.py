"""End of the rounds of a measurement: as soon as all ratios are as narrow as asked, or their time is spent.

The rule looks at the widths of intervals alone, never at what they say, and so leaves their coverage as it is
(tests/pipeline/test_stopping.py). It looks after each block of rounds, first after `FIRST_LOOK` blocks: fewer than
three cannot show what a start of the servers adds. Where only some rounds of a block fit into the time, these are
measured. A block that was begun is finished; a series that is not measured any more has the outcome `LEFT_OUT`, with
the reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from tidemark.errors import AnalysisError
from tidemark.paths import Workspace, write_atomically
from tidemark.pipeline.plan import STEP_SECONDS, due, likely_seconds
from tidemark.process_lifetime import run_guarded
from tidemark.runs.outcome import LEFT_OUT, Attempt, Outcome, SeriesRecord, outcome_path
from tidemark.runs.plan import Goal, PlanFile, Round
from tidemark.runs.spec import SeriesSpec

FIRST_LOOK = 4  # blocks
UNKNOWN_MINUTES = 5.0  # of likely time; as much says half of what this machine's pace is
PROBE_SECONDS = 4.0  # of a system that was never measured here: how fast it is, to size its topic, in the first round
PAUSE_MINUTES = 5.0  # between two series; a longer time was no part of the measurement
GOAL = "goal.json"  # in the workspace's private folder: the goal for which rounds were left out


@dataclass(frozen=True, slots=True)
class End:
    """End of the rounds: the last one that is measured, and why no more are."""

    after: int
    why: str
    known: bool = False  # from the outcome of an earlier series


def over(specs: Sequence[SeriesSpec], goal: Goal, workspace: Workspace, python: str = sys.executable) -> End | None:
    """Return after which round the block of the series `specs` ends, if not after its last; else None.

    The goal's minutes are those of its study. `python` has the analysis's libraries, which that of a stack lacks.
    """
    if goal == Goal():
        return None
    planned = [each for each in PlanFile.read(workspace.plan).series if each.study == specs[0].study]
    series = [SeriesSpec.read(workspace.root / each.directory / "spec.json") for each in planned]
    block, done = specs[0].block, specs[0].repeat - 1
    of_block = [spec for spec in series if spec.block == block]  # those of other stacks included
    last = specs[-1].repeat
    left = left_out((spec for spec in series if spec.in_round and done <= spec.repeat <= last), workspace)
    if left:
        earliest = min(left, key=lambda spec: spec.repeat)
        return End(earliest.repeat - 1, Outcome.read(outcome_path(workspace, earliest)).reason or "", known=True)
    if any(SeriesRecord(workspace.root / spec.directory).finished() for spec in of_block):
        return None
    ahead = due(series, workspace)
    next_block = [spec for spec in ahead if spec.in_round and spec.block == block]
    after = [spec for spec in ahead if not spec.in_round]
    minutes = spent_minutes(workspace.root / spec.directory for spec in series)
    look = goal.precision and block > FIRST_LOOK
    widths = widths_after(done, specs[0].study, workspace, python) if look else {}
    # Rounds tell how much faster or slower than likely this machine is, but not how much faster it starts servers.
    found = pace(series, {spec.id for spec in ahead}, workspace)
    rest = likely_seconds(after) / 60 * max(1.0, found)
    a_round = likely_seconds(next_block) / 60 * found / (last - done)
    for number in range(max(1, done), last):  # the first round is always measured
        more = rest + (number + 1 - done) * a_round
        if why := why_to_end(goal, number, widths, minutes, more):
            return End(number, why)
    return None


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
    `minutes`: spent so far. `more`: until the end of the next round, and of all that is measured after the rounds.
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
    return f"{said}; when last looked at, not within ±{goal.precision:g} %: {named}"


def pace(series: Iterable[SeriesSpec], due_ids: Set[str], workspace: Workspace) -> float:
    """Return how much longer than likely the attempts at the series that are not due took; 1 without any."""
    likely = took = UNKNOWN_MINUTES
    for spec in series:
        attempts = () if spec.id in due_ids else SeriesRecord(workspace.root / spec.directory).attempts()
        if attempts:
            took += sum((ended - begun).total_seconds() for begun, ended in map(span, attempts)) / 60
            took += 0 if spec.in_round else len(attempts) * STEP_SECONDS / 60
            likely += (likely_seconds([spec]) + (PROBE_SECONDS if spec.in_round and spec.block == 1 else 0)) / 60
    return took / likely


def span(attempt: Attempt) -> tuple[datetime, datetime]:
    """Return begin and end of an attempt; one that was killed ended when it began."""
    return datetime.fromisoformat(attempt.started_at), datetime.fromisoformat(attempt.ended_at or attempt.started_at)


def spent_minutes(folders: Iterable[Path]) -> float:
    """Return the minutes from the first attempt at any of these series to now, without long pauses."""
    spans = sorted(span(each) for folder in folders for each in SeriesRecord(folder).attempts())
    if not spans:
        return 0.0
    total, last = 0.0, spans[0][0]
    for begun, ended in [*spans, (now := datetime.now(last.tzinfo), now)]:
        gap = (begun - last).total_seconds() / 60
        total += gap if 0 < gap <= PAUSE_MINUTES else 0.0
        total += max(0.0, (ended - max(begun, last)).total_seconds() / 60)
        last = max(last, ended)
    return total


def widths_after(number: int, study: str, workspace: Workspace, python: str) -> dict[str, float]:
    """Return the half-widths of the ratios of `study` after round `number`, in per cent, by their names."""
    # In a process that ends: this one lives while series are made cold, and would keep Arrow in memory.
    target = workspace.private / "widths.json"
    wanted = ["--number", str(number), "--study", study, "--target", str(target)]
    status = run_guarded([python, "-m", "tidemark", "widths", *wanted])
    if status is None:
        raise KeyboardInterrupt
    if status != 0:
        raise AnalysisError(f"the widths of intervals after round {number} could not be computed: see above")
    found: dict[str, float] = json.loads(target.read_text())
    return found


def write_widths(number: int, study: str, workspace: Workspace, target: Path) -> None:
    """Write the half-widths of the ratios of `study` after round `number`, in per cent, by their names."""
    from tidemark.pipeline.build import ratio_widths

    whole, made = PlanFile.read(workspace.plan), workspace.private / "plan-widths.json"
    of_study = (each for each in whole.series if each.study == study and each.repeat <= number)
    series = tuple(each for each in of_study if SeriesRecord(workspace.root / each.directory).finished())
    of = Round(number, max(each.repeat for each in whole.series))
    write_atomically(made, replace(whole, series=series, round=of).to_json())
    write_atomically(target, json.dumps(ratio_widths(workspace.results, made)) + "\n")
