"""The command line's steps: the commands that the pipeline's rules call."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tidemark.errors import DiskFull, TidemarkError, is_disk_full
from tidemark.paths import Workspace

steps = typer.Typer()
PANEL = "Steps of the pipeline (its rules call them)"


@contextlib.contextmanager
def logged(path: Path | None) -> Iterator[None]:
    """Copy what goes to stderr into `path`, and the error that ends the step, if one does.

    A step with a log is one that a rule called: it ends when the pipeline does, and tells it its exit code.
    """
    if path is None:
        yield
        return
    from tidemark.lifetime import die_with_parent
    from tidemark.pipeline import PIPELINE, note_failed_step
    from tidemark.tee import Tee

    # The pipeline may have been killed while this step was still starting; then its parent is another already.
    die_with_parent(int(os.environ.get(PIPELINE, os.getppid())))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file, contextlib.redirect_stderr(Tee(sys.stderr, file)):
        try:
            yield
        except TidemarkError as error:
            file.write(f"tidemark: {error}\n")
            note_failed_step(Workspace(Path.cwd()), error.exit_code)
            raise
        except Exception as error:
            import traceback

            traceback.print_exc(file=file)
            if is_disk_full(error):
                note_failed_step(Workspace(Path.cwd()), DiskFull.exit_code)
                raise DiskFull(f"no room left on the device: {error}") from error
            raise


@steps.command(rich_help_panel=PANEL)
def unpack(
    file: Annotated[Path, typer.Option("--archive", help="A zip that 'archive' wrote.")],
    target: Annotated[Path, typer.Option(help="Folder to unpack it into.")],
    log: Annotated[Path | None, typer.Option(help="Also write what is said to this file.")] = None,
) -> None:
    """Check every file of an archive, and unpack what results are made from."""
    from tidemark.analysis.archive_unpack import unpack_archive

    with logged(log):
        unpack_archive(file, target)


@steps.command(rich_help_panel=PANEL)
def dataset(
    target: Annotated[Path, typer.Option(help="Folder for trips.parquet and dataset.json.")],
    config: Annotated[Path, typer.Option(help="The plan whose dataset to prepare.")] = Path(".tidemark/plan.json"),
    log: Annotated[Path | None, typer.Option(help="Also write what is said to this file.")] = None,
) -> None:
    """Acquire the trips, check them, and give each an id."""
    from tidemark.steps import prepare_dataset

    with logged(log):
        prepare_dataset(Workspace(Path.cwd()), config, target)


@steps.command(rich_help_panel=PANEL)
def events(
    trips: Annotated[Path, typer.Option(help="trips.parquet with ids.")],
    target: Annotated[Path, typer.Option(help="events.json to write.")],
    log: Annotated[Path | None, typer.Option(help="Also write what is said to this file.")] = None,
) -> None:
    """Encode trips as events both ways, read them back, and record their sizes."""
    from tidemark.steps import describe_events

    with logged(log):
        describe_events(trips, target)


@steps.command(rich_help_panel=PANEL)
def provision(
    target: Annotated[Path, typer.Option(help="provisioned.json to write.")],
    log: Annotated[Path | None, typer.Option(help="Also write what is said to this file.")] = None,
) -> None:
    """Fetch the servers' programs that the locks name, and verify each of them."""
    from tidemark.steps import provision_servers

    with logged(log):
        provision_servers(Workspace(Path.cwd()), target)


@steps.command(rich_help_panel=PANEL)
def measure(
    spec: Annotated[Path, typer.Option(help="spec.json of the series.")],
    position: Annotated[int, typer.Option(help="Its place in the order of all series.")] = 0,
    log: Annotated[Path | None, typer.Option(help="Also write what is said to this file.")] = None,
) -> None:
    """Measure one series; a failure is written to its outcome.json and does not stop the pipeline."""
    from tidemark.steps import measure_one

    with logged(log):
        measure_one(Workspace(Path.cwd()), spec, position)


@steps.command(rich_help_panel=PANEL)
def analyse(
    what: Annotated[str, typer.Argument(help="database, tables, figures, claims, paper or report.")],
    results: Annotated[Path, typer.Option(help="Folder with plan.json and the runs.")] = Path("results"),
    log: Annotated[Path | None, typer.Option(help="Also write what is said to this file.")] = None,
) -> None:
    """Build one kind of result from the run files."""
    from tidemark.steps import analyse_results

    with logged(log):
        analyse_results(what, results)


@steps.command(rich_help_panel=PANEL)
def resume() -> None:
    """Go on after a restart that 'all --allow-reboot' asked for; the unit that it installed calls this."""
    from tidemark.restarts import resume as go_on

    raise typer.Exit(go_on(Workspace(Path.cwd())))
