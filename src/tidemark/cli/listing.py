"""`tidemark list` and `tidemark show`: what can be measured and what was found, as lists and one by one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import batched
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.completion import one_of_these
from tidemark.cli.words import MORE_VALUES, ConfigFile, Overrides, Presets, values, words_given
from tidemark.errors import ConfigError, TidemarkError
from tidemark.paths import Workspace
from tidemark.process_lifetime import say

if TYPE_CHECKING:
    from tidemark.analysis.formatting import Cell

listing = typer.Typer(no_args_is_help=True, help="List systems, studies, series, claims, and what else there is.")
showing = typer.Typer(no_args_is_help=True, help="Show the results, the configuration, or one system, study or claim.")
MOST_COLUMNS = 4  # of values in a table that a terminal shows
SYSTEM_LINE = "{name}: {title}; format {format}, client {client}, commit by {catalog}"
STUDY_LINES = "{name}: {title}\n    {question}"
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
OneStudy = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only this study.", autocompletion=one_of_these("tidemark.studies.study")),
]

OneVerdict = Annotated[
    str | None, typer.Option(metavar="VERDICT", help="Only claims with this verdict, such as not-reproduced.")
]


def _one(what: str, module: str) -> Any:
    """Return the argument that names one thing of the registry in `module`."""
    said = f"A {what}; 'list' has them all."
    return typer.Argument(metavar="NAME", help=said, autocompletion=one_of_these(module))


def verdict_of(word: str | None, allowed: Sequence[str]) -> str | None:
    """Return the verdict that a word of the command line names; raise ConfigError unless it is an `allowed` one."""
    wanted = word and word.replace("-", " ")
    if wanted not in (None, *allowed):
        words = ", ".join(each.replace(" ", "-") for each in allowed)
        raise ConfigError(f"--verdict: found '{word}'; allowed: {words}")
    return wanted


def print_json(found: list[dict[str, Any]]) -> None:
    print(json.dumps(found, indent=1, ensure_ascii=False, default=str))


def print_each(found: list[dict[str, Any]], as_json: bool, line: str) -> None:
    """Print each of `found` in the form of `line`, whose fields are its keys; or all of them as JSON."""
    if as_json:
        print_json(found)
        return
    for each in found:
        print(line.format_map(each))


@listing.command("series", context_settings=MORE_VALUES)
def list_series(
    context: typer.Context,
    config: Overrides = None,
    configfile: ConfigFile = Path("config.yaml"),
    preset: Presets = None,
    as_json: AsJson = False,
) -> None:
    """List the series of the configuration, in the order in which they run, and how far each has come.

    A series that is 'waiting' continues after the next restart of the machine. What is still due, and its time, go to
    stderr.
    """
    from tidemark.config import load
    from tidemark.machine import reboot
    from tidemark.pipeline.plan import make_plan
    from tidemark.pipeline.runner import what_follows
    from tidemark.runs.outcome import Outcome, SeriesRecord, outcome_path

    workspace = Workspace(Path.cwd())
    waiting, made = reboot.read(workspace).waiting, make_plan(load(configfile, values(context, config, preset)))
    found = []
    for spec in made.series:
        path = outcome_path(workspace, spec)
        runs = len(SeriesRecord(path.parent).finished())
        state = "waiting" if spec.id == waiting else "pending"
        state = Outcome.read(path).status if path.exists() else state
        found.append(
            {"id": spec.id, "stack": spec.stack, "repeat": spec.repeat, "status": state, "runs": runs,
             "planned_runs": len(spec.numbers)}
        )  # fmt: skip
        if not as_json:
            print(f"{spec.position + 1:3}  {spec.label:42} {state:9} {runs} of {len(spec.numbers)} runs")
    if as_json:
        print_json(found)
    say(f"tidemark: {what_follows(made, workspace) or 'nothing is left to measure'}")


def _system(name: str) -> dict[str, Any]:
    """Return what is known of a system; raise ConfigError if there is none of this name."""
    from tidemark.systems.registry import registry

    system = one_of("system", name, registry())
    options = {
        option.name: {"default": option.default, "help": option.metadata.get("help", "")}
        for option in dataclasses.fields(system.Options)
    }
    return {
        "name": name, "title": system.title, "format": system.format, "client": system.client,
        "catalog": system.catalog, "notes": list(system.notes), "options": options,
    }  # fmt: skip


def _study(name: str) -> dict[str, Any]:
    """Return what is known of a study; raise ConfigError if there is none of this name."""
    from tidemark.schema import sections
    from tidemark.studies.study import registry

    study = one_of("study", name, registry())
    settings = {key: rule["description"] for key, rule in sections()[name]["properties"].items()}
    return {"name": name, "title": study.title, "question": study.question, "settings": settings}


def one_of[T](kind: str, name: str, known: Mapping[str, T]) -> T:
    """Return what `known` has of this name; raise ConfigError, with the nearest name, if it has nothing."""
    if name not in known:
        from tidemark.schema import nearest

        plural = "studies" if kind == "study" else f"{kind}s"
        raise ConfigError(f"found no {kind} '{name}'; './tidemark list {plural}' lists them{nearest(name, known)}")
    return known[name]


@listing.command("systems")
def list_systems(as_json: AsJson = False) -> None:
    """List the systems that can be measured; 'show system NAME' has the options of one."""
    from tidemark.systems.registry import registry

    print_each([_system(name) for name in registry()], as_json, SYSTEM_LINE)


@listing.command("studies")
def list_studies(as_json: AsJson = False) -> None:
    """List the studies and their questions; 'show study NAME' has the settings of one."""
    from tidemark.studies.study import registry

    print_each([_study(name) for name in registry()], as_json, STUDY_LINES)


@listing.command("presets")
def list_presets(as_json: AsJson = False) -> None:
    """List the presets, which are values for a question: './tidemark all --preset NAME' measures with them."""
    from tidemark.config import about_preset, presets

    print_each([{"name": name, "about": about_preset(name)} for name in presets()], as_json, "{name}: {about}")


@listing.command("stacks")
def list_stacks(as_json: AsJson = False) -> None:
    """List the software stacks and what is pinned in each."""
    from tidemark.software.environments import read_lock
    from tidemark.software.stacks import lock_of, names

    found = {name: {pin.name: pin.version for pin in read_lock(lock_of(name))} for name in names()}
    if as_json:
        print_json([{"name": name, "packages": pins} for name, pins in found.items()])
        return
    shown = ("duckdb", "pyiceberg", "deltalake", "pyarrow", "confluent-kafka")
    for name, pins in found.items():
        print(f"{name}: " + ", ".join(f"{package} {pins[package]}" for package in shown if package in pins))


@listing.command("claims")
def list_claims(
    results: Annotated[Path, typer.Option(help="A results folder, or reference results.")] = Path("results"),
    study: OneStudy = None,
    verdict: OneVerdict = None,
    as_json: AsJson = False,
) -> None:
    """List the published claims, each with the verdict of the runs here."""
    from tidemark.pipeline.build import all_claims, judged_claims
    from tidemark.results.claims.claims import UNTESTED, VERDICTS
    from tidemark.results.claims.export import overview
    from tidemark.studies.study import registry

    if study is not None:
        one_of("study", study, registry())
    wanted = verdict_of(verdict, VERDICTS)
    known, judged = all_claims(study), judged_claims(results)
    if wanted:
        given = {claim.id: {each.verdict for each in judged.get(claim.id, ())} or {UNTESTED} for claim in known}
        known = tuple(claim for claim in known if wanted in given[claim.id])
    if as_json:
        found = [
            {"id": claim.id, "section": claim.section, "statement": claim.statement,
             "verdicts": [each._asdict() for each in judged.get(claim.id, [])]}
            for claim in known
        ]  # fmt: skip
        print_json(found)
    else:
        print(overview(known, judged))


@listing.command("findings")
def list_findings(as_json: AsJson = False) -> None:
    """List the findings, each with the command that repeats it."""
    from tidemark.pipeline.build import all_findings

    found = [{"id": each.id, "title": each.title, "command": each.command} for each in all_findings()]
    print_each(found, as_json, "{id}: {title}\n    {command}")


@listing.command("versions")
def list_versions(
    as_json: Annotated[bool, typer.Option("--json", help="Names and versions as JSON.")] = False,
) -> None:
    """List the version that every program and library reports, and its origin."""
    from tidemark.software.versions import components

    found = components(Workspace(Path.cwd()))
    if as_json:
        print(json.dumps({each.name: each.version for each in found}, indent=1))
        return
    for each in found:
        print(f"{each.name:40} {each.version:24} {each.origin}")


@showing.command("config", context_settings=MORE_VALUES)
def show_config(
    context: typer.Context,
    config: Overrides = None,
    configfile: ConfigFile = Path("config.yaml"),
    preset: Presets = None,
    study: OneStudy = None,
    changed: Annotated[bool, typer.Option("--changed", help="Print only what differs from the defaults.")] = False,
    sources: Annotated[
        bool, typer.Option("--sources", help="Print a line for each key, with where its value was given.")
    ] = False,
    as_schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of a configuration, which editors use.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the configuration in force, defaults filled in."""
    import yaml

    from tidemark.config import load
    from tidemark.pipeline.plan import make_plan
    from tidemark.schema import editor_schema, sections

    if as_schema:
        if beside := [word for word in words_given(context) if word != "--schema"]:
            raise ConfigError(f"found '{beside[0]}' beside --schema, which is the same for every configuration")
        print(editor_schema(), end="")
        return
    found = make_plan(load(configfile, values(context, config, preset))).config
    if study is not None:
        one_of("study", study, sections())
    if sources:
        rows = [
            {"key": key, "value": value, "source": source}
            for key, (value, source) in found.sources().items()
            if (source != "default" or not changed) and (study is None or key.startswith(f"{study}."))
        ]
        if as_json:
            print_json(rows)
            return
        for row in rows:
            print(f"{row['key']}: {json.dumps(row['value'], ensure_ascii=False)}  # {row['source']}")
        return
    shown = found.changed() if changed else found.whole()
    if study is not None:
        shown = {study: shown.get(study, {})}
    if as_json:
        print(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        print(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True), end="")


