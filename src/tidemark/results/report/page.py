"""The report: one HTML file with its data, style and script inside, which asks no network for anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.errors import AnalysisError
from tidemark.paths import REPOSITORY, write_atomically
from tidemark.results.report.data import report_data
from tidemark.runs.coding.fields import Fields
from tidemark.runs.runset import RunSet

PAGE = REPOSITORY / "workflow" / "report" / "page"
MOST_BYTES = 5_000_000


def write_report(run_set: RunSet, studies: Sequence[Measures], notes: Sequence[str]) -> Path:
    """Write report.html from the runs and from claims.json beside them; `notes` are the studies' own.

    Both files lie in the results' folder.
    """
    results = run_set.results
    Fields.read(results / "claims.json")  # says what to do when it is not there
    claims = json.loads((results / "claims.json").read_text())
    data = json.dumps(
        report_data(run_set, studies, claims, notes),
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )
    parts = {
        "/*STYLE*/": (PAGE / "style.css").read_text(),
        "/*SCRIPT*/": "\n".join((PAGE / name).read_text() for name in ("plot.js", "app.js")),
        # Inside a script element nothing but "<" can end it or change how it is read.
        "/*DATA*/": data.replace("<", "\\u003c"),
    }
    page = (PAGE / "index.html").read_text()
    for place, content in parts.items():
        head, _, tail = page.partition(place)
        page = head + content + tail
    if len(page.encode()) > MOST_BYTES:
        raise AnalysisError(
            f"{results / 'report.html'}: would have {len(page.encode()):,} bytes; allowed: {MOST_BYTES:,}. "
            "Ask for fewer series in one configuration."
        )
    write_atomically(results / "report.html", page)
    return results / "report.html"
