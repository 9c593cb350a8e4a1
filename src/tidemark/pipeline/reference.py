"""Reference results and their uses: the pages for evaluators, and the comparison of other results with them."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path

from tidemark.analysis.formatting import Cell, listed, number
from tidemark.analysis.statistics import Estimate
from tidemark.config import load
from tidemark.errors import ConfigError, Incomparable
from tidemark.integrity import sha256_of
from tidemark.paths import REPOSITORY
from tidemark.pipeline.build import Part, all_findings, books, parts, tables
from tidemark.pipeline.commit_costs import POLICIES, read_costs
from tidemark.pipeline.plan import make_plan
from tidemark.planner.frontier import unbeaten
from tidemark.results.archive.compare import Side, compare
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import opened
from tidemark.results.claims.claims import load_claims
from tidemark.results.claims.judge import judge_all, unjudged
from tidemark.results.reference import anatomy, codemeta, content, findings, front, run_files, settings
from tidemark.results.reference.agreement import agreement, with_verdict
from tidemark.results.reference.artifact import Effort, Ledger, artifact
from tidemark.results.reference.systems import system_pages
from tidemark.results.report.summary_table import usual_columns
from tidemark.results.tables.table import Table, markdown_grid, read_table, records, write_tables
from tidemark.runs.runset import RunSet
from tidemark.runs.spec import TWIN
from tidemark.schema import editor_schema
from tidemark.studies.study import Study, registry
from tidemark.systems.registry import registry as systems

FINDINGS, README, STUDIES = "docs/findings.md", "README.md", "docs/studies"
ANATOMY = "docs/anatomy.md"
SETTINGS, EDITOR_SCHEMA, RUN_FILES = "docs/settings.md", "config.schema.json", "docs/run-files.md"
SHOWN = ("smoke", "quick")  # the protocols that every study has
FIRST = "streams"  # the study whose rates README shows
UNITS = (" s", "", " s")  # of `PolicyCost.costs`
MAJOR = (  # at most twelve claims: what a reviewer with an afternoon tests
    *("throughput-batch-ducklake", "inlining-batch", "batch-gain-all", "growth-single-pyiceberg"),
    *("many-writers-lose-nothing-ducklake", "many-writers-lose-nothing-iceberg-duckdb"),
    *("success-many", "connect-exactly-once", "deltars-write-tenfold", "deltars-write-10k-local"),
    *("query-iceberg-delta", "partition-bytes"),
)


def build_reference(archive: Path, target: Path, wanted: str | None = None) -> list[Path]:
    """Write the reference results of each study in `archive` to a folder of its name below `target`; return the paths.

    `wanted` names a figure to keep in place of the first of its study; raise ConfigError if no study here has it.
    A results folder is packed first, as an archive names no folder of the machine.
    """
    if archive.is_dir():
        with tempfile.TemporaryDirectory() as place:
            return build_reference(write_archive(archive, Path(place, "packed.zip")), target, wanted)
    written: list[Path] = []
    with opened(archive) as run_set:
        made = {part.study.name: part for part in parts(run_set)}
        known = [spec.name for part in made.values() for spec in part.results.figure_specs()]
        if wanted is not None and wanted not in known:
            raise ConfigError(f"--figure: found '{wanted}'; allowed: {', '.join(known)}")
        for reference in _references(run_set, sha256_of(archive)):
            study = reference.about.study
            figure, drawing = _figure(made[study], wanted)
            whole = replace(reference, figure=figure)
            written += content.write_reference(whole, tables(made[study]), drawing, target / reference.about.name)
    return written


def _references(run_set: RunSet, archive: str | None = None) -> list[content.Reference]:
    """Return the reference results of each study in `run_set`."""
    return [
        content.Reference(
            content.About.of(part.study.name, run_set, archive),
            content.of_ledger(judge_all(part.measures.run_set, [(part.results.claims, part.measures)])),
            runs=content.run_values(part.measures),
        )
        for part in parts(run_set)
    ]


def _figure(part: Part, wanted: str | None) -> tuple[content.Figure | None, str]:
    """Return the figure of a study to keep, and its SVG; None and "" if its runs cannot show it.

    It is `wanted`, or the study's first one if it has none of this name.
    """
    # Matplotlib takes half a second to import, for which other commands need not wait.
    from tidemark.results.figures.context import FigureContext
    from tidemark.results.figures.draw import FigureTask, draw

    study = part.study.name
    figure_specs = {each.name: each for each in part.results.figure_specs()}
    names = [name for name in (wanted, part.results.first_figure, *figure_specs) if name in figure_specs]
    figure_spec = figure_specs[names[0]]
    with tempfile.TemporaryDirectory() as place:
        draw({study: FigureContext.of(part.measures)}, [FigureTask(study, figure_spec)], Path(place))
        (entry,) = json.loads(Path(place, "index.json").read_text())["figures"]
        if entry["reason"] is not None:
            return None, ""
        drawing = Path(place, study, f"{figure_spec.name}.svg").read_text()
    return content.Figure(
        f"{figure_spec.name}.svg", entry["title"], " ".join([entry["finding"], *entry["notes"]]).strip()
    ), drawing


def documents(configuration: Path, kept: Path, folder: Path) -> dict[str, str]:
    """Return the pages that show the claims and the results in `kept`, and the pictures of the first one, by path.

    Of README.md and the pages of studies, parts change. Raises ConfigError if `folder` lacks README.md or docs/studies.
    """
    for name in (README, STUDIES):
        if not (folder / name).exists():
            raise ConfigError(f"{folder / name}: is not there; allowed: a folder with {README} and {STUDIES}")
    quick = [each for each in efforts(configuration) if each.protocol == "quick"]
    quick.sort(key=lambda each: each.study != FIRST)
    return {
        **build_artifact(configuration, kept),
        **(anatomy_page(kept, (folder / ANATOMY).read_text()) if (folder / ANATOMY).is_file() else {}),
        FINDINGS: findings.page([findings.shown(finding, kept) for finding in all_findings()]),
        README: front.front((folder / README).read_text(), kept, caveats(kept), quick),
        **_studies(kept, folder),
        SETTINGS: settings.settings_page(),
        EDITOR_SCHEMA: editor_schema(),
        RUN_FILES: run_files.run_files_page(
            {name: found for name, study in registry().items() if (found := study.results.run_files) is not None}
        ),
        codemeta.FILE: codemeta.codemeta(REPOSITORY),
        **pages_of_systems(kept),
        **pictures(kept),
    }


def _studies(kept: Path, folder: Path) -> dict[str, str]:
    """Return the page of each study that has one in `folder`, by path."""
    made = {}
    for name, study in registry().items():
        page = folder / front.study_page(name)
        if page.is_file():
            questions = study.results.questions if name == FIRST else ()
            text = front.with_results(name, page.read_text(), kept, questions)
            if front.POLICIES in text:
                text = front.filled(page.name, text, front.POLICIES, unbeaten_policies(kept))
            made[front.study_page(name)] = text
    return made


def unbeaten_policies(kept: Path) -> Iterator[str]:
    """Yield the table of those policies of upkeep in `kept` that no other one at their rate beats."""
    if not (kept / POLICIES).is_file():
        yield front.NONE
        return
    found, _ = read_costs(kept, upkeep=True)
    best = sorted(unbeaten(found.policies), key=lambda each: each.rate)
    heads = ["Events/s", "System", "Commits, and upkeep", "Seen by a reader, p99", "CPU-s a million events", "Stall"]
    rows = [
        [
            f"{each.rate:,}",
            each.title,
            each.policy,
            *(f"{number(cost, 2)}{unit}" for cost, unit in zip(each.costs, UNITS, strict=True)),
        ]
        for each in best
    ]
    yield markdown_grid(heads, rows)
    yield from ("", f"*{len(best)} of {len(found.policies)} policies. Measured: {found.origin}.*")


def anatomy_page(kept: Path, text: str) -> dict[str, str]:
    """Return docs/anatomy.md, which is `text` so far, and its picture, by path."""
    from tidemark.results.figures.anatomy import picture  # imports Matplotlib, as figures do

    counts = anatomy.kept_counts(kept)
    for mark, lines in {
        anatomy.MARK: anatomy.anatomy_table(counts),
        anatomy.COLUMNS_MARK: anatomy.columns_table(anatomy.kept_by_columns(kept)),
        anatomy.DISTANCES: anatomy.distance_table(counts, storage(kept)),
        anatomy.SEQUENCES: anatomy.sequence_lines(counts),
    }.items():
        text = front.filled(ANATOMY, text, mark, lines)
    drawn = anatomy.in_sequence(counts)
    return {ANATOMY: text, **({anatomy.PICTURE: picture(drawn)} if drawn else {})}


def pages_of_systems(kept: Path) -> dict[str, str]:
    """Return a page for each system, and one that lists them, by path."""
    claimed: dict[str, list[tuple[str, str, str]]] = {}
    for book in books():
        for claim in load_claims(book):
            for name in dict.fromkeys(claim.measure.systems):
                claimed.setdefault(name, []).append((book.study, claim.id, claim.statement))
    described: dict[str, list[tuple[str, str]]] = {}
    for finding in all_findings():
        for name in finding.systems if findings.shown(finding, kept).is_described else ():
            described.setdefault(name, []).append((finding.id, finding.title))
    return system_pages(systems(), kept, claimed, described)


def pictures(kept: Path) -> dict[str, str]:
    """Return the first page's picture for light and dark pages, by path; empty without results to draw."""
    from tidemark.results.figures import glance as drawing  # imports Matplotlib, as figures do

    found = front.glance(kept, FIRST)
    if found is None:
        return {}
    panels = [(panel.title, panel.found) for panel in found.panels()]
    themes = {front.LIGHT: drawing.LIGHT, front.DARK: drawing.DARK}
    described = found.alternative()
    return {name: drawing.picture(panels, found.systems(), theme, described) for name, theme in themes.items()}


