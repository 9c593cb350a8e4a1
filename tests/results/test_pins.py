"""Tables, claims, the paper's values and the report's data that the runs of each study give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.results.pins import PINS, RICH, STUDIES, digest, outcomes

from tidemark.studies.study import registry


@pytest.mark.parametrize("study", STUDIES)
def test_results_of_a_study_are_as_pinned(study: str, tmp_path: Path) -> None:
    found, pinned = outcomes(tmp_path, study), json.loads(PINS.read_text())[study]
    changed = []
    for name in sorted({*found, *pinned}):
        items, kept = found.get(name, []), pinned.get(name, "").split()
        if len(items) != len(kept):
            changed.append(f"{name}: {len(items)} values, {len(kept)} are pinned")
        changed += [f"{name}: {item[:300]}" for item, of in zip(items, kept, strict=False) if digest(item) != of]
    assert not changed, "\n".join(
        [*changed[:20], f"{len(changed)} values are not as pinned. If that is intended, 'python -m tests.results.pins' "
         "writes the pins again, and the commit states why"]
    )  # fmt: skip


def test_every_study_is_pinned() -> None:
    assert {*STUDIES} - {RICH} == {*registry()}
