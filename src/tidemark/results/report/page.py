"""HTML report: one file that contains its data, style and scripts, and needs no network access.

The gallery is the same page with the report's first table for one or more archives; the results site has it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.integrity import sha256_of
from tidemark.paths import ANSWER, REPOSITORY, write_atomically
from tidemark.progress import Progress
from tidemark.results.archive.unpack import opened
from tidemark.results.figures import style
from tidemark.results.report.answer import answers, in_lines, of_one, read_first
from tidemark.results.report.data import report_data
from tidemark.results.report.summary_table import Subject, asking, comparisons, question_data
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields
from tidemark.runs.views import dataset_label

PAGE = REPOSITORY / "workflow" / "report" / "page"
# Concatenated in this order: a script uses declarations of earlier ones.
STYLES = ("style.css", "matrix.css", "print.css")
SCRIPTS = (
    *("base.js", "theme.js", "markers.js", "view.js", "filters.js"),
    *("compare.js", "matrix.js", "front.js"),
    *("plot.js", "plots.js", "claims.js", "runs.js", "app.js"),
)
MOST_BYTES = 5_000_000  # above this size, details of runs are omitted
MOST_ON_SITE = 290_000  # the same for a page of the results site, less the list of downloads
POINTS = "points.html"
OVER_TIME = ("write", "read", "cpu", "disk")  # points over the seconds of a run
DOWNLOADS = (  # files in the folder of the page, and what they hold
    ("paper.pdf", "a paper of these results"),
    ("claims.csv", "each published claim with its verdict"),
    ("tables/index.json", "a list of all tables, which are there as CSV, Markdown and JSON"),
    ("figures/index.json", "a list of all figures, which are there as SVG, PDF and PNG"),
    ("metrics.duckdb", "every measurement, to query"),
    ("plan.json", "the settings of every series"),
)
WHOLE = "Files of each run lie below runs/, in the folder of this page."


def write_report(run_set: RunSet, subjects: Sequence[Subject], notes: Sequence[str]) -> Path:
    """Write report.html from the runs and claims.json; `notes` are the studies' notes.

    Also write answer.txt, the report's summary for a terminal. All files are in the results folder.
    """
    results = run_set.results
    claims = Fields.read(results / "claims.json").values
    data = report_data(run_set, subjects, claims, notes) | {"downloads": DOWNLOADS}
    thin(data, lambda values: len(_page(values).encode()) <= MOST_BYTES)
    write_page(data, results / "report.html")
    about = data["synthetic"], run_set.is_repeated
    lines = of_one(subjects, *about) or in_lines(data["answers"], *about)
    write_atomically(results / ANSWER, "".join(f"{line}\n" for line in lines))
    return results / "report.html"


def write_site_report(
    run_set: RunSet,
    subjects: Sequence[Subject],
    notes: Sequence[str],
    downloads: Sequence[tuple[str, str]],
    target: Path,
) -> None:
    """Write the report of an archive as a page of the results site, whose other pages have its claims and tables.

    Where it would be larger than a page of the site, POINTS beside it is the same report with the times of single
    operations. `downloads` are paths from the page, each with a description. Each run links to its run.json.
    """
    data = report_data(run_set, subjects, {}, notes) | {"claims": None, "back": "index.html"}
    for series in data["series"]:
        _manifests(series)
    whole = copy.deepcopy(data)
    thin(data, lambda values: len(_page(values).encode()) < MOST_ON_SITE)
    if data != whole:
        thin(whole, lambda values: len(_page(values).encode()) <= MOST_BYTES)
        write_page(whole | {"downloads": downloads}, target.with_name(POINTS))
        downloads = [(POINTS, "this page with the times of single operations and all facts of each run"), *downloads]
    write_page(data | {"downloads": downloads}, target)


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
        page = page.replace(place, content, 1)
    return page


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


type Subjects = Callable[[RunSet], Sequence[Subject]]  # returns the studies of a run set


@dataclass(slots=True)
class _Shelf:
    """Data collected from the result sets so far."""

    archives: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    questions: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    systems: dict[str, dict[str, Any]] = field(default_factory=dict)


def write_gallery(places: Sequence[Path], subjects: Subjects, target: Path) -> Path:
    """Write one page for the result sets at `places` (archives or folders), each with a separate comparison.

    Raise AnalysisError for the first that is incomplete or damaged; nothing is written in that case.
    """
    colours: dict[str, str] = {}  # of each system, the same in all result sets
    shelf = _Shelf()
    with Progress("gallery", len(places), " result sets") as progress:
        for number, place in enumerate(places):
            with opened(place) as run_set:
                _add(shelf, _name(place, shelf), place, run_set, subjects(run_set), colours)
            progress.update(number + 1, place.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_page(_data(shelf, colours), target)
    return target


def _name(place: Path, shelf: _Shelf) -> str:
    """Return the file name without its suffix, numbered if the name is already used."""
    taken, name, number = {each["name"] for each in shelf.archives}, place.stem or place.resolve().stem, 1
    while name in taken:
        number += 1
        name = f"{place.stem} ({number})"
    return name


def _add(
    shelf: _Shelf, name: str, place: Path, run_set: RunSet, subjects: Sequence[Subject], colours: dict[str, str]
) -> None:
    colours.update(style.colours((*colours, *(series.system for series in run_set.series))))
    told = {each["label"]: each for each in read_first(run_set, [subject.measures for subject in subjects])}
    shelf.archives.append(
        {
            "name": name,
            "sha256": sha256_of(place) if place.is_file() else "",  # a folder may change
            "title": name,
            "machine": told["Machine"]["text"],
            "dataset": dataset_label(run_set),
            "synthetic": any(dataset.synthetic for dataset in run_set.datasets),
            "protocol": told["Protocol"]["text"],
            "version": ", ".join(sorted({each.version for each in run_set.harnesses if each})) or "not recorded",
            "harness": told["Measured by"]["text"].partition("; page made")[0],
            "runs": len(run_set.runs),
            "marks": [told["Marks"]["text"]],
            "failures": [told["Failures"]["text"]],
        }
    )
    compared = asking(subjects)
    shelf.groups += comparisons(compared, colours, name)
    for subject in compared:
        for each in question_data(subject.questions, subject.groups):
            known = shelf.questions.setdefault(each["key"], each)
            known["shown"] = known["shown"] or each["shown"]
        for group in subject.groups:
            for found in answers(group, subject.questions)[:2]:
                shelf.answers.append({**found, "title": f"{name}, stack {group.stack}: {found['title']}"})
            for row in group.rows:
                title = {"name": row.asked.system, "title": row.title, "harness": row.asked.series[0].is_null_baseline}
                shelf.systems.setdefault(row.asked.system, title)


def _data(shelf: _Shelf, colours: dict[str, str]) -> dict[str, Any]:
    """Return the same structure as `report_data`, without data on individual runs and claims."""
    synthetic = [archive["name"] for archive in shelf.archives if archive["synthetic"]]
    first = [
        {"label": "Result sets", "text": f"{len(shelf.archives):,}, each checked file by file", "warning": False},
        {
            "label": "What compares",
            "text": "Systems inside one result set and stack. Between result sets machine, dataset and versions may "
            "differ, so that no ratio is taken across them.",
            "warning": False,
        },
    ]
    if synthetic:
        first.append({"label": "Dataset", "text": f"SYNTHETIC in: {', '.join(synthetic)}", "warning": True})
    markers = style.shapes(shelf.systems)
    return {
        "read_first": first,
        "answers": shelf.answers,
        "matrix": {"questions": list(shelf.questions.values()), "groups": shelf.groups},
        "gallery": shelf.archives,
        "back": "index.html",
        "durability": [],
        "synthetic": bool(synthetic),
        "sampling": "",
        "claims": None,
        "systems": [
            {**each, "colour": colours[name], "marker": markers[name]}
            for name, each in sorted(shelf.systems.items(), key=lambda pair: bool(pair[1]["harness"]))
        ],
        "quantities": [],
        "of_runs": [],
        "leading": "",
        "parts": {},
        "series": [],
    }
