"""What it takes to test one claim alone: the command, its time and its disk."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from tidemark.analysis.claims import Claim
from tidemark.analysis.run import Run
from tidemark.analysis.runs import MAIN, RunSet, Series
from tidemark.analysis.tables_stacks import in_order
from tidemark.schema import schema

# Seconds beside the windows: a run's topic, oracle and footprint; a series' servers and cold state.
SECONDS_A_RUN, SECONDS_A_SERIES = 4.0, 12.0
SHARE_OF_PRODUCING = 0.35  # of a window's length
EVENT_BYTES = 1_500  # in the topic
PRODUCED_AHEAD = 1.3
PROGRAM_BYTES, TRIP_BYTES = 700_000_000, 60
UNKNOWN_RATE = {"single": 2_000.0, "batch": 80_000.0}  # events a second of a system that was never measured here


@dataclass(frozen=True, slots=True)
class Retest:
    command: str
    seconds: float
    disk_bytes: float


def retest(claim: Claim, run_set: RunSet | None) -> Retest:
    """Estimated from the runs where there are some; windows are as long as the claim needs them."""
    measure = claim.measure
    protocol = run_set.series[0].protocol if run_set else "quick"
    window, runs, repeats = _sizes(run_set, protocol)
    words = [
        f"systems={json.dumps({name: {} for name in measure.systems})}",
        f"modes={json.dumps(list(measure.modes))}",
    ]
    if claim.studies:
        words.append(f"studies={json.dumps(list(claim.studies))}")
    if claim.window_seconds is not None and window < claim.window_seconds:
        protocol = "thesis"
        window, runs, repeats = _defaults()[protocol]
    words.append(f"protocol={protocol}")
    stacks = in_order(run_set) if run_set else ()
    if list(stacks) not in ([], schema()["properties"]["stacks"]["default"]):
        words.append(f"stacks={json.dumps(list(stacks))}")
    values = 1
    if claim.studies:
        study = schema()["properties"]["study"]["default"].get(claim.studies[0], {})
        window, runs = study.get("window_seconds", window), study.get("runs", runs)
        values = len(study.get("values", [1]))
        repeats = study.get("repeats", repeats)
    count = len(measure.systems) * len(measure.modes) * values * max(len(stacks), 1) * repeats
    seconds = count * (runs * (window * (1 + SHARE_OF_PRODUCING) + SECONDS_A_RUN) + SECONDS_A_SERIES)
    tables = max(
        _series_bytes(run_set.find(system, mode) if run_set else None, mode, window, runs)
        for system in measure.systems
        for mode in measure.modes
    )
    trips = max((dataset.rows for dataset in run_set.datasets), default=0) * TRIP_BYTES if run_set else 0
    quoted = " ".join(shlex.quote(word) for word in words)
    return Retest(f"./tidemark all --config {quoted}", seconds, PROGRAM_BYTES + trips + tables)


def _defaults() -> dict[str, tuple[float, int, int]]:
    protocols = schema()["properties"]["protocols"]["default"]
    return {
        name: (sizes["window_seconds"], sizes["runs"], sizes.get("repeats", 1)) for name, sizes in protocols.items()
    }


def _sizes(run_set: RunSet | None, protocol: str) -> tuple[float, int, int]:
    """Window, runs and repeats of the protocol that the runs were made by, or that would be used."""
    complete = [series for series in run_set.series if series.study == MAIN and series.runs] if run_set else []
    if complete:
        first = complete[0]
        repeats = [repeat for series in complete for repeat in series.repeats]
        most = max(len(series.repeats) for series in complete)
        return first.runs[0].manifest.window_s, max(len(repeat.runs) for repeat in repeats), most
    return _defaults().get(protocol, _defaults()["quick"])


def _series_bytes(series: Series | None, mode: str, window: float, runs: int) -> float:
    """Topic and tables of one series at their largest; metadata of many commits grows faster than is assumed here."""
    if series is None or not series.runs:
        return UNKNOWN_RATE[mode] * window * (EVENT_BYTES * PRODUCED_AHEAD + 100 * runs)
    last = series.runs[-1]
    scale = window / max(last.manifest.window_s, 1e-9)
    return scale * (last.manifest.events * EVENT_BYTES * PRODUCED_AHEAD + runs * _table_bytes(last))


def _table_bytes(run: Run) -> float:
    footprint = run.manifest.footprint
    return footprint.data_bytes + footprint.metadata_bytes + (footprint.catalog_bytes or 0)
