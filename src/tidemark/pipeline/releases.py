"""Measurement of several releases of a client, in pairs within rounds: an ordinary run whose stacks are the releases.

The last release is measured a second time, as a stack of its own with the same packages: how far the two are apart is
the noise floor. It covers what twins within a stack cannot show: another environment, and servers that were started
again. The rates of a ledger of releases are computed from the run files alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tidemark.analysis.formatting import attempt, comparison
from tidemark.analysis.measures import Measures, NotAvailable
from tidemark.analysis.metrics import HIGHER, Metric
from tidemark.analysis.statistics import Estimate
from tidemark.paths import Workspace
from tidemark.pipeline.build import compared_by, parts
from tidemark.results.reference.release_ledger import WITHIN, Measured, Rate, ReleaseLedger, exceeds
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import dataset_label, days, machine_words, mixture, modes, unfinished

STUDY, PROTOCOL = "streams", "releases"
AGAIN = "again"  # the end of the name of the stack that has the last release a second time
FOLDER = "releases"  # of the working folder: a folder for each system, with its results
PLAN = "results/plan.json"  # the target there: tables, figures and a report would take minutes
# Each round is a block: what a start of the servers adds then differs from round to round, for every release.
SIZES = {
    "window_seconds": 25,
    "commits": 100,
    "least_seconds": 2,
    "runs": 2,
    "rounds": 60,
    "precision": 5,
    "budget_minutes": 30,
}


def overrides(system: str, stacks: Sequence[str]) -> list[str]:
    """Return the values of a configuration that measures one system with each of `stacks`."""
    return [
        f"studies=[{STUDY}]",
        f"protocol={PROTOCOL}",
        f"stacks={json.dumps(list(stacks))}",
        f"{STUDY}.protocols={json.dumps({PROTOCOL: SIZES})}",
        f"{STUDY}.systems={json.dumps({system: {}})}",
        f"{STUDY}.sweeps=[main]",
        f"{STUDY}.maintenance=false",
        "cold=none",
    ]


def workspace_of(system: str, workspace: Workspace) -> Workspace:
    """Return the workspace for the releases of a system: a folder in `workspace`, with whose trips and programs.

    Processes that this one starts find the programs by TIDEMARK_CACHE.
    """
    os.environ["TIDEMARK_CACHE"] = str(workspace.cache.absolute())
    own = Workspace(workspace.root / FOLDER / system)
    own.root.mkdir(parents=True, exist_ok=True)
    workspace.data.mkdir(exist_ok=True)
    if not own.data.exists():
        own.data.symlink_to(os.path.relpath(workspace.data, own.root))
    return own


def with_rates(ledger: ReleaseLedger, results: Path, stacks: Mapping[str, str], again: str) -> ReleaseLedger:
    """Return the ledger with the rates in a results folder.

    `stacks`: the stack of each release that was measured, by version, in order. `again`: that of the last release's
    copy. Raise AnalysisError if the results cannot be read.
    """
    part = parts(RunSet.load(results))[0]
    measures, run_set, quantity = part.measures, part.measures.run_set, compared_by(part)[0]
    rates: dict[str, list[Rate]] = {version: [] for version in stacks}
    floors: dict[str, float] = {}
    for mode in modes(run_set):
        found = {each.stack: each for each in run_set.series if each.mode == mode}
        of = {version: found[stack] for version, stack in stacks.items() if stack in found}
        if not of:
            continue
        first, last = next(iter(of.values())), list(of.values())[-1]
        floor = _floor(measures, quantity, last, found.get(again))
        if floor is not None:
            floors[first.mode_title] = floor
        before: Series | None = None
        for version, series in of.items():
            rates[version].append(_rate(measures, quantity, series, before, first, floor))
            before = series
    measured = Measured(
        quantity.title,
        len({each.number for each in run_set.repeats if each.runs}),
        days(run.manifest.started_at for run in run_set.runs),
        tuple(map(machine_words, run_set.machines)),
        dataset_label(run_set),
        floors,
        (*run_set.ended, *unfinished(run_set), *mixture(run_set)),
    )
    releases = tuple(replace(each, rates=tuple(rates.get(each.version, ()))) for each in ledger.releases)
    return replace(ledger, releases=releases, measured=measured)


def _floor(measures: Measures, quantity: Metric, last: Series, again: Series | None) -> float | None:
    """Return the noise floor in per cent; None if the last release was not measured twice."""
    if again is None:
        return None
    found = attempt("%", lambda: measures.farthest_apart(quantity, [(again, last)]))
    return found.value if isinstance(found, Estimate) else None


def _rate(
    measures: Measures, quantity: Metric, series: Series, before: Series | None, first: Series, floor: float | None
) -> Rate:
    """Return the rate with a release, compared with the one `before` it, if there is one, and with the `first`."""
    made = Rate(series.mode_title)
    try:
        made = replace(made, value=measures.hot(quantity, series).estimate(quantity.unit))
        if before is None:
            return made
        ratio = measures.ratio(quantity, series, before)
    except NotAvailable as absent:
        return replace(made, reason=str(absent))
    words = ("faster", "slower") if quantity.better == HIGHER else ("slower", "faster")
    found, verdict = ratio.estimate(""), str(comparison(lambda: ratio, *words) or "")
    is_change = floor is not None and exceeds(found, floor)
    if floor is not None and found.contains(1) is False and not is_change:
        verdict += f", {WITHIN}"
    over_first = attempt("", lambda: measures.ratio(quantity, series, first))
    shown = over_first if isinstance(over_first, Estimate) else None
    return replace(made, ratio=found, over_first=shown, verdict=verdict, is_change=is_change)
