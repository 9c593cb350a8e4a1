"""Page of the run files: every column and every key with its type, its unit and its meaning.

A column or key is described where it is declared: by the comment after the field of its dataclass, or in a mapping.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from tidemark.machine.sampler import MachineSamples
from tidemark.results.tables.table import markdown_grid
from tidemark.runs.manifest import Manifest
from tidemark.runs.outcome import Outcome
from tidemark.runs.serde import allowed
from tidemark.runs.spec import SeriesSpec

HEAD = """# Run files

The files of each run, column by column and key by key. `./tidemark artifact` makes this page from the declarations by
which they are written and read. [The database](database.md) has most of their content in tables.

A series has a folder `results/runs/<workload>/<system>/<mode>/<fingerprint>/`, and each of its runs a folder `run-N`
in it, which is written once, when the run has ended. A run that other work on the machine disturbed is kept in
`disturbed`, next to the run that was measured in its place. Moments in a window are counted from its opening, on a
clock that stops between its parts.
"""
OPERATIONS = "One row per operation, in order of time. All studies have the columns `start_ns` and `rows`.\n"
MACHINE = (
    "One row per second of the window; the last one may be shorter. A group is a server, the harness, the producer or "
    "a client. Its columns are null while it has no process.\n"
)
RUN = "Everything else that is recorded of a run. `[]` stands for each object of a list, and `*` for any name.\n"
SPEC = "What determines the series. Its settings are those of the configuration: see [Settings](settings.md).\n"
OUTCOME = "How the series ended. `attempts.json` has its attempts, too, and is written while the series is measured.\n"
UNITS = {
    "ns": "ns",
    "ms": "ms",
    "s": "s",
    "second": "s",
    "seconds": "s",
    "percent": "%",
    "mhz": "MHz",
    "c": "°C",
    "bytes": "bytes",
}
FIELD = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)

type Columns = Mapping[str, str] | type  # columns with their meanings, or the dataclass whose fields they are


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Files of a study's runs: the columns of `operations` (of several kinds of windows) and of `more` Parquet files.

    `records` are the dataclasses of `found` in run.json.
    """

    operations: tuple[Columns, ...]
    records: tuple[type, ...] = ()
    more: Mapping[str, Columns] = MappingProxyType({})


def meanings(kind: type) -> dict[str, str]:
    """Return the comment after each field of a dataclass and its bases, in the order of the fields."""
    classes = [each for each in reversed(kind.__mro__) if is_dataclass(each)]
    found = {name: text for each in classes for name, text in FIELD.findall(inspect.getsource(each))}
    return {each.name: found[each.name] for each in fields(kind)}


def unit(name: str) -> str:
    """Return the unit of a column or key, which its name ends with; empty for counts and texts."""
    if name.endswith("_per_s"):
        return "1/s"
    if name.startswith("bytes_"):
        return "bytes"
    return "processors" if name.endswith("_cores") else UNITS.get(name.rpartition("_")[2], "")


def run_files_page(studies: Mapping[str, RunFiles]) -> str:
    """Return the page as Markdown; `studies` are the files of each study's runs."""
    return "\n".join([HEAD, *_parquet(studies), *_json(studies)])


def _parquet(studies: Mapping[str, RunFiles]) -> Iterator[str]:
    yield "## operations.parquet\n"
    yield OPERATIONS
    for study, files in studies.items():
        yield f"### Operations of {study}\n"
        for columns in files.operations:
            yield from _columns(columns)
    yield "## machine.parquet\n"
    yield MACHINE
    seconds = meanings(MachineSamples)
    groups = {"cpu_<group>_percent": seconds.pop("groups"), "memory_<group>_bytes": seconds.pop("memory")}
    yield from _columns(seconds | groups)
    for study, files in studies.items():
        for name, columns in files.more.items():
            yield f"## {name}.parquet\n"
            yield f"Only in runs of {study}.\n"
            yield from _columns(columns)


def _columns(columns: Columns) -> Iterator[str]:
    if isinstance(columns, type):
        yield from _about(columns)
    found = meanings(columns) if isinstance(columns, type) else columns
    rows = [(f"`{name}`", unit(name), text) for name, text in found.items()]
    yield markdown_grid(("column", "unit", "meaning"), rows)
    yield ""


def _json(studies: Mapping[str, RunFiles]) -> Iterator[str]:
    yield "## run.json\n"
    yield RUN
    yield from _objects((Manifest,), "")
    for study, files in studies.items():
        if files.records:
            yield f"## found in runs of {study}\n"
            yield from _objects(files.records, "found")
    yield "## spec.json\n"
    yield SPEC
    yield from _keys(SeriesSpec)
    yield "## outcome.json\n"
    yield OUTCOME
    yield from _objects((Outcome,), "")


def _objects(kinds: Iterable[type], path: str) -> Iterator[str]:
    """Yield a table of the keys of each of `kinds`, which are at `path`, and one of each object below them."""
    places: dict[type, list[str]] = {}
    for kind in kinds:
        if below := getattr(kind, "below", ""):
            place = f"{path}.{below}"
            places.setdefault(kind, []).append(place)
            _place_below(kind, place, places)
            continue
        if path:
            yield from _about(kind)
        yield from _keys(kind)
        _place_below(kind, path, places)
    for kind, paths in places.items():
        yield f"### {', '.join(f'`{name}`' for name in paths)}\n"
        yield from _about(kind)
        yield from _keys(kind)


def _about(kind: type) -> Iterator[str]:
    """Yield the first paragraph of the docstring of `kind`."""
    yield _plain(" ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split()))
    yield ""


def _keys(kind: type) -> Iterator[str]:
    hints = get_type_hints(kind)
    rows = [(f"`{name}`", allowed(hints[name]), unit(name), _plain(text)) for name, text in meanings(kind).items()]
    yield markdown_grid(("key", "type", "unit", "meaning"), rows)
    yield ""


def _place_below(kind: type, path: str, places: dict[type, list[str]]) -> None:
    """Add the paths of the objects below `kind` to `places`."""
    for name, hint in get_type_hints(kind).items():
        for below, ending in _dataclasses(hint):
            place = f"{path}.{name}{ending}".lstrip(".")
            places.setdefault(below, []).append(place)
            _place_below(below, place, places)


def _dataclasses(hint: Any) -> Iterable[tuple[type, str]]:
    """Yield the dataclasses in a type, each with what its path adds to the key: nothing, [] or .*"""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint, ""
    ending = {"Pairs": ".*", "tuple": "[]"}.get(getattr(getattr(hint, "__origin__", None), "__name__", ""), "")
    for inner in get_args(hint):
        yield from ((kind, ending + rest) for kind, rest in _dataclasses(inner))


def _plain(text: str) -> str:
    return text.replace("None", "null")
