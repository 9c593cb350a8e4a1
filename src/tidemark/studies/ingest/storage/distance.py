"""What distance to an object store does to a commit: serial round trips, by the slope of its time against them."""

from __future__ import annotations

from contextlib import suppress

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent
from tidemark.analysis.slopes import slope_of
from tidemark.analysis.statistics import Replicates
from tidemark.runs.runset import Series
from tidemark.studies.ingest.parts import part_of
from tidemark.studies.ingest.quantities import P50
from tidemark.studies.ingest.storage.settings import STORAGE, rtt_of
from tidemark.studies.ingest.writers.settings import ONE


def far(measures: Measures) -> dict[str, list[Series]]:
    """The series of the part by system, the nearest first."""
    found: dict[str, list[Series]] = {}
    for each in measures.run_set.select(harness=False):
        if part_of(each.mode) == STORAGE:
            found.setdefault(each.system, []).append(each)
    return {system: sorted(series, key=lambda one: rtt_of(one.mode)) for system, series in found.items()}


def local(measures: Measures, system: str) -> Series | None:
    """One writer of the same system, with its files on the local disk."""
    return next((each for each in measures.run_set.select(mode=f"{ONE}-1") if each.system == system), None)


def medians(measures: Measures, series: list[Series]) -> list[tuple[int, Replicates]]:
    """The median commit, in milliseconds, by the distance in milliseconds; those that there are."""
    found = []
    for each in series:
        with suppress(Absent):
            found.append((rtt_of(each.mode), measures.hot(P50, each).linear()))
    return found


def round_trips(measures: Measures, series: list[Series]) -> Replicates:
    """Milliseconds that the median commit takes longer for each that the store is farther away (Theil 1950, Sen 1968).

    That is how many times a commit waits for the store, one after the other. Absent for fewer than two distances;
    without an interval where one of the medians, of too few commits, has none.
    """
    found = medians(measures, series)
    if len(found) < 2:
        raise Absent("needs the medians at two distances or more")
    return slope_of(found)
