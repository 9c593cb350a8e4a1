"""`tidemark open` and `tidemark clean`: pages of this folder in a browser, and what in it nothing uses any more."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.listing import AsJson, print_json
from tidemark.cli.words import ConfigFile, Overrides, Presets, values
from tidemark.errors import ConfigError, MachineError
from tidemark.paths import Workspace


def open_page(
    page: Annotated[Path, typer.Argument(dir_okay=False, help="The report if left out.")] = Path("results/report.html"),
) -> None:
    """Open the report, or another page, in your browser."""
    import webbrowser

    if not page.exists():
        raise ConfigError(f"{page}: is not there; './tidemark all' makes the report, 'site' and 'docs' their pages")
    print(f"tidemark: {page}", flush=True)
    if not webbrowser.open(page.absolute().as_uri()):
        raise MachineError(f"found no browser that opens {page}; name one in the variable BROWSER, or open it yourself")


def clean(
    context: typer.Context,
    config: Overrides = None,
    configfile: ConfigFile = Path("config.yaml"),
    preset: Presets = None,
    force: Annotated[bool, typer.Option("--force", help="Remove them.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the folders that nothing here uses any more, and their sizes; with --force, remove them.

    These are runs that neither the configuration nor the results name, trips that the configuration does not name, and
    environments of locks that have changed. Runs that are removed are gone: 'archive' keeps what results name.
    """
    from tidemark.config import load
    from tidemark.pipeline.plan import make_plan
    from tidemark.pipeline.runner import locked

    workspace = Workspace(Path.cwd())
    planned = make_plan(load(configfile, values(context, config, preset)))
    with locked(workspace):
        used = {spec.directory for spec in planned.series} | {planned.dataset_directory}
        found = [(path, what, _size(path)) for path, what in _unused(workspace, used)]
        found.sort(key=lambda each: each[2], reverse=True)
        for path, _, _ in found if force else ():
            _remove(path)
    if as_json:
        print_json([{"path": str(path), "what": what, "bytes": size} for path, what, size in found])
    else:
        for path, what, size in found:
            print(f"{size / 1e6:10,.1f} MB  {path}  ({what})")
    said = f"unused folders: {len(found):,}, {sum(size for _, _, size in found) / 1e6:,.1f} MB"
    more = "; removed" if force else "; './tidemark clean --force' removes them" if found else ""
    print(f"tidemark: {said}{more}", file=sys.stderr if as_json else sys.stdout)


def _unused(workspace: Workspace, used: set[str]) -> Iterator[tuple[Path, str]]:
    """Yield each unused folder, relative to the workspace, with what it is.

    `used` are folders that the configuration names; those of the results' plan are added. A cache that is elsewhere may
    be shared with other workspaces, and is left alone.
    """
    from tidemark.runs.plan import PlanFile
    from tidemark.services.programs.tools import TOOLS, tool_environment
    from tidemark.software.stacks import environment, names

    root, cache = workspace.root, workspace.cache.absolute()
    for plan in (workspace.plan, workspace.results / "plan.json"):
        if plan.exists():
            used |= {series.directory for series in PlanFile.read(plan).series}
    kinds: dict[str, Iterable[Path]] = {
        "runs of another configuration": (path.parent for path in workspace.results.glob("runs/**/spec.json")),
        "trips of another configuration": workspace.data.glob("prepared/*"),
    }
    if cache.resolve().is_relative_to(root.resolve()):
        locked = [environment(name, workspace).absolute() for name in names()]
        locked += [tool_environment(lock.stem, workspace) for lock in TOOLS.glob("*.lock")]
        used |= {path.relative_to(root).as_posix() for path in locked}
        kinds["an environment that no lock names"] = chain(cache.glob("envs/[!.]*"), cache.glob("tools/[!.]*"))
    for what, folders in kinds.items():
        for path in sorted(folders):
            relative = path.relative_to(root)
            if path.is_dir() and relative.as_posix() not in used:
                yield relative, what


def _size(folder: Path) -> int:
    """Return the bytes of all files below `folder`."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _remove(folder: Path) -> None:
    """Remove a folder, the seal beside it, and the folders above it that are empty then."""
    from tidemark.integrity import seal_path

    shutil.rmtree(folder)
    seal_path(folder).unlink(missing_ok=True)
    for above in folder.parents[:-1]:
        if any(above.iterdir()):
            return
        above.rmdir()
