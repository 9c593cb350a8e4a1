"""The steps that Snakemake's rules call: files in, files out.

Each imports what it needs itself: the analysis shall not wait for the servers' clients, nor a table for Matplotlib.
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
from tidemark.errors import ConfigError
from tidemark.paths import Workspace, write_atomically
from tidemark.progress import duration
from tidemark.schema import Origin

if TYPE_CHECKING:
    from tidemark.measure.spec import SeriesSpec

SERIES_SECONDS, RUN_SECONDS = 8.0, 5.0  # that a series and a run take beside their windows


def planned_config(plan: Path) -> Config:
    """The configuration that plan.json was made from."""
    try:
        values = json.loads(plan.read_text())["config"]
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{plan}: cannot be read ({error}); './tidemark all --dry-run' writes it anew") from error
    return parse(values, Origin(str(plan), {}))


def prepare_dataset(workspace: Workspace, plan: Path, target: Path) -> None:
    """Trips with ids as `target`/trips.parquet, their provenance beside them."""
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


def provision_servers(workspace: Workspace, target: Path) -> None:
    """Every program that a jar lock names, fetched, verified and made ready; `target` says what is there.

    Afterwards a series writes nothing below the cache, which may then be read-only.
    """
    from tidemark.services import iceberg_rest, kafka
    from tidemark.services.provision import LOCKS, provision, unpack_postgres

    found = {}
    for lock in sorted(LOCKS.glob("*/jgo.lock.toml")):
        found[lock.parent.name] = provision(lock.parent.name, workspace)
    unpack_postgres(workspace)
    launcher = iceberg_rest.compile_launcher(workspace, found["iceberg-rest"])
    iceberg_rest.archive_classes(workspace, found["iceberg-rest"], launcher)
    kafka.format_storage(workspace, found["kafka"])
    kafka.archive_classes(workspace, found["kafka"])
    names = {name: [jar.name for jar in jars] for name, jars in found.items()}
    write_atomically(target, json.dumps(names, indent=1) + "\n")


def provide_stack(name: str, workspace: Workspace, target: Path) -> None:
    """The environment of a stack; `target` says where its interpreter is."""
    from tidemark.stacks import provide

    interpreter = provide(name, workspace)
    write_atomically(target, json.dumps({"stack": name, "python": str(interpreter)}, indent=1) + "\n")


def measure_one(workspace: Workspace, path: Path, position: int) -> None:
    """Measure the series of a spec.json, with a line of progress for it and an estimate for all of them."""
    from tidemark.measure.series import measure_series
    from tidemark.measure.spec import SeriesSpec
    from tidemark.services.http import keep_loopback_direct
    from tidemark.services.leftovers import sweep

    keep_loopback_direct()
    sweep(workspace)
    spec = replace(SeriesSpec.read(path), position=position)
    began = time.monotonic()
    due = _seconds_left(workspace, spec)
    shown_at, shown_label = 0.0, ""

    def show(what: str) -> None:
        nonlocal shown_at, shown_label
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        label = what.partition(":")[0]
        if not terminal and label == shown_label and now - shown_at < 10:
            return
        shown_at, shown_label = now, label
        left = max(0.0, due - (now - began))
        line = f"{spec.label}: {what}; about {duration(left)} left for all series"
        sys.stderr.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
        sys.stderr.flush()

    outcome = measure_series(spec, workspace, show)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    reason = f": {outcome.reason}" if outcome.reason else ""
    print(
        f"{spec.label}: {outcome.status} in {duration(time.monotonic() - began)}{reason}",
        file=sys.stderr,
    )


def _seconds_left(workspace: Workspace, spec: SeriesSpec) -> float:
    """Seconds that this series and those without an outcome may still take: windows, and what surrounds them."""
    from tidemark.measure.outcome import outcome_path
    from tidemark.measure.plan import make_plan

    try:
        plan = make_plan(planned_config(workspace.plan))
    except ConfigError:
        return RUN_SECONDS + spec.window_seconds * spec.runs
    due = [each for each in plan.series if each.id == spec.id or not outcome_path(workspace, each).exists()]
    return sum(SERIES_SECONDS + each.runs * (each.window_seconds + RUN_SECONDS) for each in due)


def analyse_results(what: str, results: Path) -> None:
    """Build one kind of result from the run files."""
    places = {"database": "build", "tables": "build", "figures": "build", "claims": "ledger", "paper": "paper"}
    places |= {"report": "report"}
    if what not in places:
        raise ConfigError(f"found '{what}'; allowed: {', '.join(places)}")
    # Steps share the cores among processes; more threads in each would wait for one another. NumPy reads it once.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    module = import_module(f"tidemark.analysis.{places[what]}")
    getattr(module, f"build_{what}")(results)


def list_claims(results: Path) -> None:
    """Print a line for each claim: its name, the section, the verdict if the runs were judged, the statement."""
    from tidemark.analysis.claims import load_claims
    from tidemark.analysis.ledger_forms import overview

    path = results / "claims.json"
    print(overview(load_claims(), json.loads(path.read_text()) if path.exists() else None))


def compare_results(a: Path, b: Path, target: Path) -> None:
    """Write the comparison of two result sets below `target`, and print its table."""
    from tidemark.analysis.compare import compare, opened
    from tidemark.analysis.compare_plot import write_comparison

    with opened(a) as first, opened(b) as second:
        comparison = compare(first, second)
        written = write_comparison(comparison, target)
    print(comparison.table.markdown())
    print(f"tidemark: wrote {', '.join(map(str, written))}")
