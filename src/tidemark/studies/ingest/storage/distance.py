"""Effect of an object store's distance on commits: serial round trips, the slope of latency over round-trip time."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent
from tidemark.analysis.statistics import Replicates, slope_of
from tidemark.runs.runset import Series
from tidemark.studies.ingest.parts import part_of
from tidemark.studies.ingest.quantities import P50
from tidemark.studies.ingest.storage.settings import STORAGE, rtt_of
from tidemark.studies.ingest.writers.settings import ONE


def far(measures: Measures) -> dict[str, list[Series]]:
    """Return the series of the part by system, the nearest store first."""
    found: dict[str, list[Series]] = {}
    for each in measures.run_set.select(harness=False):
        if part_of(each.mode) == STORAGE:
            found.setdefault(each.system, []).append(each)
    return {system: sorted(series, key=lambda one: rtt_of(one.mode)) for system, series in found.items()}


def local(measures: Measures, system: str) -> Series | None:
    """Return the series of one writer of the same system with files on the local disk, or None."""
    return next((each for each in measures.run_set.select(mode=f"{ONE}-1") if each.system == system), None)


def medians(measures: Measures, series: list[Series]) -> list[tuple[int, Replicates]]:
    """Return pairs of the round trip and the median commit, both in milliseconds; Absent medians are left out."""
    found = []
    for each in series:
        with suppress(Absent):
            found.append((rtt_of(each.mode), measures.hot(P50, each).linear()))
    return found


def round_trips(measures: Measures, series: list[Series]) -> Replicates:
    """Return the slope of the median commit over the store's round trip, both in ms (Theil 1950, Sen 1968).

    It is the number of serial waits of a commit for the store. Raise Absent for fewer than two distances; the slope
    has no interval if one of the medians, of too few commits, has none.
    """
    found = medians(measures, series)
    if len(found) < 2:
        raise Absent("needs the medians at two distances or more")
    return slope_of(found)