def storage(kept: Path) -> list[dict[str, Cell]]:
    """Return the rows of the table of commits with their files in an object store; empty if it is not kept."""
    path = kept / "ingest" / content.TABLES / "ingest-storage.json"
    return records(read_table(path)) if path.is_file() else []


def caveats(kept: Path) -> Iterator[str]:
    """Yield what the rates of the first page do not tell, with numbers of other studies where they are kept."""
    rows = storage(kept)
    far = max((row["rtt"] for row in rows if isinstance(row["rtt"], int)), default=0)
    found = _listed({str(row["system"]): row["commit_p50"] for row in rows if far and row["rtt"] == far}, "ms")
    of_ingest = (each.about.stacks[:1] for each in content.read_references(kept) if each.about.name == "ingest")
    where = f"{far} ms away, with the catalog beside the writer{_apart(chain.from_iterable(of_ingest))}"
    distant = f" Time of a commit to S3, {where}: {found}."
    yield (
        "**On object storage the gap changes**, as each commit waits for several round trips."
        f"{distant if found else ''} → [What a distance adds](docs/anatomy.md#what-a-distance-adds)"
    )
    yield (
        "**Some clients lose rows or break a table.** If the answer to a commit is lost, DuckLake with rows in files, "
        "and DuckDB 1.5.5 as a writer of Iceberg, delete a file that the table needs. Several DuckDB writers lost half "
        "of their rows in Iceberg's reference catalog. → [Findings](docs/findings.md), "
        f"[what to set]({front.study_page('ingest')}#what-to-set)"
    )
    yield (
        "**Tables without maintenance slow down for longer than 100 commits.** "
        f"→ [Old tables]({front.study_page('ingest')}#old-tables) has commit 10,000."
    )
    path = kept / "freshness" / content.TABLES / "matrix.json"
    rows = [row for row in records(read_table(path)) if not str(row["system"]).endswith(TWIN)] if path.is_file() else []
    rows = [row for row in rows if row["stack"] == rows[-1]["stack"]]  # the newest, as in the table
    found = _listed({str(row["system"]): row["age_p99"] for row in rows}, "s")
    often = "Time until a reader of local files sees 99 of 100 events, with a commit every second"
    seen = f" {often}{_apart(str(row['stack']) for row in rows)}: {found}." if found else ""
    yield f"**Freshness is another question than speed.**{seen} → [Freshness]({front.study_page('freshness')})"
    yield (
        "**A write that has returned does not survive a power cut by default.** DuckLake and Iceberg flush the "
        "catalog's commit to the disk, but not the files that it names; Delta flushes neither. After a cut no such "
        "table could be read ([finding](docs/findings.md#power-failure)). `durability: full` has all of them flush, as "
        "far as the clients allow. → [What a number means](docs/trust.md)"
    )


