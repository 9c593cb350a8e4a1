"""Digests of all results that the runs of each study give, value by value; `python -m tests.results.pins` writes them.

The runs are those of smoke/*.zip, measured with the protocol `smoke`, and a generated run set with every kind of row.
Refactoring must not change a pin. A commit that changes one states which, and why.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Iterator
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

from tidemark.pipeline.build import build_claims, build_database, build_tables, parts, subjects
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import unpack_archive
from tidemark.results.paper.values import Sources, values
from tidemark.results.publication import Chapter
from tidemark.results.report.data import report_data
from tidemark.runs.runset import RunSet

PINS = Path(__file__).with_name("pins.json")
SMOKE = Path(__file__).with_name("smoke")
RICH = "generated"
STUDIES = (RICH, *sorted(path.stem for path in SMOKE.glob("*.zip")))
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


def outcomes(folder: Path, study: str) -> dict[str, list[str]]:
    """The pinned items of each result that is made in `folder` from the archive of `study`, by the result's name."""
    if study == RICH:
        write_run_set(folder / "measured", models(), window_s=WINDOW_S, config={**CONFIG, "sweep": SWEEPS})
        write_archive(folder / "measured" / "results", folder / "archive.zip")
        unpack_archive(folder / "archive.zip", folder / "unpacked")
        folder /= "unpacked"
    else:
        zipfile.ZipFile(SMOKE / f"{study}.zip").extractall(folder)
    results = folder / "results"
    build_database(results)
    build_tables(results)
    build_claims(results)
    (results / "figures").mkdir()
    (results / "figures" / "index.json").write_text('{"figures": []}')  # pictures have tests of their own
    run_set = RunSet.load(results)
    made = parts(run_set)
    chapters = [Chapter(part.study.name, part.study.title, part.results.paper, part.measures) for part in made]
    (results / "values.json").write_text(json.dumps(values(run_set, Sources.read(results), chapters, {})))
    shown = report_data(run_set, subjects(made), json.loads((results / "claims.json").read_text()))
    (results / "report.json").write_text(json.dumps(shown))
    paths = [
        *(results / "tables").rglob("*.json"),
        *(results / f"{name}.json" for name in ("claims", "values", "report")),
    ]
    return {path.relative_to(results).as_posix(): list(items(json.loads(path.read_text()))) for path in sorted(paths)}


def items(content: Any) -> Iterator[str]:
    """A result as JSON texts: one for each row of a table, claim, series of the report, or other value of a key."""
    for key, value in content.items():
        if isinstance(value, list) and value:
            yield from (_text({key: each}) for each in value)
        else:
            yield _text({key: value})


def digest(item: str) -> str:
    return hashlib.sha256(item.encode()).hexdigest()[:6]


def _text(value: Any) -> str:
    return json.dumps(_rounded(value), ensure_ascii=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return value


def pinned(study: str, folder: Path) -> dict[str, str]:
    """Digests of the items of each result, in order, as they are kept."""
    return {name: " ".join(map(digest, found)) for name, found in outcomes(folder, study).items()}


def write() -> None:
    """Make the results of each archive and keep their digests."""
    found = {}
    for study in STUDIES:
        with tempfile.TemporaryDirectory() as made:
            found[study] = pinned(study, Path(made))
    PINS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    write()
