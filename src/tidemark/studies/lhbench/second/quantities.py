"""Query times of a second engine on the same tables; Absent, with the reason, if it has no correct answer."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tidemark.analysis.quantities import LOWER, Absent, Quantity
from tidemark.analysis.statistics import Replicates, known
from tidemark.runs.run import Run
from tidemark.studies.lhbench.judge.readers import DUCKLAKE
from tidemark.studies.lhbench.quantities import SECONDS, found, sound
from tidemark.studies.lhbench.second.ways import NOT_ASKED
from tidemark.studies.lhbench.window.script import AFTER, BEFORE


def ways_of(run: Run, phase: str) -> dict[str, Any]:
    """Return the results of a phase by way of reading the tables; Absent if no query ran."""
    said = found(sound(run)).get("second", {}).get(phase, {"reason": NOT_ASKED})
    if "ways" not in said:
        raise Absent(said["reason"])
    return dict(said["ways"])


def _of(run: Run, phase: str, way: str | None) -> dict[str, Any]:
    """Return the results of one way; `way` None: the way that reads the first engine's own tables."""
    ways = ways_of(run, phase)
    chosen = next((each for each in ways if each != DUCKLAKE), DUCKLAKE) if way is None else way
    if chosen not in ways:
        raise Absent(NOT_ASKED)
    return dict(ways[chosen])


def query_s(run: Run, phase: str, way: str | None, query: str) -> float:
    """Return the median of a query over the passes in seconds, as for the first engine."""
    told = _of(run, phase, way)["queries"].get(query)
    if told is None:
        raise Absent(f"{query} was not asked")
    if told["words"]:
        raise Absent(f"{query}: {told['words']}")
    return float(np.median(told["ns"])) * SECONDS


def _query(run: Run, phase: str, way: str, query: str) -> Replicates:
    return known(query_s(run, phase, way, query))


def _total(run: Run, phase: str, way: str | None) -> Replicates:
    return known(sum(query_s(run, phase, way, query) for query in _of(run, phase, way)["queries"]))


def _load(run: Run) -> Replicates:
    loads = _of(run, BEFORE, DUCKLAKE)["load_ns"]
    if not loads:
        raise Absent("nothing was loaded")
    return known(sum(loads.values()) * SECONDS)


def query_by(way: str, phase: str, query: str) -> Quantity:
    how = partial(_query, phase=phase, way=way, query=query)
    return Quantity(f"{query} by DuckDB, {way}, {phase}", "s", query, how, LOWER)


def total_by(way: str | None, phase: str) -> Quantity:
    """Return the quantity of all queries, the sum of their medians; `way` None: on the first engine's own tables."""
    name = f"queries by DuckDB, {way or 'its own way'}, {phase}"
    return Quantity(name, "s", "Queries by DuckDB", partial(_total, phase=phase, way=way), LOWER)


LOADED = Quantity("load of DuckLake", "s", "Load of DuckLake", _load, LOWER)
LOADED_TABLES, MERGED_TABLES = total_by(None, BEFORE), total_by(None, AFTER)
