"""HTML report: one file that contains its data, style and scripts, and needs no network access."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tidemark.paths import REPOSITORY, write_atomically
from tidemark.results.report.answer import in_lines
from tidemark.results.report.answer_file import write_answer
from tidemark.results.report.data import report_data
from tidemark.results.report.summary_table import Subject
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields

PAGE = REPOSITORY / "workflow" / "report" / "page"
# Concatenated in this order: a script uses declarations of earlier ones.
STYLES = ("style.css", "matrix.css", "print.css")
SCRIPTS = (
    *("base.js", "theme.js", "view.js", "filters.js"),
    *("compare.js", "matrix.js", "front.js"),
    *("plot.js", "plots.js", "claims.js", "runs.js", "app.js"),
)
MOST_BYTES = 5_000_000  # above this size, details of runs are omitted


def write_report(run_set: RunSet, subjects: Sequence[Subject], notes: Sequence[str]) -> Path:
    """Write report.html from the runs and claims.json; `notes` are the studies' notes.

    Also write answer.txt, the report's summary for a terminal. All files are in the results folder.
    """
    results = run_set.results
    Fields.read(results / "claims.json")  # if it is missing, the error explains what to do
    claims = json.loads((results / "claims.json").read_text())
    data = report_data(run_set, subjects, claims, notes)
    thin(data, lambda values: len(_page(values).encode()) <= MOST_BYTES)
    write_page(data, results / "report.html")
    repeated = any(len(series.repeats) > 1 for series in run_set.series)
    write_answer(results, in_lines(data["answers"], data["synthetic"], repeated))
    return results / "report.html"


def write_page(values: Mapping[str, Any], target: Path) -> None:
    """Write the page with its data, style and scripts to one file."""
    write_atomically(target, _page(values))


def _page(values: Mapping[str, Any]) -> str:
    data = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    parts = {
        "/*STYLE*/": "\n".join((PAGE / name).read_text() for name in STYLES),
        "/*SCRIPT*/": "\n".join((PAGE / name).read_text() for name in SCRIPTS),
        # Inside a script element, only "<" can end it or change how it is parsed.
        "/*DATA*/": data.replace("<", "\\u003c"),
    }
    page = (PAGE / "index.html").read_text()
    for place, content in parts.items():
        head, _, tail = page.partition(place)
        page = head + content + tail
    return page


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
