"""Requirements for testing a single claim: the command, its time and its disk space."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from tidemark.results.claims.claims import Claim, ClaimSet
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.spec import MAIN
from tidemark.runs.views import in_order
from tidemark.schema import schema, sections

# Seconds outside the windows: a run's topic, oracle and footprint; a series' servers and cold state.
SECONDS_A_RUN, SECONDS_A_SERIES = 4.0, 12.0
SECONDS_A_WINDOW = 60.0  # for protocols without a window length, whose windows end with their work
SHARE_OF_PRODUCING = 0.35  # of a window's length
EVENT_BYTES = 1_500  # in the topic
PRODUCED_AHEAD = 1.3
OWN_SIZES = "thesis"  # protocol with the publication's sizes
SMALLEST = "smoke"
TRIP_BYTES = 60


@dataclass(frozen=True, slots=True)
class Retest:
    command: str
    seconds: float
    disk_bytes: float


def retest(claim: Claim, book: ClaimSet, run_set: RunSet | None) -> Retest:
    """Return the estimated cost of a retest, from the runs if any; windows are as long as the claim needs."""
    measure = claim.measure
    protocol = run_set.series[0].protocol if run_set else "quick"
    window, runs, repeats = _sizes(run_set, book, protocol)
    words = (
        [] if book.study in schema()["properties"]["studies"]["default"] else [f"studies={json.dumps([book.study])}"]
    )
    known = _section(book)
    shipped = known["systems"].get("default", {}) if "systems" in known else {}
    systems = {name: shipped.get(name, {}) for name in measure.systems}  # a variant also needs its options
    for key, value in (("systems", systems), ("modes", list(measure.modes))):
        if key in known and value:
            words.append(f"{book.study}.{key}={json.dumps(value)}")
    if claim.sweeps:
        words.append(f"{book.study}.sweeps={json.dumps(list(claim.sweeps))}")
        for name in claim.sweeps:
            sweep = known["sweep"]["default"].get(name, {})
            if measure.systems and not set(sweep.get("systems", ())) <= set(measure.systems):
                asked = [system for system in sweep["systems"] if system in measure.systems]
                words.append(f"{book.study}.sweep.{name}={json.dumps({**sweep, 'systems': asked})}")
    if claim.window_seconds is not None and window < claim.window_seconds:
        protocol = OWN_SIZES
        window, runs, repeats = _defaults(book)[protocol]
    if claim.needs_no_run:
        protocol = SMALLEST
    words.append(f"protocol={protocol}")
    stacks = in_order(run_set) if run_set else ()
    if list(stacks) not in ([], schema()["properties"]["stacks"]["default"]):
        words.append(f"stacks={json.dumps(list(stacks))}")
    values = 1
    if claim.sweeps:
        sweep = _section(book)["sweep"]["default"].get(claim.sweeps[0], {})
        window, runs = sweep.get("window_seconds", window), sweep.get("runs", runs)
        values = len(sweep.get("values", [1]))
        repeats = sweep.get("repeats", repeats)
    count = len(measure.systems) * len(measure.modes) * values * max(len(stacks), 1) * repeats
    seconds = count * (runs * (window * (1 + SHARE_OF_PRODUCING) + SECONDS_A_RUN) + SECONDS_A_SERIES)
    sizes = [
        _series_bytes(run_set.find(system, mode) if run_set else None, book.rates.get(mode, 0.0), window, runs)
        for system in measure.systems
        for mode in measure.modes
    ]
    tables = max(sizes, default=0.0)
    trips = max((dataset.rows for dataset in run_set.datasets), default=0) * TRIP_BYTES if run_set else 0
    quoted = " ".join(shlex.quote(word) for word in words)
    return Retest(f"./tidemark all --config {quoted}", seconds, book.set_up_bytes + trips + tables)


def _section(book: ClaimSet) -> dict[str, Any]:
    """Return the keys that the study's section of the configuration may have."""
    found: dict[str, Any] = sections()[book.study]["properties"]
    return found


def _defaults(book: ClaimSet) -> dict[str, tuple[float, int, int]]:
    protocols = _section(book)["protocols"]["default"]
    return {
        name: (sizes.get("window_seconds", SECONDS_A_WINDOW), sizes.get("runs", 1), sizes.get("repeats", 1))
        for name, sizes in protocols.items()
    }


def _sizes(run_set: RunSet | None, book: ClaimSet, protocol: str) -> tuple[float, int, int]:
    """Return window seconds, runs and repeats of the protocol of the runs, or of the one that would be used."""
    complete = [series for series in run_set.series if series.sweep == MAIN and series.runs] if run_set else []
    if complete:
        first = complete[0]
        repeats = [repeat for series in complete for repeat in series.repeats]
        most = run_set.round.of if run_set and run_set.round else max(len(series.repeats) for series in complete)
        return first.runs[0].manifest.window_s, max(len(repeat.runs) for repeat in repeats), most
    return _defaults(book).get(protocol, _defaults(book)["quick"])


def _series_bytes(series: Series | None, rate: float, window: float, runs: int) -> float:
    """Estimate the peak bytes of topic and tables of one series; metadata of many commits grows faster than assumed.

    `rate`: events per second if it was not measured.
    """
    if series is None or not series.runs:
        return rate * window * (EVENT_BYTES * PRODUCED_AHEAD + 100 * runs)
    last = series.runs[-1]
    scale = window / max(last.manifest.window_s, 1e-9)
    return scale * (last.manifest.events * EVENT_BYTES * PRODUCED_AHEAD + runs * _table_bytes(last))


def _table_bytes(run: Run) -> float:
    footprint = run.manifest.footprint
    if footprint is None:
        return 0.0
    return footprint.data_bytes + footprint.metadata_bytes + (footprint.catalog_bytes or 0)
