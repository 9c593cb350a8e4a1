"""The paper: named values, sentences, tables, figures and claims from results/, set with the sources of paper/.

Typst makes a PDF of the same bytes from the same results.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from tidemark import __version__
from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.formatting import MARGIN, listed, percent
from tidemark.errors import AnalysisError
from tidemark.machine.cold import COLD_SHARE, HOT_SHARE
from tidemark.paths import REPOSITORY, write_atomically
from tidemark.results.claims.claims import INCONCLUSIVE, NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, UNTESTED
from tidemark.results.paper.method_text import setting
from tidemark.results.paper.paper_tables import sheet, without_runs
from tidemark.results.paper.stacks import StackWriter
from tidemark.results.publication import Chapter
from tidemark.runs.dataset import Provenance
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.serde import Fields
from tidemark.runs.views import newest, one_a_system

WIDE_POINTS = 300.0  # a figure above this width takes both columns
NEEDED_FOR = "write a paper about"
PAPER = REPOSITORY / "paper"


@dataclass(frozen=True, slots=True)
class Sources:
    """Input of the paper: JSON objects as written by the steps tables, figures, claims and bench."""

    tables: tuple[Mapping[str, Any], ...]
    figures: tuple[Mapping[str, Any], ...]
    claims: Mapping[str, Any]
    bench: Mapping[str, Any] | None

    @classmethod
    def read(cls, results: Path) -> Sources:
        """Read the JSON files of `results`; raise AnalysisError, naming the file, if one is missing or unreadable."""
        index = Fields.read(results / "tables" / "index.json").values
        names = [name for entry in index["tables"] for name in entry["files"] if name.endswith(".json")]
        tables = tuple(Fields.read(results / "tables" / name).values for name in names)
        figures = tuple(Fields.read(results / "figures" / "index.json").values["figures"])
        claims, bench = Fields.read(results / "claims.json").values, results / "bench.json"
        return cls(tables, figures, claims, Fields.read(bench).values if bench.exists() else None)


def write_paper(run_set: RunSet, chapters: Sequence[Chapter], more: Mapping[str, str], paper: Path = PAPER) -> Path:
    """Write values.json to results/paper, compile the paper there, and return the path of results/paper.pdf.

    `more` maps names to sentences that concern several studies.

    Each study's chapter is copied from the study's folder to the shared sections. The compiler can read only results/,
    and uses only its bundled fonts.
    """
    # Imported here, because the compiler is 25 MB of machine code that no other step needs.
    import typst

    results = run_set.results
    found = values(run_set, Sources.read(results), chapters, more)
    stage = results / "paper"
    shutil.rmtree(stage, ignore_errors=True)
    # Copy contents only: sources may be in a read-only folder, and with its mode the copy would be read-only too.
    copies = {source: source.relative_to(paper) for source in sorted(paper.rglob("*")) if source.is_file()}
    copies |= {each.brings.chapter: Path("chapters", f"{each.study}.typ") for each in chapters}
    # The pages around the chapters come from the first study that provides them.
    fronts = [each.brings.front for each in chapters if each.brings.front]
    copies |= {path: Path("front.typ") for path in fronts[:1]}
    for source, place in copies.items():
        (stage / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, stage / place)
    write_atomically(stage / "values.json", json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    moment = newest(run_set, NEEDED_FOR).astimezone(UTC)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pdf = typst.compile(
                stage / "main.typ", root=results, ignore_system_fonts=True, font_paths=[], timestamp=moment
            )
        except typst.TypstError as error:
            raise AnalysisError(f"{stage / 'main.typ'}: the paper cannot be set: {error.diagnostic}") from error
    if caught:
        raise AnalysisError(f"{stage / 'main.typ'}: the compiler warns: {caught[0].message}")
    write_atomically(results / "paper.pdf", pdf)
    return results / "paper.pdf"


HOLDS = (
    (REPRODUCED, "holds here", "hold here"),
    (NOT_REPRODUCED, "does not", "do not"),
    (INCONCLUSIVE, "is inconclusive", "are inconclusive"),
    (UNTESTED, "is not tested by these runs", "are not tested by these runs"),
    (NOT_TESTABLE, "cannot be tested here", "cannot be tested here"),
)


def values(run_set: RunSet, sources: Sources, chapters: Sequence[Chapter], more: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of values.json, including each study's contribution. All texts are ready to print.

    `run_set` has the runs of all studies; `more` maps names to sentences that concern several studies.
    """
    first = chapters[0]
    stacks = StackWriter(first.measures, sources.claims)
    moment = newest(run_set, NEEDED_FOR)
    return {
        "synthetic": any(dataset.synthetic for dataset in run_set.datasets),
        "date": {"year": moment.year, "month": moment.month, "day": moment.day},
        "chapters": [{"study": each.study, "title": each.title} for each in chapters],
        "findings": [
            *(found for each in chapters for found in each.brings.findings(each.measures)),
            _verdicts(sources.claims["counts"]),
        ],
        "values": _together(named(run_set, sources), *(each.brings.values(each.measures.run_set) for each in chapters)),
        "sentences": _together(
            *(each.brings.sentences(each.measures) for each in chapters), setting(run_set), stacks.sentences(), more
        ),
        "stacks": stacks.table() if stacks.several else None,
        "labelled": sources.claims["labelled"],
        **_together(*(each.brings.parts(each.measures, sources.bench) for each in chapters)),
        "claims": sources.claims["claims"],
        "systems": [_system(series) for series in one_a_system(run_set) if not series.is_null_baseline],
        "tables": [sheet(without_runs(table)) for table in sources.tables],
        "sources": _sources(sources.figures),
        "figures": _named_once([_figure(figure, run_set.results) for figure in sources.figures]),
    }


