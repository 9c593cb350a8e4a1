"""Pinned text of every command's help, exit codes, and configuration errors; `python -m tests.cli.pins` writes it.

Refactoring or another version of a library must not change it. A commit that changes a line states why.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
from typer.testing import CliRunner

from tidemark import errors
from tidemark.cli.main import app
from tidemark.cli.words import OLD_NAMES
from tidemark.config import load
from tidemark.errors import ConfigError, TidemarkError
from tidemark.paths import REPOSITORY
from tidemark.schema import schema

PINS = Path(__file__).with_name("pins.txt")
CONFIG = REPOSITORY / "config.yaml"
RENAMED = {*((name,) for name in OLD_NAMES), ("stack", "list")}
WRONG = ("nonsense", "-7", "{a: b}")  # each is wrong for most keys
DESCRIPTION = re.compile(r"\. \(.*\)$", re.DOTALL)  # the key's description, after the error


def texts() -> str:
    return "".join(f"{line.rstrip()}\n" for line in (*helps(), "", *exit_codes(), "", *config_errors()))


def helps() -> Iterator[str]:
    """Yield the help of each command, at a width of 100 columns; an old name has that of the new one."""
    for words in _commands(typer.main.get_group(app)):
        shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
        assert shown.exit_code == 0, words
        assert str(REPOSITORY) not in shown.stdout, f"{words}: the help names the folder of this clone"
        yield f"# tidemark {' '.join(words)} --help"
        yield from shown.stdout.splitlines()


def _commands(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield above
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*above, name))
        elif (*above, name) not in RENAMED:
            yield (*above, name)


def exit_codes() -> Iterator[str]:
    yield "# exit codes"
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, TidemarkError):
            yield f"{kind.exit_code:3} {name}"


def config_errors() -> Iterator[str]:
    """Yield the errors for wrong values of each configuration key, given on the command line."""
    yield "# errors of the configuration"
    yield from _said("nokey=1")
    for key, rules in _keys(schema()["properties"], ()):
        for value in WRONG:
            yield from _said(f"{key}={value}")
        for bound, beyond in (("minimum", -1), ("maximum", 1)):
            if bound in rules:
                yield from _said(f"{key}={rules[bound] + beyond}")


def _keys(properties: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, rules in properties.items():
        yield ".".join((*above, name)), rules
        if len(above) < 3:
            yield from _keys(rules.get("properties", {}), (*above, name))
            others = rules.get("additionalProperties")
            if isinstance(others, dict) and name == "protocols":
                yield from _keys(others.get("properties", {}), (*above, name, "smoke"))


def _said(setting: str) -> Iterator[str]:
    """Yield the error of `setting`, or nothing if it is allowed."""
    try:
        load(CONFIG, [setting])
    except ConfigError as error:
        yield f"{setting} -> {DESCRIPTION.sub('', str(error))}"


if __name__ == "__main__":
    PINS.write_text(texts())