def _apart(stacks: Iterable[str]) -> str:
    """Return words that say that numbers of another study are of other runs, and of which stacks; empty without any."""
    named = [f"`{name}`" for name in dict.fromkeys(stacks)]
    return f" (other runs, stack {listed(named)})" if named else ""


def _listed(found: Mapping[str, Cell], unit: str) -> str:
    """Return each name with its estimate, the smallest first; empty without any.

    Numbers have two significant digits. An interval is shown if its upper end is more than twice its lower one.
    """
    known = [(name, each) for name, each in found.items() if isinstance(each, Estimate)]
    return "; ".join(
        f"{name} {number(each.value, 2)} {unit}{_wide(each)}" for name, each in sorted(known, key=lambda x: x[1].value)
    )


def _wide(found: Estimate) -> str:
    if not found.low or not found.high or found.high <= 2 * found.low:
        return ""
    return f" [{number(found.low, 2)}, {number(found.high, 2)}]"


def build_artifact(configuration: Path, kept: Path) -> dict[str, str]:
    """Return ARTIFACT.md and the pages of claims, from the plans, all claims and the reference results in `kept`."""
    rows = [unjudged(claim, book, "") for book in books() for claim in load_claims(book)]
    commands = {command: seconds_of(configuration, command) for command in {row.retest.command for row in rows}}
    tested = [each for each in content.read_references(kept) if each.tests_claims]
    return artifact(efforts(configuration), Ledger(rows, commands, tested, MAJOR))


