"""Entry points of the command line and the rules: each builds one kind of result from the run files alone.

Connects the studies, with their quantities, tables, figures and claims, to the packages that make results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.measures import Measures, NotAvailable
from tidemark.analysis.metrics import HIGHER, Metric
from tidemark.errors import AnalysisError, ConfigError
from tidemark.planner import accuracy
from tidemark.planner.cost_model import Age, Cost
from tidemark.results.archive.unpack import opened
from tidemark.results.claims import judge
from tidemark.results.claims.claims import Claim, ClaimSet, load_claims
from tidemark.results.claims.export import Listed, listed, write_claims
from tidemark.results.reference.content import FILE, folders, read_references
from tidemark.results.reference.findings import DECLARED, Finding, declared
from tidemark.results.report.summary_table import Subject, matrix_table
from tidemark.results.tables import setup, sweeps
from tidemark.results.tables.table import Table, TableBuilder, write_tables
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.spec import SeriesSpec
from tidemark.runs.views import modes
from tidemark.studies.study import Results, Study, registry

CLAIMS = "claims.json"
USUAL = Path("results")  # may not exist before the first run


@dataclass(frozen=True, slots=True)
class Part:
    """Study with its own runs."""

    study: Study
    results: Results
    measures: Measures


def parts(run_set: RunSet) -> list[Part]:
    """Return the studies of the series in `run_set`; raise AnalysisError if one is unknown."""
    made = []
    for name in run_set.studies:
        if name not in registry():
            raise AnalysisError(
                f"{run_set.results / 'plan.json'}: key 'series': found the study '{name}'; allowed: "
                f"{', '.join(registry())}. Analyse it with the version of Tidemark that measured it."
            )
        study = registry()[name]
        results = study.results
        made.append(Part(study, results, Measures(run_set.of(name), results.quantities)))
    return made


def costs(made: Sequence[Part]) -> list[Cost | Age]:
    """Return the measurements of all studies of the cost of a commit."""
    return [point for part in made for point in part.results.costs(part.measures)]


def books() -> tuple[ClaimSet, ...]:
    return tuple(study.results.claims for study in registry().values())


def expected_bytes(series: Sequence[SeriesSpec]) -> float:
    """Estimate the disk space that `series` take at most: each study counts all that it sets up."""
    of_studies: dict[str, list[SeriesSpec]] = {}
    for spec in series:
        of_studies.setdefault(spec.study, []).append(spec)
    return sum(judge.expected_bytes(registry()[study].results.claims, own) for study, own in of_studies.items())


def all_claims(study: str | None = None) -> tuple[Claim, ...]:
    """Return the claims of all studies, or those of one."""
    return tuple(claim for book in books() if study in (None, book.study) for claim in load_claims(book))


def all_findings() -> tuple[Finding, ...]:
    """Return the findings of all studies."""
    found = ((book.study, book.path.with_name(DECLARED)) for book in books())
    return tuple(finding for study, path in found for finding in declared(study, path))


def build_database(results: Path) -> Path:
    """Build results/metrics.duckdb from the run files, with resampled quantities next to it; return its path."""
    from tidemark.analysis.database import write_database  # imports DuckDB, which nothing else here needs

    run_set = RunSet.load(results)
    quantities = {part.study.name: part.results.quantities for part in parts(run_set)}
    # A view uses columns that only runs of its study have.
    views = [part.results.views for part in parts(run_set) if part.measures.run_set.runs]
    return write_database(run_set, quantities, views)


def ratio_widths(results: Path, plan_file: Path) -> dict[str, float]:
    """Return the half-width of each ratio's 95 % interval, in per cent, by its systems, mode and stack.

    Each system is compared with the first of its mode and stack, or, where it is alone there, with itself in the stack
    before.
    """
    found = {}
    for part in parts(RunSet.load(results, plan_file)):
        stacks = len(part.measures.run_set.stacks)
        for other, first in compared(part.measures.run_set):
            for quantity in compared_by(part):
                with suppress(NotAvailable):
                    ratio = part.measures.ratio(quantity, other, first).estimate("")
                    if other.stack == first.stack:
                        name = f"{other.title} over {first.title}, {other.mode_title}"
                        name += f" ({other.stack})" if stacks > 1 else ""
                    else:
                        name = f"{other.title}, {other.stack} over {first.stack}, {other.mode_title}"
                    found[name] = ratio.half_width_percent
                    break
    return found


def compared_by(part: Part) -> list[Metric]:
    """Return the quantities of which the first that two series have compares them: rates, then the leading one."""
    headline = part.results.quantities.headline
    return [*(each for each in headline if each.better == HIGHER), headline[0]]


def compared(run_set: RunSet) -> Iterator[tuple[Series, Series]]:
    """Yield each series with the one that its rounds compare it with.

    That is the first of its mode and stack, or, where it is alone there, the same system in the stack before.
    """
    before: dict[tuple[str, str], Series] = {}
    for stack in run_set.config.texts("stacks") or run_set.stacks:
        for mode in modes(run_set):
            first, *others = run_set.select(mode=mode, stack=stack, harness=False) or (None,)
            if first is None:
                continue
            yield from ((other, first) for other in others)
            if not others and (earlier := before.get((first.system, mode))) is not None:
                yield first, earlier
            before[first.system, mode] = first


def build_tables(results: Path) -> Path:
    """Write all tables to results/tables, those of each study to a folder there; return the path of the index."""
    run_set = RunSet.load(results)
    made = parts(run_set)
    whole = Measures(run_set, made[0].results.quantities)
    publications, measures = tuple(part.results.publication for part in made), tuple(part.measures for part in made)
    general = TableBuilder(whole, publications, measures)  # for tables that cover all studies
    groups: dict[str, list[Table]] = {"": [*setup.build(general), *accuracy.build(general, costs(made))]}
    groups |= {part.study.name: tables(part) for part in made}
    write_tables(groups, results / "tables")
    return results / "tables" / "index.json"


def tables(part: Part) -> list[Table]:
    """Return the tables of a study."""
    builder = TableBuilder(part.measures, (part.results.publication,))
    chapters = (part.results.tables, sweeps.build, sweeps.then_and_now)
    asked = part.results.questions
    return [
        *([matrix_table(builder, asked)] if asked else []),
        *(table for chapter in chapters for table in chapter(builder)),
    ]


def build_figures(results: Path) -> Path:
    """Draw the figures of each study into a folder of results/figures; return the path of the index."""
    # Matplotlib takes half a second to import, for which other commands need not wait.
    from tidemark.results.figures.context import FigureContext
    from tidemark.results.figures.draw import THEN_AND_NOW, FigureTask, draw

    made = parts(RunSet.load(results))
    contexts = {part.study.name: FigureContext.of(part.measures) for part in made}
    commissions = [
        FigureTask(part.study.name, figure_spec)
        for part in made
        for figure_spec in (*part.results.figure_specs(), THEN_AND_NOW)
    ]
    draw(contexts, commissions, results / "figures")
    return results / "figures" / "index.json"


def build_claims(results: Path) -> Path:
    """Write results/claims.json, .csv and .md, and return the path of the first."""
    run_set = RunSet.load(results)
    return write_claims(run_set, [(part.results.claims, part.measures) for part in parts(run_set)])


def build_paper(results: Path, sources: Path | None = None) -> Path:
    """Write results/paper/values.json, typeset the paper of `sources`, and return the path of results/paper.pdf."""
    from tidemark.results.paper.values import PAPER, write_paper
    from tidemark.results.publication import Chapter

    run_set = RunSet.load(results)
    made = parts(run_set)
    chapters = [Chapter(part.study.name, part.study.title, part.results.paper, part.measures) for part in made]
    return write_paper(
        run_set, chapters, {"planning": accuracy.conclusion(accuracy.standings(costs(made)))}, sources or PAPER
    )


def build_report(results: Path) -> Path:
    """Write results/report.html and answer.txt from the run files and results/claims.json; return the first's path."""
    from tidemark.results.report.page import write_report

    run_set = RunSet.load(results)
    made = parts(run_set)
    return write_report(run_set, subjects(made), notes(made))


