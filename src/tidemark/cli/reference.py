"""`tidemark site`, `keep`, `artifact` and `finding`: reference results, and the pages made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.listing import list_findings
from tidemark.cli.words import TO
from tidemark.errors import ConfigError
from tidemark.paths import Workspace, write_if_changed


def site(
    archives: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[ARCHIVE]...", help="Archives of 'archive', or results folders, to show as well."),
    ] = None,
    kept: Annotated[Path, typer.Option("--reference", file_okay=False, help="The reference results.")] = Path(
        "reference"
    ),
    output: Annotated[Path, typer.Option("--output", "-o", file_okay=False, help="Folder for the site.")] = Path(
        "site"
    ),
    address: Annotated[
        str,
        typer.Option(metavar="URL", help="Where the site will be; with it, pages have cards for sharing, and a feed."),
    ] = "",
) -> None:
    """Write a site of all results, one static folder that needs no network; check each archive first."""
    from tidemark.pipeline.site import build_site

    print(f"tidemark: wrote {build_site(kept, archives or [], output, address)}")


def keep(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="An archive of 'archive', or a results folder.")],
    target: Annotated[Path, typer.Option(*TO, file_okay=False, help="Gets a folder for each study.")] = Path(
        "reference"
    ),
    costs: Annotated[
        bool, typer.Option("--costs", help="Only the costs of commits and of policies of upkeep, which 'advise' reads.")
    ] = False,
    figure: Annotated[
        str | None, typer.Option(metavar="NAME", help="The figure to keep; without it: the first of each study.")
    ] = None,
) -> None:
    """Write the results of a result set (claims, tables, versions, machine) as files to keep and to compare with."""
    if costs:
        from tidemark.pipeline.commit_costs import keep_costs

        print(f"tidemark: wrote {' and '.join(map(str, keep_costs(archive, target)))}")
        return
    from tidemark.pipeline.reference import build_reference

    written = build_reference(archive, target, figure)
    print(f"tidemark: wrote {len(written)} files ({sum(path.stat().st_size for path in written) / 1e3:,.0f} kB)")


def artifact(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(exists=True, file_okay=False, help="Has README.md and docs/studies; gets the pages."),
    ] = None,
    configfile: Annotated[Path, typer.Option("--configfile", help="The configuration to use.")] = Path("config.yaml"),
    kept: Annotated[
        Path, typer.Option("--reference", exists=True, file_okay=False, help="The reference results.")
    ] = Path("reference"),
) -> None:
    """Write the pages that are made from claims and reference results to FOLDER; without it, list those to write.

    These are ARTIFACT.md, docs/claims, docs/systems, docs/findings.md, docs/images, and parts of README.md and of the
    pages in docs/studies; besides docs/settings.md and config.schema.json, which are made from the declarations of the
    settings, docs/run-files.md, from those of the files, docs/commands.md, from the commands, and codemeta.json, from
    pyproject.toml and CITATION.cff.
    """
    from tidemark.cli.docs import COMMANDS, commands_page
    from tidemark.cli.planning import example
    from tidemark.pipeline.reference import README, documents
    from tidemark.results.reference.front import ADVICE, filled

    place = folder or Path()
    pages = documents(configfile, kept, place)
    pages[README] = filled(README, pages[README], ADVICE, example(kept))
    pages[COMMANDS] = commands_page(context.find_root().command)
    due = [name for name, text in pages.items() if not (place / name).exists() or (place / name).read_text() != text]
    for name in due:
        if folder is not None:
            write_if_changed(place / name, pages[name])
        print(f"tidemark: {'would write' if folder is None else 'wrote'} {place / name}")
    print(f"tidemark: {len(pages) - len(due)} of {len(pages)} pages are as they were")
    if folder is None and due:
        print("tidemark: './tidemark artifact .' writes the pages of this folder")


def finding(
    identity: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Without it they are listed, as by 'list findings'.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often its script is run.")] = 1,
    keep: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Reference results: what the runs gave is kept there, in place of earlier ones."
        ),
    ] = None,
) -> None:
    """Repeat a finding: run its script, which needs nothing from Tidemark, in the environment of the locks."""
    from tidemark.pipeline.build import all_findings

    if identity is None:
        list_findings()
        return
    found = {each.id: each for each in all_findings()}
    if identity not in found:
        raise ConfigError(f"found no finding '{identity}'; allowed: {', '.join(found)}")
    from tidemark.pipeline.reproduce import reproduce
    from tidemark.results.reference.findings import FOLDER
    from tidemark.runs.serde import to_json
    from tidemark.services.http import keep_loopback_direct

    keep_loopback_direct()
    evidence = reproduce(Workspace(Path.cwd()), found[identity], runs, lambda line: print(line, flush=True))
    if keep is not None:
        path = keep / FOLDER / f"{identity}.json"
        write_if_changed(path, to_json(evidence))
        print(f"tidemark: wrote {path}")