def _together[Value](*parts: Mapping[str, Value]) -> dict[str, Value]:
    """Merge `parts`; raise AnalysisError if two of them use the same name."""
    made: dict[str, Value] = {}
    for part in parts:
        if twice := sorted(made.keys() & part.keys()):
            raise AnalysisError(f"the paper's values: '{twice[0]}' is made twice; a study has to rename its own")
        made |= part
    return made


def named(run_set: RunSet, sources: Sources) -> dict[str, str]:
    """Return single values by name."""
    runs = run_set.runs
    first = runs[0].manifest
    machine = first.machine
    dataset = next(iter(run_set.datasets), None)
    windows = sorted({run.manifest.window_s for run in runs})
    commits = max(run.manifest.commits_wanted for run in runs)
    counts = sources.claims["counts"]
    made = {
        "version": __version__,
        "date": f"{newest(run_set, NEEDED_FOR):%Y-%m-%d}",
        "protocol": listed(list(dict.fromkeys(series.protocol for series in run_set.series))),
        "window": (f"{commits:,} commits and at most " if commits else "") + _seconds(windows),
        "runs-a-series": f"{max(len(repeat.runs) for repeat in run_set.repeats)}",
        "hot-runs": f"{max(len(repeat.hot_runs) for repeat in run_set.repeats)}",
        "systems": f"{len({each.system for each in run_set.series if not (each.is_null_baseline or each.is_twin)}):,}",
        "runs": f"{len(runs):,}",
        "events": f"{sum(run.manifest.events for run in runs):,}",
        "operations": f"{sum(run.manifest.operations for run in runs):,}",
        "margin": percent(MARGIN),
        "seed": str(run_set.config.integer("seed", 0)),
        **_dataset(dataset),
        "os": machine.os,
        "kernel": machine.kernel,
        "cpu": machine.cpu_model,
        "cores": f"{machine.cores:,}",
        "memory": f"{machine.memory_bytes / 2**30:.1f} GiB",
        "disk": " ".join(filter(None, [machine.disk_model or machine.disk_device, machine.file_system])) or "unknown",
        "virtualised": machine.virtualised or "not virtualised",
        "cold-below": f"{100 * COLD_SHARE:g} %",
        "hot-above": f"{100 * HOT_SHARE:g} %",
        "confidence": "95 %",
        "replicates": f"{REPLICATES:,}",
        "claims": f"{sum(counts.values()):,}",
        "claims-outcomes": counted(counts),
    }
    for run in run_set.runs_with(run_set.stack):
        made |= {f"version-{name}": version for name, version in run.manifest.versions}
    return made


def _verdicts(counts: Mapping[str, int]) -> str:
    """Return a sentence with the number of published claims per verdict."""
    return f"Of {sum(counts.values()):,} published claims, {counted(counts)}."


def counted(counts: Mapping[str, int]) -> str:
    """Return the counts with the words that HOLDS has for one claim and for more; no zeros after the second verdict."""
    said = [
        f"{counts[verdict]:,} {one if counts[verdict] == 1 else more}"
        for place, (verdict, one, more) in enumerate(HOLDS)
        if counts[verdict] or place < 2
    ]
    return listed(said)


def _dataset(dataset: Provenance | None) -> dict[str, str]:
    if dataset is None:
        return {"dataset": "no trips: these studies take none"}
    return {
        "dataset": dataset.name,
        "dataset-rows": f"{dataset.rows:,}",
        "dataset-digest": dataset.sha256,
        "dataset-source": "the synthetic replica" if dataset.synthetic else f"source: {dataset.source}",
        "dataset-columns": f"{len(dataset.columns):,}",
    }


def _seconds(windows: list[float]) -> str:
    shortest, longest = f"{windows[0]:.3g}", f"{windows[-1]:.3g}"
    return f"{shortest} s" if shortest == longest else f"{shortest} to {longest} s"


def _system(series: Series) -> dict[str, str]:
    system = series.runs[0].manifest.system
    made = {"title": series.title, "format": system.format, "client": system.client, "catalog": system.catalog}
    made |= {"durability": system.durability, "level": system.durability_level}
    return made | {"notes": "; ".join(system.notes)}


def _named_once(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return figures with unique names: duplicates in later studies get the study's name as prefix."""
    names: set[str] = set()
    made = []
    for each in figures:
        name = f"{each['study']}/{each['name']}" if each["name"] in names else each["name"]
        names.add(name)
        made.append(each | {"name": name})
    return made


def _sources(figures: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return [figure names, provenance] pairs, grouping figures of the same runs."""
    found: dict[str, list[str]] = {}
    for figure in figures:
        if figure.get("provenance"):
            found.setdefault(figure["provenance"], []).append(figure["name"])
    return [[names, provenance] for provenance, names in found.items()]


def _figure(figure: Mapping[str, Any], results: Path) -> dict[str, Any]:
    name = figure["name"]
    path = next((each for each in figure["files"] if each.endswith(".svg")), None)
    wide = False
    if path is not None:
        width = re.search(r'<svg[^>]* width="([0-9.]+)pt"', (results / "figures" / path).read_text()[:4000])
        wide = width is not None and float(width[1]) > WIDE_POINTS
    about = {"title": figure["title"], "reason": figure["reason"], "notes": list(figure["notes"])}
    about |= {"finding": figure.get("finding", "")}
    return {"name": name, "study": figure.get("study"), "file": path, "wide": wide, **about}