def notes(made: Sequence[Part]) -> list[str]:
    """Return what a report of these studies says about its plots."""
    found = accuracy.standings(costs(made))
    told = [note for part in made for note in part.results.notes(part.measures.run_set)]
    return [*told, accuracy.conclusion(found)] if found else told


def subjects(made: Sequence[Part]) -> list[Subject]:
    """Return the studies as subjects of a report."""
    return [Subject(part.measures, part.results.questions) for part in made]


def claim(place: Path, identity: str) -> judge.Row:
    """Return the row of one claim of any study, from `place`: a results folder, an archive, or reference results.

    If these do not cover the claim, the row has the reason, and how to test it. Raises ConfigError for an unknown
    claim, and for a place that does not exist.
    """
    wanted, book = judge.find_claim(identity, books())
    if kept := folders(place):
        references = list(zip(kept, read_references(place), strict=True))
        judgements = [
            each.judgement(wanted.criterion.words, f"kept in {folder}")
            for folder, reference in references
            for each in reference.held
            if each.claim == identity and reference.about.study == book.study
        ]
        reason = judge.not_measured(reference.about.study for _, reference in references)
        return judge.from_elsewhere(wanted, book, judgements) if judgements else judge.unjudged(wanted, book, reason)
    if place == USUAL and not place.exists():
        return judge.unjudged(wanted, book, f"{place}: nothing was measured yet")
    try:
        with opened(place) as run_set:
            if book.study in run_set.studies:
                return judge.judged(wanted, book, Measures(run_set.of(book.study), book.quantities))
            return judge.unjudged(wanted, book, judge.not_measured(run_set.studies))
    except AnalysisError as error:
        return judge.unjudged(wanted, book, str(error))


def judged_claims(place: Path) -> dict[str, list[Listed]]:
    """Return each claim's judgements in `place`, a results folder or reference results; empty before the first run.

    Raises ConfigError if `place` is neither.
    """
    if folders(place):
        shown: dict[str, list[Listed]] = {}
        for each in (held for reference in read_references(place) for held in reference.held):
            ours = "" if each.ours is None else estimate_text(each.ours)
            shown.setdefault(each.claim, []).append(Listed(each.stack, each.verdict, ours))
        return shown
    if (place / CLAIMS).is_file():
        return listed(place / CLAIMS)
    if place != USUAL and not (place / "plan.json").is_file():
        raise ConfigError(
            f"{place}: found neither plan.json nor {FILE}; allowed: a results folder, or a folder of reference results"
        )
    return {}
