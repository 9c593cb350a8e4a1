"""Command line. Commands import what they need when they run, so that help and errors appear at once."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemark import __version__
from tidemark.cli import listing as lists
from tidemark.cli import words
from tidemark.cli.anatomy import anatomy
from tidemark.cli.completion import VARIABLE, completion, heed_completion
from tidemark.cli.docs import docs
from tidemark.cli.folder import clean, open_page
from tidemark.cli.listing import AsJson, OneStudy, OneVerdict, listing, one_of, print_json, showing, verdict_of
from tidemark.cli.planning import advise
from tidemark.cli.reference import artifact, finding, keep, site
from tidemark.cli.releases import releases
from tidemark.cli.steps import stack, steps
from tidemark.errors import ConfigError, TidemarkError, of_the_machine
from tidemark.paths import REPOSITORY, Workspace
from tidemark.process_lifetime import heed_interruptions, say, was_interrupted

EXIT_CODES = """
Exit codes: 0 done, 1 unexpected, 2 configuration, 3 dataset, 4 provisioning, 5 a server, 6 the stream,
7 a system under test, 8 the oracle, 9 disk full, 10 another pipeline runs here, 11 waiting for a restart,
12 results that cannot be compared, 13 the machine cannot do what was asked, 14 run files,
15 counts that differ from kept ones, 130 interrupted.
"""

# Sections of the help, in the order in which a user needs them; commands are defined in that order as well.
MEASURE, LOOK, SHARE, DEVELOP = "Measure", "Look", "Share", "Develop"

app = typer.Typer(
    name="tidemark",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
new = typer.Typer(no_args_is_help=True, help="Write a file to start from: of a system.")
EVERYTHING_ELSE = {**words.MORE_VALUES, "ignore_unknown_options": True}


def _version() -> None:
    """Print Tidemark's version."""
    print(f"tidemark {__version__}")


def _print_version(asked: bool) -> None:
    if asked:
        _version()
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", "-V", is_eager=True, callback=_print_version, help="Print Tidemark's version.")
    ] = False,
    quiet: words.Quiet = False,
    verbose: words.Verbose = False,
) -> None:
    """Measures lakehouse tables under the work that streams and their readers make."""
    words.set_output(quiet, verbose)


@app.command("all", rich_help_panel=MEASURE, context_settings=EVERYTHING_ELSE)
def run_everything(
    context: typer.Context,
    config: words.Overrides = None,
    configfile: words.ConfigFile = Path("config.yaml"),
    preset: words.Presets = None,
    allow_reboot: Annotated[
        bool, typer.Option("--allow-reboot", help="With 'cold: reboot': restart this machine before each series.")
    ] = False,
    wait_for_reboot: Annotated[
        bool,
        typer.Option("--wait-for-reboot", help="With 'cold: reboot': stop whenever you must restart it (the default)."),
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="Begin no more rounds after this time; short for budget_minutes."),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="First compare every provisioned file by its hash."),
    ] = False,
    quiet: words.Quiet = False,
    verbose: words.Verbose = False,
) -> None:
    """Run the pipeline: measure what is not measured yet, then make every table and figure.

    If each series is measured more than once, they are also made after rounds 1, 2, 4, 8, ... of all series, and name
    the round. Rounds end when intervals are as narrow as the protocol asks, or after its time.
    Other options go to Snakemake: --dry-run says how many series, minutes and gigabytes there would be.
    """
    from tidemark.machine.reboot import Restarts
    from tidemark.pipeline.reboots import run

    if allow_reboot and wait_for_reboot:
        raise ConfigError("found both --allow-reboot and --wait-for-reboot; allowed: one of them")
    words.set_output(quiet, verbose)
    restarts = Restarts.ALLOW if allow_reboot else Restarts.WAIT if wait_for_reboot else Restarts.NONE
    overrides, arguments = words.split(context, config, preset)
    overrides += [] if budget is None else [f"budget_minutes={budget:f}"]
    if verify:
        from tidemark.software.verify import verify_or_refuse

        verify_or_refuse(Workspace(Path.cwd()))
    raise typer.Exit(run(Workspace(Path.cwd()), configfile.absolute(), overrides, arguments, restarts))


