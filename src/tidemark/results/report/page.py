"""HTML report: one file that contains its data, style and scripts, and needs no network access."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tidemark.paths import REPOSITORY, write_atomically
from tidemark.results.report.answer import in_lines
from tidemark.results.report.answer_file import write_answer
from tidemark.results.report.data import report_data
from tidemark.results.report.matrix import Subject
from tidemark.results.report.thin import thin
from tidemark.runs.coding.fields import Fields
from tidemark.runs.runset import RunSet

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
