"""The report: one HTML file with its data, style and script inside, which asks no network for anything."""

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
# Joined in this order: a script uses what those before it declare.
STYLES = ("style.css", "matrix.css", "print.css")
SCRIPTS = (
    *("base.js", "theme.js", "view.js", "filters.js"),
    *("compare.js", "matrix.js", "front.js"),
    *("plot.js", "plots.js", "claims.js", "runs.js", "app.js"),
)
MOST_BYTES = 5_000_000  # beyond, runs are thinned


def write_report(run_set: RunSet, subjects: Sequence[Subject], notes: Sequence[str]) -> Path:
    """Write report.html from the runs and from claims.json beside them; `notes` are the studies' own.

    Both files lie in the results' folder, and answer.txt with them: what the report says first, for a terminal.
    """
    results = run_set.results
    Fields.read(results / "claims.json")  # says what to do when it is not there
    claims = json.loads((results / "claims.json").read_text())
    data = report_data(run_set, subjects, claims, notes)
    thin(data, lambda values: len(_page(values).encode()) <= MOST_BYTES)
    write_page(data, results / "report.html")
    repeated = any(len(series.repeats) > 1 for series in run_set.series)
    write_answer(results, in_lines(data["answers"], data["synthetic"], repeated))
    return results / "report.html"


def write_page(values: Mapping[str, Any], target: Path) -> None:
    """Put data into the page, and all of it into one file."""
    write_atomically(target, _page(values))


def _page(values: Mapping[str, Any]) -> str:
    data = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    parts = {
        "/*STYLE*/": "\n".join((PAGE / name).read_text() for name in STYLES),
        "/*SCRIPT*/": "\n".join((PAGE / name).read_text() for name in SCRIPTS),
        # Inside a script element nothing but "<" can end it or change how it is read.
        "/*DATA*/": data.replace("<", "\\u003c"),
    }
    page = (PAGE / "index.html").read_text()
    for place, content in parts.items():
        head, _, tail = page.partition(place)
        page = head + content + tail
    return page