@app.command(rich_help_panel=MEASURE)
def doctor(
    verify: Annotated[
        bool, typer.Option("--verify", help="Also compare every provisioned file with its hash; nothing is changed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Report what this machine has and lacks for a measurement."""
    from tidemark.cli.doctor import examine

    raise typer.Exit(examine(Workspace(Path.cwd()), verify=verify, as_json=as_json))


app.command(rich_help_panel=MEASURE)(releases)
app.command(rich_help_panel=MEASURE, context_settings=words.MORE_VALUES)(clean)
app.command("open", rich_help_panel=LOOK)(open_page)
app.add_typer(listing, name="list", rich_help_panel=LOOK)
app.add_typer(showing, name="show", rich_help_panel=LOOK)
app.command(rich_help_panel=LOOK)(advise)
app.command(rich_help_panel=LOOK)(anatomy)


@app.command(rich_help_panel=SHARE)
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A results folder, an archive, or reference results.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The one to compare it with.")],
    target: Annotated[Path, typer.Option(*words.TO, file_okay=False, help="Folder for tables and plots.")] = Path(
        "comparison"
    ),
    study: OneStudy = None,
    verdict: OneVerdict = None,
    summary: Annotated[bool, typer.Option("--summary", help="Print no rows, only what is below each table.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two result sets (machines, versions, configurations); refuse where a comparison would mislead.

    With reference results it goes claim by claim, and reports what agrees, differs or cannot be compared; '--verdict'
    prints the claims that A or B gave this verdict, and the files have all of them.
    """
    from tidemark.pipeline.reference import build_comparison
    from tidemark.results.claims.claims import VERDICTS

    if study is not None:
        from tidemark.studies.study import registry

        one_of("study", study, registry())
    made, written, left_out = build_comparison(a, b, target, study, verdict_of(verdict, VERDICTS))
    if as_json:
        print_json([json.loads(table.json()) for table in made])
    elif summary:
        print("\n".join(f"{table.title}\n" + "".join(f"- {note}\n" for note in table.notes) for table in made))
    else:
        print("\n".join(table.markdown() for table in made))
    # Beside JSON, stdout has nothing else.
    for line in (*left_out, f"wrote {', '.join(map(str, written))}"):
        print(f"tidemark: {line}", file=sys.stderr if as_json else sys.stdout)


@app.command(rich_help_panel=SHARE)
def archive(
    file: Annotated[
        Path | None,
        typer.Argument(dir_okay=False, help="The zip to write; named after protocol and day if left out."),
    ] = None,
    results: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="Folder with plan.json and the runs.")
    ] = Path("results"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Pack runs, locks, configuration and results so that others can rebuild everything from them.

    The zip is a Workflow Run RO-Crate, and states CC BY 4.0 as the licence of its results.
    """
    from tidemark.results.archive.pack import default_name, write_archive

    target = file or Path(default_name(results))
    if target.exists() and not force:
        raise ConfigError(f"{target}: exists already; name another file, or replace it with --force")
    write_archive(results, target)
    print(f"tidemark: wrote {target} ({target.stat().st_size / 1e6:.1f} MB)")


for command in (site, keep, artifact, finding):
    app.command(rich_help_panel=SHARE)(command)


@app.command(rich_help_panel=DEVELOP, context_settings=words.MORE_VALUES)
def overhead(
    context: typer.Context,
    repetitions: Annotated[int, typer.Option(min=1, max=1000, help="Windows of each arrangement.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.5, max=3600, help="Length of a window.")] = 3.0,
    config: words.Overrides = None,
    configfile: words.ConfigFile = Path("config.yaml"),
) -> None:
    """Measure the cost of the harness itself on this machine, in several arrangements, in alternation."""
    from tidemark.config import load
    from tidemark.pipeline.plan import make_plan
    from tidemark.pipeline.runner import locked
    from tidemark.studies.streams.bench import bench

    if math.isnan(seconds):
        raise ConfigError("--seconds: found nan; allowed: 0.5 to 3600")
    workspace = Workspace(Path.cwd())
    with locked(workspace):
        plan = make_plan(load(configfile, words.values(context, config)), workspace.root)
        bench(workspace, plan.series[0], repetitions, seconds)


@app.command(rich_help_panel=DEVELOP, context_settings=EVERYTHING_ELSE)
def test(
    context: typer.Context,
    integration: Annotated[
        bool, typer.Option("--integration", help="Also conformance, servers, the browser and slow results.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also every study's pipeline, kills, faults, stacks and Nix.")
    ] = False,
    long: Annotated[bool, typer.Option("--long", help="With --all: also tests that take many minutes each.")] = False,
) -> None:
    """Run the tests: units, results, one write and read of each system, and one smoke pipeline.

    Further arguments, such as paths and -k, go to pytest, which then runs what they select in one process. The
    exit code is pytest's.
    """
    os.chdir(REPOSITORY)
    if context.args:
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *context.args])
    tiers = 3 if everything or long else 2 if integration else 1
    options = ["--tiers", str(tiers), *(["--long"] if long else [])]
    os.execv(sys.executable, [sys.executable, "-m", "tests.tiers", *options])


@new.command("system")
def new_system(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As config.yaml will spell it, such as my-system.")],
    target: Annotated[
        Path | None,
        typer.Option(*words.TO, exists=True, file_okay=False, help="The folder for the file, if not that of systems."),
    ] = None,
) -> None:
    """Write the file of a new table system: two methods are to be filled in, and the suite then passes."""
    from tidemark.systems.registry import registry

    if not re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(f"found the name '{name}'; allowed: lower-case letters, digits, and hyphens between them")
    folder = REPOSITORY / "src" / "tidemark" / "systems"
    path, parts = (target or folder) / f"{name.replace('-', '_')}.py", [part.capitalize() for part in name.split("-")]
    if name in registry() or path.exists():
        raise ConfigError(f"found the name '{name}', which a system has, or {path.name}, which exists; choose another")
    text = (folder / "new_system.txt").read_text()
    text = text.replace("NAME", name).replace("TITLE", " ".join(parts))
    path.write_text(text.replace("CLASS", "".join(parts)))
    print(f"tidemark: wrote {path}: fill in 'write' and 'read', then './tidemark test tests/conformance -k {name}'")


app.command(rich_help_panel=DEVELOP)(docs)
app.command(rich_help_panel=DEVELOP)(completion)


# Groups come after all commands. Most steps, which the pipeline's rules call, are not in the help.
app.add_typer(stack, name="stack", rich_help_panel=MEASURE)
app.add_typer(new, name="new", rich_help_panel=DEVELOP)
app.add_typer(steps)

# Commands that had another name: it works for one release, is not in the help, and says the new one.
RENAMED: dict[str, Callable[..., None]] = {
    **{name: getattr(lists, name.replace(" ", "_")) for name in words.OLD_NAMES.values() if " " in name},
    "advise": advise,
    "keep": keep,
    "site": site,
    "overhead": overhead,
    "--version": _version,
}


def _saying(old: str, new: str, function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def renamed(*arguments: Any, **options: Any) -> None:
        say(f"tidemark: '{old}' is now './tidemark {new}'; the old name will go with the next release")
        function(*arguments, **options)

    return renamed


for old, new_name in words.OLD_NAMES.items():
    more = words.MORE_VALUES if "context" in signature(RENAMED[new_name]).parameters else None
    app.command(old, hidden=True, context_settings=more)(_saying(old, new_name, RENAMED[new_name]))
stack.command("list", hidden=True)(_saying("stack list", "list stacks", lists.list_stacks))


def _interrupted() -> int:
    say("tidemark: interrupted")
    return 130


def main() -> int:
    """Run the command line and return its exit code."""
    heed_interruptions()
    heed_completion()
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    try:
        code = app(standalone_mode=False, prog_name="./tidemark", complete_var=VARIABLE)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except Exception as error:
        if was_interrupted():
            return _interrupted()
        ours = error if isinstance(error, TidemarkError) else None
        ours = ours or words.explained(error, sys.argv[1:]) or of_the_machine(error)
        if ours is None:
            raise
        print(f"tidemark: {ours}", file=sys.stderr)
        return ours.exit_code
    # typer.Exit ends here as well: outside standalone mode click returns its code as the result.
    return code if isinstance(code, int) else 0