@showing.command("system")
def show_system(
    name: Annotated[str, _one("system", "tidemark.systems.registry")],
    as_json: AsJson = False,
) -> None:
    """Show one system: format, client, notes and options."""
    found = _system(name)
    print_each([found], as_json, SYSTEM_LINE)
    if as_json:
        return
    for note in found["notes"]:
        print(f"    note: {note}")
    for option, about in found["options"].items():
        print(f"    {option}: {about['default']!r}  {about['help']}")


@showing.command("study")
def show_study(
    name: Annotated[str, _one("study", "tidemark.studies.study")],
    as_json: AsJson = False,
) -> None:
    """Show one study: its question, and the settings of its section of config.yaml."""
    found = _study(name)
    print_each([found], as_json, STUDY_LINES)
    for key, description in found["settings"].items() if not as_json else ():
        print(f"    {found['name']}.{key}: {description}")


@showing.command("results")
def show_results(
    results: Annotated[Path, typer.Option(help="A results folder, or reference results.")] = Path("results"),
    study: OneStudy = None,
    as_json: AsJson = False,
) -> None:
    """Show the table of systems of each study that was measured, with the columns that the report shows first."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tidemark.pipeline.reference import summaries
    from tidemark.studies.study import registry

    if study is not None:
        one_of("study", study, registry())
    if as_json:
        print_json([json.loads(summary.json()) for summary in summaries(results, study)])
        return
    console = Console()
    for summary in summaries(results, study):
        identity = [place for place, column in enumerate(summary.columns) if not column.interval]
        modes = [column.title.rpartition(", ")[2] for column in summary.columns]
        by_mode: dict[str, list[int]] = {}
        for place, mode in enumerate(modes):
            if place not in identity:
                by_mode.setdefault(mode if modes.count(mode) > 1 else "", []).append(place)
        parts = [(mode, part) for mode, places in by_mode.items() for part in batched(places, MOST_COLUMNS)]
        for mode, places in parts:
            table = Table(title=f"{summary.title}{f': {mode}' if mode else ''}", box=box.SIMPLE, padding=(0, 1, 0, 0))
            for place in (*identity, *places):
                column = summary.columns[place]
                title = column.title.removesuffix(f", {mode}")
                heading = title if "/s" in title else f"{title} ({column.unit})" if column.unit else title
                table.add_column(heading, justify="left" if place in identity else "right")
            for row in summary.rows:
                table.add_row(*(_value(row[place], summary.columns[place].unit) for place in (*identity, *places)))
            console.print(table)
    say("tidemark: intervals and reasons for missing values are in the tables 'matrix' and in report.html")


def _value(cell: Cell, unit: str) -> str:
    from tidemark.analysis.formatting import MissingCell, number, shown
    from tidemark.analysis.statistics import Estimate

    if isinstance(cell, Estimate):
        return number(cell.value, 3)
    return "-" if isinstance(cell, MissingCell) else shown(cell, unit)


@showing.command("claim")
def show_claim(
    identity: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A claim's name, as 'list claims' prints it.",
            autocompletion=one_of_these("tidemark.pipeline.build", "all_claims"),
        ),
    ],
    results: Annotated[Path, typer.Option(help="A results folder, an archive, or reference results.")] = Path(
        "results"
    ),
    as_json: AsJson = False,
) -> None:
    """Show one claim: the published value, the measured one, the verdict, and how to test it alone."""
    from tidemark.pipeline.build import claim as row_of
    from tidemark.pipeline.reference import seconds_of
    from tidemark.results.claims.export import describe, record

    row = row_of(results, identity)
    with suppress(TidemarkError):  # runs from elsewhere may have a stack that is not here
        seconds = seconds_of(Path("config.yaml").absolute(), row.retest.command)
        row = dataclasses.replace(row, retest=dataclasses.replace(row.retest, seconds=seconds))
    if as_json:
        print_json([record(row)])
    else:
        print(describe(row))
