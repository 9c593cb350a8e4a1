"""Snakemake as started by `tidemark all`: `python -m tidemark.pipeline.launch`, followed by Snakemake's arguments.

It differs in three ways. An unknown option is reported by the one line that names it, without the hundreds of lines of
usage that the parser prints before it. The profile that is read, always the same, is not named. Temporary folders are
below the workspace, where the next start removes what a killed process left; the steps would inherit TMPDIR.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from tidemark.paths import Workspace, private_directory

PROFILE = "Using workflow specific profile "  # how Snakemake's line on it begins


class _Below(tempfile.TemporaryDirectory[str]):
    def __init__(
        self, suffix: str | None = None, prefix: str | None = None, dir: str | None = None, **rest: Any
    ) -> None:
        super().__init__(suffix, prefix, dir or str(private_directory(Workspace(Path.cwd()).snakemake)), **rest)


def _silent(parser: argparse.ArgumentParser, file: object = None) -> None:
    del parser, file


def _print(*words: object, **options: Any) -> None:
    if not " ".join(map(str, words)).startswith(PROFILE):
        print(*words, **options)


if __name__ == "__main__":
    argparse.ArgumentParser.print_usage = _silent  # type: ignore[method-assign,assignment]
    tempfile.TemporaryDirectory = _Below  # type: ignore[assignment,misc]
    sys.argv[0] = "snakemake"
    from snakemake import cli

    cli.print = _print
    cli.main()
