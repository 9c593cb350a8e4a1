"""Tests of the help, which newcomers read first: its commands, their order, and the steps that users do not type."""

from __future__ import annotations

import subprocess
import sys

import typer.main

from tidemark.cli.main import DEVELOP, LOOK, MEASURE, SHARE, app
from tidemark.cli.words import OLD_NAMES

FIRST = ["all", "doctor", "clean", "open", "advise", "compare", "archive"]
FIRST += ["overhead", "test"]


def listed() -> list[tuple[str, str]]:
    """Return the panel and name of each command, in the order of the help."""
    commands = typer.main.get_group(app).commands
    return [(getattr(command, "rich_help_panel", None), name) for name, command in commands.items()]  # type: ignore[misc]


def test_commands_are_in_the_order_in_which_a_user_needs_them() -> None:
    names = [name for _, name in listed()]
    assert [name for name in names if name in FIRST] == FIRST
    assert names[0] == "all"


def test_commands_are_in_a_panel_unless_only_rules_call_them() -> None:
    hidden = {name for name, command in typer.main.get_group(app).commands.items() if command.hidden}
    assert hidden == {*OLD_NAMES, "unpack", "dataset", "events", "measure", "measured", "resume", "widths"}
    panels = dict.fromkeys(panel for panel, name in listed() if name not in hidden)
    assert list(panels) == [MEASURE, LOOK, SHARE, DEVELOP]


def test_the_help_is_printed_in_that_order() -> None:
    command = [sys.executable, "-m", "tidemark", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    places = [said.index(f" {panel} ") for panel in (MEASURE, LOOK, SHARE, DEVELOP)]
    assert places == sorted(places)
