"""Snakemake as `tidemark all` starts it: `python -m tidemark.pipeline.launch`, with Snakemake's own words behind.

It differs in one thing: an option that nobody knows is answered by the line that names it. Its parser prints the usage
before that, which has hundreds of lines.
"""

from __future__ import annotations

import argparse
import sys


def _silent(parser: argparse.ArgumentParser, file: object = None) -> None:
    del parser, file


if __name__ == "__main__":
    argparse.ArgumentParser.print_usage = _silent  # type: ignore[method-assign,assignment]
    sys.argv[0] = "snakemake"
    from snakemake.cli import main

    main()
