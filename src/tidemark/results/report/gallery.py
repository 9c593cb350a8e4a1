"""Gallery: the report's first table for many result sets, including other people's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.integrity import sha256_of
from tidemark.progress import Progress
from tidemark.results.archive.unpack import opened
from tidemark.results.figures import style
from tidemark.results.report.answer import answers, read_first
from tidemark.results.report.page import write_page
from tidemark.results.report.summary_table import Subject, asking, comparisons, question_data
from tidemark.runs.runset import RunSet
from tidemark.runs.views import dataset_label

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
    return {
        "read_first": first,
        "answers": shelf.answers,
        "matrix": {"questions": list(shelf.questions.values()), "groups": shelf.groups},
        "gallery": shelf.archives,
        "durability": [],
        "synthetic": bool(synthetic),
        "sampling": "",
        "claims": None,
        "systems": [
            {**each, "colour": colours[name]}
            for name, each in sorted(shelf.systems.items(), key=lambda pair: bool(pair[1]["harness"]))
        ],
        "quantities": [],
        "of_runs": [],
        "leading": "",
        "parts": {},
        "series": [],
    }
