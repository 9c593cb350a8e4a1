"""Reduction of run data in a page, so that browsers can still open it with a large number of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

OVER_TIME = ("write", "read", "cpu", "disk")  # points over the seconds of a run
WHOLE = "The files of each run lie below runs/, in the folder of this page."


def _manifests(series: dict[str, Any]) -> None:
    for run in series["runs"]:
        run["manifest"] = None


def _later_repeats_over_time(series: dict[str, Any]) -> None:
    shown: set[int] = set()
    for run in series["runs"]:
        if run["number"] in shown:
            run.update({name: [] for name in OVER_TIME})
        shown.add(run["number"])


def _facts(series: dict[str, Any]) -> None:
    for run in series["runs"]:
        run["facts"] = {"Oracle": run["facts"]["Oracle"]}


def _over_time(series: dict[str, Any]) -> None:
    for run in series["runs"]:
        run.update({name: [] for name in OVER_TIME})


def _runs(series: dict[str, Any]) -> None:
    if series["runs"]:
        series["reason"] = f"{len(series['runs']):,} runs, which are not in this page"
        series["runs"] = []


# In order of removal: the least important data first.
STEPS: Sequence[tuple[str, Callable[[dict[str, Any]], None]]] = (
    ("manifests of runs (each run has a link to its run.json)", _manifests),
    ("plots over time of all repeats but the first", _later_repeats_over_time),
    ("facts of runs other than the oracle's (in the tables cold-proof, interference and oracle)", _facts),
    ("plots over time (samples are in metrics.duckdb)", _over_time),
    ("single runs (in the tables, and in metrics.duckdb)", _runs),
)


def thin(data: dict[str, Any], is_small_enough: Callable[[dict[str, Any]], bool]) -> None:
    """Remove data in the order of STEPS until it is small enough or no run is left, and add a note to `data`."""
    entry = {"label": "Not in this page", "text": "", "warning": False}
    for step, (_, drop) in enumerate(STEPS, 1):
        if is_small_enough(data):
            return
        for series in data["series"]:
            drop(series)
        left_out = "; ".join(what for what, _ in STEPS[:step])
        entry["text"] = f"With all of the runs it would be too large to open: left out are {left_out}. {WHOLE}"
        if entry not in data["read_first"]:
            data["read_first"].append(entry)
