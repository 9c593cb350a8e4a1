"""Step commands of the command line, called by the pipeline's rules."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TextIO

import typer

from tidemark.errors import TidemarkError, of_the_machine
from tidemark.paths import Workspace

steps = typer.Typer()
PANEL = "Steps of the pipeline (its rules call them)"


class Tee(io.TextIOBase):
    """Stream to a terminal and a log; lines that the terminal redraws are not repeated in the log.

    Without a terminal, progress goes only to the log (`aside`), and stderr gets one line per step.
    """

    def __init__(self, terminal: TextIO, log: TextIO) -> None:
        self._terminal, self._log = terminal, log

    def write(self, text: str) -> int:
        if text.startswith("\r"):
            self._terminal.write(text)
            return len(text)
        # On a terminal the text replaces a drawn line, which may have been longer.
        self._terminal.write(f"\x1b[K{text}" if self.isatty() else text)
        self._log.write(text)
        self._log.flush()
        return len(text)

    def aside(self, text: str) -> None:
        self._log.write(text)
        self._log.flush()

    def flush(self) -> None:
        self._terminal.flush()

    def isatty(self) -> bool:
        return self._terminal.isatty()


@contextlib.contextmanager
def logged(path: Path | None) -> Iterator[None]:
    """Copy stderr to `path`, with the error that ends the step, if any; do nothing if `path` is None.

    A step with a log was called by a rule: it ends with the pipeline, and reports to it why it failed.
    """
    if path is None:
        yield
        return
    from tidemark.pipeline.failure import PIPELINE, Failure, note
    from tidemark.process_lifetime import die_with_parent

    def tell(reason: str, exit_code: int) -> None:
        note(Workspace(Path.cwd()), Failure(path.stem, reason, str(path), exit_code))

    # The pipeline may have been killed while this step was starting; its parent has then changed already.
    die_with_parent(int(os.environ.get(PIPELINE, os.getppid())))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file, contextlib.redirect_stderr(Tee(sys.stderr, file)):
        try:
            yield
        except TidemarkError as error:
            file.write(f"tidemark: {error}\n")
            tell(str(error), error.exit_code)
            raise
        except Exception as error:
            import traceback

            traceback.print_exc(file=file)
            if (ours := of_the_machine(error)) is not None:
                tell(str(ours), ours.exit_code)
                raise ours from error
            tell(f"{type(error).__name__}: {error}", TidemarkError.exit_code)
            raise


@steps.command(rich_help_panel=PANEL)
def unpack(
    file: Annotated[Path, typer.Option("--archive", exists=True, dir_okay=False, help="A zip that 'archive' wrote.")],
    target: Annotated[Path, typer.Option(file_okay=False, help="Folder to unpack it into.")],
    log: Annotated[Path | None, typer.Option(dir_okay=False, help="Also write the output to this file.")] = None,
) -> None:
    """Check every file of an archive, and unpack what results are made from."""
    from tidemark.results.archive.unpack import unpack_archive

    with logged(log):
        unpack_archive(file, target)


@steps.command(rich_help_panel=PANEL)
def dataset(
    target: Annotated[Path, typer.Option(file_okay=False, help="Folder for trips.parquet and dataset.json.")],
    config: Annotated[Path, typer.Option(help="The plan whose dataset to prepare.")] = Path(".tidemark/plan.json"),
    log: Annotated[Path | None, typer.Option(dir_okay=False, help="Also write the output to this file.")] = None,
) -> None:
    """Acquire the trips, check them, and give each an id."""
    from tidemark.pipeline.steps import prepare_dataset

    with logged(log):
        prepare_dataset(Workspace(Path.cwd()), config, target)


@steps.command(rich_help_panel=PANEL)
def events(
    trips: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="trips.parquet with ids.")],
    target: Annotated[Path, typer.Option(dir_okay=False, help="events.json to write.")],
    log: Annotated[Path | None, typer.Option(dir_okay=False, help="Also write the output to this file.")] = None,
) -> None:
    """Encode trips as events both ways, read them back, and record their sizes."""
    from tidemark.pipeline.steps import describe_events

    with logged(log):
        describe_events(trips, target)


@steps.command(rich_help_panel=PANEL)
def provision(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Folders of envs/jars; all when left out.")
    ] = None,
    target: Annotated[Path | None, typer.Option(dir_okay=False, help="File to write once all of them exist.")] = None,
    log: Annotated[Path | None, typer.Option(dir_okay=False, help="Also write the output to this file.")] = None,
) -> None:
    """Fetch the servers' programs that the locks name, verify each of them, and make them ready."""
    from tidemark.pipeline.steps import provision_servers

    with logged(log):
        provision_servers(Workspace(Path.cwd()), names or [], target)


@steps.command(rich_help_panel=PANEL)
def tool(
    name: Annotated[str, typer.Argument(help="The tool: a lock in envs/tools.")],
    target: Annotated[Path | None, typer.Option(dir_okay=False, help="File to write once it exists.")] = None,
    log: Annotated[Path | None, typer.Option(dir_okay=False, help="Also write the output to this file.")] = None,
) -> None:
    """Make the environment of a program that a workload uses, from its lock, unless it exists."""
    from tidemark.pipeline.steps import provide_tool

    with logged(log):
        provide_tool(name, Workspace(Path.cwd()), target)


@steps.command(rich_help_panel=PANEL)
def measure(
    spec: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="spec.json of the series.")],
    position: Annotated[int, typer.Option(help="Its place in the order of all series.")] = 0,
    log: Annotated[Path | None, typer.Option(dir_okay=False, help="Also write the output to this file.")] = None,
) -> None:
    """Measure one series; a failure is written to its outcome.json and does not stop the pipeline."""
    from tidemark.pipeline.steps import measure_one

    with logged(log):
        measure_one(Workspace(Path.cwd()), spec, position)


@steps.command(rich_help_panel=PANEL)
def measured(
    plan: Annotated[Path, typer.Option(help="The plan whose series have ended.")],
    target: Annotated[Path, typer.Option(help="File to write it to, for the results.")],
    log: Annotated[Path | None, typer.Option(help="Also write the output to this file.")] = None,
) -> None:
    """Check that results can be made: at least one run of one series exists."""
    from tidemark.pipeline.steps import check_measured

    with logged(log):
        check_measured(Workspace(Path.cwd()), plan, target)


@steps.command(rich_help_panel=PANEL)
def analyse(
    what: Annotated[str, typer.Argument(help="database, tables, figures, claims, paper or report.")],
    results: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="Folder with plan.json and the runs.")
    ] = Path("results"),
    log: Annotated[Path | None, typer.Option(dir_okay=False, help="Also write the output to this file.")] = None,
) -> None:
    """Build one kind of result from the run files."""
    from tidemark.pipeline.steps import analyse_results

    with logged(log):
        analyse_results(what, results)


@steps.command(rich_help_panel=PANEL)
def resume() -> None:
    """Continue after a restart that 'all --allow-reboot' requested; the systemd unit that it installed calls this."""
    from tidemark.pipeline.reboots import resume as go_on

    raise typer.Exit(go_on(Workspace(Path.cwd())))
