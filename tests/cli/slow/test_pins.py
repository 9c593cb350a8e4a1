"""Test that help, exit codes and configuration errors match their pins."""

from __future__ import annotations

import difflib

from tests.cli.pins import PINS, texts


def test_help_exit_codes_and_errors_match_their_pins() -> None:
    pinned, found = PINS.read_text().splitlines(), texts().splitlines()
    changed = list(difflib.unified_diff(pinned, found, "pinned", "found", lineterm="", n=0))
    assert not changed, "\n".join(
        [
            *changed[:60],
            "If that is intended, 'python -m tests.cli.pins' writes the pins again, and the commit states why.",
        ]
    )
