"""Test that tables, claims and the paper's values of one archive match their pins."""

from __future__ import annotations

import json
from pathlib import Path

from tests.results.pins import PINS, outcomes


def test_results_of_an_archive_match_their_pins(tmp_path: Path) -> None:
    found, pinned = outcomes(tmp_path), json.loads(PINS.read_text())
    changed = [name for name in sorted({*found, *pinned}) if found.get(name) != pinned.get(name)]
    assert not changed, (
        f"these are not what is pinned: {', '.join(changed)}. If that is meant, 'python -m tests.results.pins' writes "
        "the pins again, and the commit says why"
    )
