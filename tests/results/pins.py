"""Pinned digests of all results of one archive of a rich run set; `python -m tests.results.pins` writes them again.

Refactoring must not change a pin. A commit that changes one states which, and why.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.runs.runset import (
    DELTA,
    DELTA_DUCKDB,
    DUCKLAKE,
    ICEBERG_DUCKDB,
    INLINED,
    NULL,
    PYICEBERG,
    Model,
    batched,
    write_run_set,
)

from tidemark.pipeline.build import build_claims, build_database, build_tables, parts
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import unpack_archive
from tidemark.results.paper.contribution import Chapter
from tidemark.results.paper.values import Sources, values
from tidemark.runs.runset import RunSet

PINS = Path(__file__).with_name("pins.json")
DIGITS = 9  # significant digits of a number; processors of different make disagree beyond these
WINDOW_S = 3.0
SWEEPS = {
    "threads": {"axis": "threads", "values": [1, 2]},
    "batch-size": {"axis": "batch_size", "values": [10, 1000]},
    "encoded": {"axis": "encoding", "values": ["stream"]},
}
CONFIG = {"encoding": "record", "producer": "ahead", "overlap": False, "batch_size": 1000, "threads": 1}
NOW = {"stack": "current", "versions": {"duckdb": "1.5.5", "PyArrow": "22.0.0"}}


def models() -> tuple[Model, ...]:
    """Return models with two modes and stacks, repeats, sweeps, disturbed runs, attempts, failed and unrun series."""
    twice = replace(DUCKLAKE, repeats=(1.0, 1.1), first_write=9.0, warm_up_s=4.0)
    disturbed = replace(
        INLINED,
        repeats=(1.0, 0.95),
        measured_again={1: "foreign: other work took 1.20 processors"},
        failures=(("killed", ""), ("failed", "PostgreSQL did not start")),
    )
    main = (twice, disturbed, replace(PYICEBERG, opening_verdict="cold"), ICEBERG_DUCKDB, NULL, DELTA, DELTA_DUCKDB)
    main += (
        batched(DUCKLAKE, median_ms=30.0),
        batched(INLINED, median_ms=60.0, flush_s=(2.2, 2.0, 1.9)),
        batched(PYICEBERG, median_ms=90.0, slope_ms=80.0, durability_level="full"),
        batched(DELTA),
    )
    later = (replace(DUCKLAKE, median_ms=7.0, **NOW), replace(PYICEBERG, median_ms=70.0, **NOW))
    varied = [
        batched(DUCKLAKE, median_ms=30.0 / threads, sweep="threads", threads=threads, config=_set(threads=threads))
        for threads in (1, 2)
    ]
    varied += [
        replace(batched(DUCKLAKE, median_ms=9.0 + size / 50, sweep="batch-size"), batch_size=size,
                config=_set(batch_size=size))
        for size in (10, 1000)
    ]  # fmt: skip
    varied.append(replace(DUCKLAKE, median_ms=11.0, sweep="encoded", config=_set(encoding="stream")))
    return (*main, *later, *varied)


def _set(**values: Any) -> tuple[tuple[str, Any], ...]:
    return tuple({**CONFIG, **values}.items())


def outcomes(folder: Path) -> dict[str, str]:
    """Return the start of the SHA-256 of each result made in `folder`, by name; numbers are first rounded to DIGITS."""
    write_run_set(folder / "measured", models(), window_s=WINDOW_S, config={**CONFIG, "sweep": SWEEPS})
    write_archive(folder / "measured" / "results", folder / "archive.zip")
    unpack_archive(folder / "archive.zip", folder / "unpacked")
    results = folder / "unpacked" / "results"
    build_database(results)
    build_tables(results)
    build_claims(results)
    (results / "figures").mkdir()
    (results / "figures" / "index.json").write_text('{"figures": []}')  # figures have separate tests
    run_set = RunSet.load(results)
    chapters = [
        Chapter(part.study.name, part.study.title, part.results.paper, part.measures) for part in parts(run_set)
    ]
    (results / "values.json").write_text(json.dumps(values(run_set, Sources.read(results), chapters, {})))
    paths = [*results.rglob("tables/**/*.json"), results / "claims.json", results / "values.json"]
    return {path.relative_to(results).as_posix(): _digest(path) for path in sorted(paths)}


def _digest(path: Path) -> str:
    whole = json.dumps(_rounded(json.loads(path.read_text())), indent=1, ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        PINS.write_text(json.dumps(outcomes(Path(made)), indent=1) + "\n")
