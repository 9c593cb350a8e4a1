"""Constructed data of the report's first screen with every kind of cell: a tie, no interval, no value.

The names are those of the systems in `MODELS`, so that the matrix matches the plots of a built report.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.runs.runset import DELTA, DUCKLAKE, ICEBERG_DUCKDB, NULL, PYICEBERG, batched, write_run_set

from tidemark.pipeline.build import build_claims, build_report

MODELS = (
    replace(DUCKLAKE, reason=None),
    PYICEBERG,
    replace(NULL, median_ms=1.0),
    replace(DELTA, reason="</script><b>no such column"),
    batched(ICEBERG_DUCKDB),
    batched(DUCKLAKE),
)
DATA = re.compile(r'(<script id="data" type="application/json">)(.*?)(</script>)', re.DOTALL)

Value = tuple[float, float] | float | str | None  # with relative half-width, or alone; or why it is missing
SYSTEMS = (
    ("ducklake", "DuckLake", "#0072B2", "default"),
    ("ducklake-inlined", "DuckLake + inlining", "#56B4E9", "default"),
    ("iceberg-pyiceberg", "Iceberg (PyIceberg)", "#D55E00", "default"),
    ("iceberg-duckdb", "Iceberg (DuckDB)", "#E69F00", "full"),
    ("delta-rs", "Delta Lake (delta-rs)", "#009E73", "default"),
    ("null", "Null", "#7F7F7F", "default"),
)
# Per question: key, title, unit, better direction, whether it is a change, whether it is shown.
QUESTIONS = (
    ("rate", "Events/s", "events/s", "higher", False, True),
    ("p50", "Write p50", "ms", "lower", False, True),
    ("p99", "Write p99", "ms", "lower", False, True),
    ("fixed", "Fixed time of a commit", "ms", "lower", False, False),
    ("growth", "Slower after 1,000 commits", "ms", "lower", True, True),
    ("files", "Files left", "files", "lower", False, True),
    ("bytes", "Bytes left", "bytes", "lower", False, False),
    ("cpu", "CPU: writer", "ms/event", "lower", False, False),
    ("flush", "Flush or merge", "s", "lower", False, False),
    ("lost", "Rows lost", "%", "lower", True, False),
)
REFUSED = "delta-rs refused the write: no such column 'Airport_fee' in the table's schema, so the series ended"
INLINED_ONLY = "nothing is inlined, so there is nothing to flush"
# In the order of SYSTEMS; one of them refuses to write, and the last is the harness.
VALUES: dict[str, tuple[Value, ...]] = {
    "rate": ((96.2, 0.03), (98.1, 0.04), (19.4, 0.02), (24.3, 0.02), REFUSED, (1920.0, 0.01)),
    "p50": ((10.1, 0.02), (8.03, 0.02), (50.4, 0.01), (40.2, 0.02), REFUSED, (0.4, 0.01)),
    "p99": ((22.5, 0.2), (19.1, 0.25), (142.0, 0.1), (88.0, 0.1), REFUSED, (0.9, 0.1)),
    "fixed": (9.1, 7.4, 48.2, 39.9, None, None),
    "growth": ((0.4, 3.0), (-0.1, 9.0), (61.5, 0.1), (9.8, 0.2), REFUSED, (0.0, 0.0)),
    "files": (5_821.0, 2.0, 23_402.0, 18_220.0, REFUSED, None),
    "bytes": (18_400_000.0, 412_000.0, 92_100_000.0, 71_000_000.0, REFUSED, None),
    "cpu": ((1.21, 0.1), (1.22, 0.1), (9.0, 0.1), (7.1, 0.1), REFUSED, (0.1, 0.1)),
    "flush": ((1.3, 0.2), (0.21, 0.1), INLINED_ONLY, INLINED_ONLY, REFUSED, None),
    "lost": ((100.0, 0.5), (100.0, 0.2), 100.0, 100.0, REFUSED, (0.0, 0.0)),
}
BATCH = (9.1, 1.0, 8.3, 8.9, 1.0, 3.0)  # factor of batch mode on the value of each system


def cell(value: Value, factor: float = 1.0) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return {"missing": value}
    if isinstance(value, float):
        return {"value": value * factor, "low": None, "high": None, "note": "counted once, after the last run"}
    middle, width = value[0] * factor, abs(value[0] * factor) * value[1]
    return {"value": middle, "low": middle - width, "high": middle + width, "note": ""}


def ratio(question: dict[str, Any], one: dict[str, Any] | None, other: dict[str, Any] | None) -> Any:
    """Return how much worse `one` is: [ratio, low, high], a difference for changes; None if a value is missing."""
    if one is None or other is None or "missing" in one or "missing" in other:
        return None
    known = one["low"] is not None and other["low"] is not None
    if question["signed"]:
        width = math.hypot(one["high"] - one["value"], other["high"] - other["value"]) if known else 0.0
        found, low, high = (one["value"] - other["value"] + shift for shift in (0.0, -width, width))
    else:
        found = one["value"] / other["value"] if question["better"] == "lower" else other["value"] / one["value"]
        width = math.hypot(one["high"] / one["value"] - 1, other["high"] / other["value"] - 1) if known else 0.0
        low, high = found * math.exp(-width), found * math.exp(width)
    return [found, low, high] if known else [found, None, None]


def questions() -> list[dict[str, Any]]:
    made = []
    for mode in ("single", "batch"):
        for key, title, unit, better, signed, shown in QUESTIONS:
            about = {"key": f"{key}-{mode}", "title": title, "unit": unit, "mode": mode, "better": better}
            hint = f"{title} of hot runs: the median of the runs, and its 95 % interval."
            made.append(about | {"signed": signed, "hint": hint, "shown": shown and (mode == "single" or key != "p99")})
    cold = {"key": "cold", "title": "Cold start", "unit": "times", "mode": None, "better": "lower", "signed": False}
    return [*made, cold | {"hint": "The first run over the hot runs.", "shown": False}]


def group(key: str, title: str, stack: str, source: str = "", factor: float = 1.0) -> dict[str, Any]:
    """Return one comparison; `factor` multiplies each value of the first system."""
    asked, rows = questions(), []
    for place, (name, system, colour, level) in enumerate(SYSTEMS):
        own = factor if place == 0 else 1.0
        cells = [cell(values[place], own) for values in VALUES.values()]
        cells += [cell(values[place], own * BATCH[place]) for values in VALUES.values()]
        row = {"system": name, "title": system, "colour": colour, "harness": name == "null"}
        row["outside"] = "The harness stores nothing" if name == "null" else ""
        row["cells"] = {question["key"]: found for question, found in zip(asked, [*cells, None], strict=True)}
        promise = (
            "Data and catalog are flushed to the disk."
            if level == "full"
            else "Catalog only; data is left to the cache."
        )
        marks = ["run 2 was disturbed by other work on the machine"] if name == "iceberg-pyiceberg" else []
        rows.append(row | {"durability_level": level, "durability": "" if name == "null" else promise, "marks": marks})
    ratios = {
        (name := question["key"]): [
            [ratio(question, one["cells"][name], other["cells"][name]) for other in rows]  # type: ignore[index]
            for one in rows
        ]
        for question in asked
    }
    about = {"key": key, "title": title, "stack": stack, "source": source, "asked": list(ratios)}
    return about | {"rows": rows, "ratios": ratios}


def answer(key: str, title: str, text: str, apart: str = "") -> dict[str, str]:
    return {"key": key, "title": title, "text": text, "apart": apart}


def first_screen() -> dict[str, Any]:
    told = [
        ("Dataset", "SYNTHETIC: the trips were drawn from a model of the published file (100,000 trips).", True),
        ("Machine", "2 cores of an AMD EPYC 7B13, 24 GB of memory, ext4 on a virtual disk, Linux 6.8", False),
        ("Protocol", "quick: windows of 20 s, 3 runs a series (run 0 is cold)", False),
        ("n", "2 hot runs a system and mode; intervals are 95 %", False),
        ("What bounds the numbers", "The consumer is one thread: beyond 1,900 events/s it is the limit.", False),
        ("Marks", "1 of 18 runs was disturbed by other work on the machine", False),
        ("Failures", "; ".join([f"Delta Lake (delta-rs), single: {REFUSED}"] * 3), True),
        ("Version", "Tidemark 0.1.0, measuring code aaaaaaaaaaaa, dataset 4f1d2c3b9a87", False),
    ]
    tie = "not distinguishable from it: DuckLake"
    slower = "Iceberg (PyIceberg): 62 ms more a write after 1,000 commits [55, 68]"
    answers = [
        answer("rate-single", "Fastest for single events", "DuckLake + inlining: 98 events/s [94, 102]", tie),
        answer("rate-batch", "Fastest in batches", "DuckLake: 875 events/s [849, 902]"),
        answer("growth", "Slows down most", slower),
        answer("files", "Leaves most files", "Iceberg (PyIceberg): 23,402 files", "no interval is known: one count"),
    ]
    matrix = {"questions": questions(), "groups": [group("main", "Stack thesis", "thesis")]}
    read_first = [{"label": label, "text": text, "warning": warning} for label, text, warning in told]
    return {"read_first": read_first, "answers": answers, "matrix": matrix, "gallery": None}


def gallery() -> dict[str, Any]:
    """Return the data of a page over two archives, one of them with two stacks, without runs, plots and claims."""
    groups = [
        group("a", "Archive a, stack thesis", "thesis", "cloud (2 cores)"),
        group("b-thesis", "Archive b, stack thesis", "thesis", "laptop (8 cores)", 1.3),
        group("b-current", "Archive b, stack current", "current", "laptop (8 cores)", 0.5),
    ]
    about = {"sha256": "ab" * 32, "protocol": "quick", "version": "0.1.0", "harness": "a" * 12, "runs": 18}
    first = {"name": "cloud (2 cores)", "title": "The cloud", "machine": "2 cores, 24 GB", "dataset": "100,000 trips"}
    second = {
        "name": "laptop (8 cores)",
        "title": "A laptop",
        "machine": "8 cores, 16 GB",
        "dataset": "3 million trips",
    }
    archives = [
        first | about | {"synthetic": True, "marks": ["1 run was disturbed"], "failures": ["delta-rs: refused"]},
        second | about | {"synthetic": False, "marks": [], "failures": []},
    ]
    empty: dict[str, Any] = {"claims": None, "series": [], "quantities": [], "of_runs": [], "systems": [], "parts": {}}
    empty |= {"durability": [], "sampling": "", "leading": "", "downloads": []}
    matrix = {"questions": questions(), "groups": groups}
    return first_screen() | empty | {"answers": [], "matrix": matrix, "gallery": archives}


def write_report(root: Path) -> Path:
    """Build a report of `MODELS` below `root` in the usual way, and return its folder."""
    made = write_run_set(root, MODELS, window_s=4.0)
    build_claims(made)
    build_report(made)
    return made


def data_of(page: str) -> dict[str, Any]:
    found = DATA.search(page)
    assert found is not None
    values: dict[str, Any] = json.loads(found[2])
    return values


def with_data(page: str, data: dict[str, Any]) -> str:
    """Return `page` with its data replaced."""
    written = json.dumps(data).replace("<", "\\u003c")
    return DATA.sub(lambda found: found[1] + written + found[3], page, count=1)


def states(data: dict[str, Any], which: int, systems: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return the state ("best", "tied", ...) of each cell with a value in a group if `systems` are shown."""
    asked, group = data["matrix"]["questions"], data["matrix"]["groups"][which]
    found = {}
    for question in asked:
        at = question["key"]
        shown = [
            (place, row, row["cells"][at])
            for place, row in enumerate(group["rows"])
            if row["system"] in systems and row["cells"][at] and "missing" not in row["cells"][at]
        ]
        measured = [(each[2]["value"], -each[0]) for each in shown if not each[1]["outside"]]
        if not measured:
            continue
        turned = [(-value if question["better"] == "lower" else value, place) for value, place in measured]
        best = -max(turned)[1]
        for place, row, _ in shown:
            if row["outside"]:
                state = "outside"
            elif len(measured) > 1 and len({value for value, _ in measured}) == 1:
                state = "alike"
            elif place == best:
                state = "best" if len(measured) > 1 else "only"
            elif (between := group["ratios"][at][place][best]) is None:
                state = "unknown"
            elif between[1] is None:
                state = "open"
            else:
                same = 0 if question["signed"] else 1
                state = "tied" if between[1] <= same <= between[2] else "apart"
            found[row["system"], question["key"]] = state
    return found
