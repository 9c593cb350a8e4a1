"""What one model run set gives, pinned: a change of the analysis shows here what it changes.

`TIDEMARK_PIN=1 python -m pytest tests/analysis/test_guard.py` writes the pinned files anew, to be read as a diff.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.analysis.runset import DELTA, DUCKLAKE, ICEBERG_DUCKDB, INLINED, batched, write_run_set

from tidemark.analysis import build_tables
from tidemark.analysis.ledger import build_claims
from tidemark.analysis.measures import Measures
from tidemark.analysis.paper_sentences import Writer
from tidemark.analysis.paper_values import Sources, named
from tidemark.analysis.runs import RunSet

PINNED = Path(__file__).parent / "pinned"
MODELS = (DUCKLAKE, INLINED, ICEBERG_DUCKDB, DELTA, batched(DUCKLAKE), batched(INLINED))


def test_what_a_model_run_set_gives(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, MODELS, window_s=3.0)
    build_tables(results)
    build_claims(results)
    (results / "figures").mkdir()
    (results / "figures" / "index.json").write_text('{"figures": []}')
    run_set = RunSet.load(results)
    paper = named(run_set, Sources.read(results)) | Writer(Measures(run_set)).sentences()
    tables = "\n".join(path.read_text() for path in sorted((results / "tables").glob("*.md")))
    found = {
        "tables.md": tables,
        "claims.md": (results / "claims.md").read_text(),
        "paper.json": json.dumps(paper, indent=1, ensure_ascii=False) + "\n",
    }
    if os.environ.get("TIDEMARK_PIN"):
        PINNED.mkdir(exist_ok=True)
        for name, content in found.items():
            (PINNED / name).write_text(content)
    for name, content in found.items():
        assert content == (PINNED / name).read_text(), f"{name} is not as it was pinned"
