"""Check of Snakemake's targets: an unknown word on the command line is rejected with a suggestion."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.paths import REPOSITORY, Workspace
from tidemark.pipeline.failure import TARGETS, Failure, note
from tidemark.pipeline.runner import OVERRIDES
from tidemark.schema import sections

SERIES = "series_"  # in the names of rules of series


def refuse_unknown(rules: Sequence[Any], config: Config) -> None:
    """End Snakemake with exit code 2 if its command line has a target that none of its `rules` makes.

    By itself it would end with a traceback. `tidemark all` prints the recorded reason; otherwise it is printed here.
    """
    names = [rule.name for rule in rules]
    for target in _targets():
        if target not in names and not any(rule.is_producer(os.path.relpath(target)) for rule in rules):
            reason = f"no target '{target}'; {meant(target, [each for each in names if SERIES not in each], config)}"
            note(Workspace(Path.cwd()), Failure(TARGETS, reason, None, ConfigError.exit_code))
            if OVERRIDES not in os.environ:
                print(f"tidemark: {reason}", file=sys.stderr)
            sys.exit(ConfigError.exit_code)


def _targets() -> list[str]:
    """Return the targets on Snakemake's command line, which Snakemake itself knows only once the rules are read."""
    if Path(sys.argv[0]).name != "snakemake":
        return []
    from snakemake.cli import get_argument_parser

    return list(get_argument_parser().parse_known_args(sys.argv[1:])[0].targets)


def meant(word: str, rules: Collection[str], config: Config) -> str:
    """Return a suggestion with the setting or rule most similar to `word`; all rules if none is similar."""
    protocols = {name for section in config.sections.values() for name in section["protocols"]}
    known = {name: name for name in rules}
    known |= {path.stem: f"--config stacks={path.stem}" for path in (REPOSITORY / "envs").glob("*.lock")}
    known |= {name: f"--config studies={name}" for name in sections()}
    known |= {name: f"--config protocol={name}" for name in protocols}
    nearest = difflib.get_close_matches(word, known, 1, 0.6)
    return f"did you mean {known[nearest[0]]}?" if nearest else f"allowed: {', '.join(rules)}, or a file that one makes"