@cache
def seconds_of(configuration: Path, command: str) -> float:
    """Return the expected seconds of './tidemark all --config KEY=VALUE...' once all is set up, by its plan."""
    return make_plan(load(configuration, [word for word in shlex.split(command) if "=" in word])).seconds


@cache
def efforts(configuration: Path) -> tuple[Effort, ...]:
    """Return the effort of each study under the protocols that all studies have, with `configuration`'s settings."""
    made = []
    for name, study in registry().items():
        for protocol in SHOWN:
            plan = make_plan(load(configuration, [f"studies=[{name}]", f"protocol={protocol}"]))
            made.append(Effort(name, study.title, study.question, protocol, len(plan.series), plan.seconds))
    return tuple(made)


def build_agreement(a: Path, b: Path, target: Path, study: str | None = None) -> tuple[Table, list[Path]]:
    """Write the agreement of `b` with `a`, claim by claim, below `target`; return the table and the paths written.

    Each is a folder of reference results, a results folder or an archive. With `study`, only its claims are compared.
    """
    sides = []
    printed = {claim.id for book in books() for claim in load_claims(book) if claim.needs_no_run}
    for place in (a, b):
        if content.folders(place):
            sides.append(content.read_references(place))
        else:
            with opened(place) as run_set:
                sides.append(_references(run_set))
        sides[-1] = [
            replace(each, held=tuple(held for held in each.held if held.claim not in printed))
            for each in sides[-1]
            if study in (None, each.about.study)
        ]
        if not sides[-1]:
            raise Incomparable(f"{place} has no results of the study {study}")
    table = agreement(sides[0], sides[1], (str(a), str(b)))
    write_tables({"": [table]}, target)
    return table, [target / f"{table.name}.{ending}" for ending in ("csv", "md", "json")]


def summaries(place: Path, study: str | None = None) -> list[Table]:
    """Return the table of systems of each study, or of one, in `place`, a results folder or reference results.

    Columns are those that the report shows at first. Raise ConfigError if there is none.
    """
    found = []
    for name, of_study in registry().items():
        paths = (place / "tables" / name / f"{front.MATRIX}.json", place / name / "tables" / f"{front.MATRIX}.json")
        path = next((each for each in paths if each.is_file()), None)
        if path is not None and study in (None, name):
            found.append(replace(matrix_of(path, of_study), title=of_study.title))
    if not found:
        of = f" of {study}" if study else ""
        raise ConfigError(f"{place}: found no table of systems{of}; allowed: a results folder, or reference results")
    return found


def matrix_of(path: Path, study: Study) -> Table:
    """Return the table of systems of a study in a file, with the columns that its report shows at first."""
    matrix = read_table(path)
    return front.narrow(matrix, usual_columns(study.results.questions, [column.key for column in matrix.columns]))


def build_comparison(
    a: Path, b: Path, target: Path, wanted: str | None = None, verdict: str | None = None
) -> tuple[list[Table], list[Path], list[str]]:
    """Write the comparison of two result sets below `target`, that of each study, or of one, to a folder of its name.

    Returns the tables, the paths written, and the reasons for studies left out; raises Incomparable if all
    are. If one of the sets is a folder of reference results, they are compared claim by claim, and the table returned
    has only claims that one of them gave the `verdict`, if there is one.
    """
    if content.folders(a) or content.folders(b):
        table, paths = build_agreement(a, b, target, wanted)
        return [with_verdict(table, verdict) if verdict else table], paths, []
    if verdict:
        raise ConfigError(f"--verdict: found no claims; allowed where {a} or {b} is a folder of reference results")
    from tidemark.results.archive.compare_plot import write_comparison  # imports Matplotlib, as figures do

    made: list[Table] = []
    written: list[Path] = []
    left_out: list[str] = []
    with opened(a) as first, opened(b) as second:
        ours, theirs = ({part.study.name: part for part in parts(run_set)} for run_set in (first, second))
        for study in [wanted] if wanted else dict.fromkeys((*ours, *theirs)):
            if study not in ours or study not in theirs:
                left_out.append(f"study {study}: {b if study in ours else a} has no series of it")
                continue
            try:
                comparison = compare(Side(str(a), ours[study].measures), Side(str(b), theirs[study].measures))
            except Incomparable as error:
                left_out.append(f"study {study}: {error}")
                continue
            made += comparison.tables
            written += write_comparison(comparison, target / study)
    if not made:
        raise Incomparable("; ".join(left_out))
    return made, written, left_out
