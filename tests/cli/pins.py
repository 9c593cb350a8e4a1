"""Help of every command, exit codes, and errors of the configuration, as text: `python -m tests.cli.pins` writes it.

A move of code, or another library below it, must change nothing here. A commit that changes a line says why.
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
from tidemark.config import load
from tidemark.errors import ConfigError, TidemarkError
from tidemark.paths import REPOSITORY
from tidemark.schema import schema

PINS = Path(__file__).with_name("pins.txt")
CONFIG = REPOSITORY / "config.yaml"
WRONG = ("nonsense", "-7", "{a: b}")  # each is wrong for most keys
DESCRIPTION = re.compile(r"\. \(.*\)$", re.DOTALL)  # of the key, behind the error


def texts() -> str:
    return "".join(f"{line.rstrip()}\n" for line in (*helps(), "", *exit_codes(), "", *config_errors()))


def helps() -> Iterator[str]:
    """The help of each command, at a width of 100 columns."""
    for words in _commands(typer.main.get_group(app)):
        shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
        assert shown.exit_code == 0, words
        yield f"# tidemark {' '.join(words)} --help"
        yield from shown.stdout.replace(str(REPOSITORY), ".").splitlines()


def _commands(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield above
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*above, name))
        else:
            yield (*above, name)


def exit_codes() -> Iterator[str]:
    yield "# exit codes"
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, TidemarkError):
            yield f"{kind.exit_code:3} {name}"


def config_errors() -> Iterator[str]:
    """What is said of wrong values for each key of the configuration, as the command line gives them."""
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
    """The error that `setting` gives; nothing where it is allowed."""
    try:
        load(CONFIG, [setting])
    except ConfigError as error:
        yield f"{setting} -> {DESCRIPTION.sub('', str(error))}"


if __name__ == "__main__":
    PINS.write_text(texts())
