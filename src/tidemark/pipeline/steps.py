"""Steps that Snakemake's rules call, each from input files to output files.

Each imports what it needs itself, so that the analysis does not wait for servers' clients, nor a table for Matplotlib.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.config import Config, parse
from tidemark.errors import AnalysisError, ConfigError
from tidemark.paths import Workspace, write_atomically
from tidemark.progress import StatusLine, duration
from tidemark.schema import Origin

if TYPE_CHECKING:
    from tidemark.runs.spec import SeriesSpec


def planned_config(plan: Path) -> Config:
    """Return the configuration that plan.json was made from; raise ConfigError if it cannot be read."""
    try:
        values = json.loads(plan.read_text())["config"]
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{plan}: cannot be read ({error}); './tidemark all --dry-run' writes it again") from error
    return parse(values, Origin(str(plan), {}))


def prepare_dataset(workspace: Workspace, plan: Path, target: Path) -> None:
    """Write trips with ids to `target`/trips.parquet, and their provenance next to it."""
    from tidemark.dataset import DatasetSettings, make_dataset

    config = planned_config(plan)
    chosen = config.dataset
    settings = DatasetSettings(chosen.source, chosen.paths, chosen.rows, chosen.synthetic_rows, config.seed)  # type: ignore[arg-type]
    made = make_dataset(settings, workspace, target / "trips.parquet")
    kind = "SYNTHETIC replica" if made.synthetic else made.source
    print(f"dataset: {made.name}, {made.rows:,} trips ({kind})", file=sys.stderr)


def describe_events(trips: Path, target: Path) -> None:
    from tidemark.stream.sizes import weigh

    weigh(trips).write(target)


def provision_servers(workspace: Workspace, names: list[str], target: Path | None, locks: Path | None = None) -> None:
    """Fetch, verify and prepare the programs of the locks `names`; list them in `target`, or print them.

    Without names, all of `locks` (envs/jars). Servers that use these programs define their own preparation.
    """
    from tidemark.services import registry
    from tidemark.services.programs.provision import LOCKS, provision

    locks = locks or LOCKS
    wanted = names or sorted(path.parent.name for path in locks.glob("*/jgo.lock.toml"))
    found = {name: provision(name, workspace, locks) for name in wanted}
    for kind in registry().values():
        if kind.locks and set(kind.locks) <= set(found):
            kind.provide(workspace)
    said = {name: [jar.name for jar in jars] for name, jars in found.items()}
    if target is not None:
        write_atomically(target, json.dumps(said, indent=1) + "\n")
    else:
        print("\n".join(f"{name}: {len(jars)} jars" for name, jars in said.items()))


def provide_stack(name: str, workspace: Workspace, target: Path) -> None:
    """Make the environment of a stack, and write the path of its interpreter to `target`."""
    from tidemark.software.stacks import provide

    interpreter = provide(name, workspace)
    write_atomically(target, json.dumps({"stack": name, "python": str(interpreter)}, indent=1) + "\n")


def provide_tool(name: str, workspace: Workspace, target: Path | None) -> None:
    """Make the environment of a workload's tool, and write the path of its interpreter to `target`, if given."""
    from tidemark.software.tools import provide_tool as provide

    interpreter = provide(name, workspace)
    if target is not None:
        write_atomically(target, json.dumps({"tool": name, "python": str(interpreter)}, indent=1) + "\n")


def measure_one(workspace: Workspace, path: Path, position: int) -> None:
    """Measure the series of a spec.json, with a line of progress for it, and one for all series."""
    from tidemark.measure.series import measure_series
    from tidemark.runs.spec import SeriesSpec
    from tidemark.services.http import keep_loopback_direct
    from tidemark.services.leftovers import drop_leftovers
    from tidemark.studies.registry import registry

    keep_loopback_direct()
    drop_leftovers(workspace)
    spec = replace(SeriesSpec.read(path), position=position)
    began = time.monotonic()
    due_seconds, done, whole = _due(workspace, spec)
    place = f"{done + 1} of {whole} series"
    status_line = StatusLine()

    def show(what: str) -> None:
        left = max(0.0, due_seconds - (time.monotonic() - began))
        status_line.show(
            f"{spec.label}: {what}", f"{place}; about {duration(left)} left for all", label=what.partition(":")[0]
        )

    outcome = measure_series(spec, registry()[spec.study].workload, workspace, show)
    status_line.clear()
    reason = f": {outcome.reason}" if outcome.reason else ""
    print(f"{spec.label}: {outcome.status} in {duration(time.monotonic() - began)} ({place}){reason}", file=sys.stderr)


def _due(workspace: Workspace, spec: SeriesSpec) -> tuple[float, int, int]:
    """Return the expected seconds of this series and those without an outcome, the number done, and the total number.

    The seconds include windows and overheads. The plan is read: making it again would take seconds for every series.
    """
    from tidemark.pipeline.duration_estimate import likely_seconds
    from tidemark.runs.outcome import outcome_path
    from tidemark.runs.plan import PlanFile
    from tidemark.runs.spec import SeriesSpec

    try:
        folders = [workspace.root / each.directory for each in PlanFile.read(workspace.plan).series]
        series = [SeriesSpec.read(folder / "spec.json") for folder in folders]
    except (AnalysisError, ConfigError, OSError):
        series = [spec]
    due = [each for each in series if each.id == spec.id or not outcome_path(workspace, each).exists()]
    return likely_seconds(due), len(series) - len(due), len(series)


def check_measured(workspace: Workspace, plan: Path, target: Path) -> None:
    """Copy `plan` to `target`; raise AnalysisError if none of its series has a run from which to make results."""
    from tidemark.runs.outcome import Outcome
    from tidemark.runs.plan import PlanFile

    folders = [workspace.root / each.directory for each in PlanFile.read(plan).series]
    if not any(Outcome.read(folder / "outcome.json").runs for folder in folders):
        raise AnalysisError(
            f"{plan}: no series has a run, so there is nothing to make results of; what was made before stays as it was"
        )
    write_atomically(target, plan.read_bytes())


def analyse_results(what: str, results: Path) -> None:
    """Build one kind of result from the run files; raise ConfigError for an unknown kind."""
    kinds = ("database", "tables", "figures", "claims", "paper", "report")
    if what not in kinds:
        raise ConfigError(f"found '{what}'; allowed: {', '.join(kinds)}")
    # Steps share the cores as processes; more threads in each would compete for them. NumPy reads the variable once.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    getattr(import_module("tidemark.pipeline.build"), f"build_{what}")(results)


def list_claims(results: Path) -> None:
    """Print a line for each claim: name, section, verdict if the runs were judged, and statement."""
    from tidemark.pipeline.build import all_claims, judged_claims
    from tidemark.results.claims.export import overview

    print(overview(all_claims(), judged_claims(results)))


def compare_results(a: Path, b: Path, target: Path) -> None:
    """Write the comparison of two result sets below `target`, and print its tables."""
    from tidemark.pipeline.reference import build_comparison

    made, written, left_out = build_comparison(a, b, target)
    print("\n".join(table.markdown() for table in made))
    for reason in left_out:
        print(f"tidemark: {reason}")
    print(f"tidemark: wrote {', '.join(map(str, written))}")
