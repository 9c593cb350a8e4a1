"""Tests of docs/architecture.md's rules against the sources: the import order of layers ("rooms"), and their size."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src" / "tidemark"
# The files at the package's root are the first layer. A module imports from its own layer and from earlier ones.
BASE = (
    "errors",
    "paths",
    "process_lifetime",
    "without_pandas",
    "progress",
    "settings",
    "schema",
    "integrity",
    "config",
    "code",
)
ROOMS = (
    "base",
    "runs",
    "machine",
    "dataset",
    "services",
    "systems",
    "stream",
    "software",
    "measure",
    "analysis",
)
ROOMS += ("results", "planner", "studies", "pipeline", "cli")
DOORS = ("__init__", "__main__")  # the version and the entry point; they belong to no layer
MOST_FILES = 30  # directly in one folder
MOST_LINES = 500  # in one file
MOST_OF_THE_CODE = 0.30


@dataclass(frozen=True, slots=True, order=True)
class Crossing:
    """An import of a later layer: the importing file, relative to the package's folder, and the imported layer."""

    file: str
    room: str


# Existing imports against the order, each with its reason. An entry that is no longer needed must be removed.
ALLOWED: set[Crossing] = set()


def sources(package: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file of the package with its layer, except those of `DOORS`."""
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).with_suffix("").parts
        if len(name) > 1:
            yield path, name[0]
        elif name[0] not in DOORS:
            yield path, room_of(f"{package.name}.{name[0]}")


def imports(path: Path, package: str) -> Iterator[str]:
    """Yield the modules of `package` that a file imports, at any nesting level, also for type checking only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write 'from {package}...' in full, so that the room can be seen"
            if node.module == package:
                yield from (f"{package}.{alias.name}" for alias in node.names if not alias.name.startswith("__"))
            elif node.module and node.module.startswith(f"{package}."):
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module.count(".") == 1)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(f"{package}."))


def room_of(module: str) -> str:
    first = module.split(".")[1]
    return "base" if first in BASE else first


def crossings(package: Path) -> set[Crossing]:
    """Return every import of a later layer; raise AssertionError if a layer is unknown."""
    found = set()
    for path, room in sources(package):
        assert room in ROOMS, f"{path}: no room '{room}'; there are {', '.join(ROOMS)} (and {', '.join(BASE)} in base)"
        for module in imports(path, package.name):
            there = room_of(module)
            assert there in ROOMS, f"{path} imports {module}, which is in no room"
            if ROOMS.index(there) > ROOMS.index(room):
                found.add(Crossing(path.relative_to(package).as_posix(), there))
    return found


def complaints(found: set[Crossing], allowed: set[Crossing]) -> list[str]:
    """Return a sentence for each import that is not allowed, and for each permission that is not needed."""
    wrong = [f"{each.file} imports '{each.room}', a later room" for each in sorted(found - allowed)]
    return wrong + [f"{each.file} imports '{each.room}' no more: remove it" for each in sorted(allowed - found)]


def neighbours(package: Path) -> list[str]:
    """Return imports of one study by another; code that two studies need belongs in an earlier layer."""
    wrong = []
    for path in sorted((package / "studies").glob("*/**/*.py")):
        mine = path.relative_to(package / "studies").parts[0]
        for module in imports(path, package.name):
            parts = module.split(".")
            other = parts[2] if parts[1] == "studies" and len(parts) > 2 else mine
            if other != mine and (package / "studies" / other).is_dir():
                wrong.append(f"{path.relative_to(package)} imports {module}")
    return wrong


def circle(package: Path) -> list[str]:
    """Modules that import one another in a circle, the first that is found; [] if there is none.

    Imports inside functions and for types alone count, and so does a text that names a module.
    """
    modules = {".".join(path.relative_to(package.parent).with_suffix("").parts): path for path in package.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        named: list[str] = []
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                named += [f"{node.module}.{alias.name}" for alias in node.names]
                named += [node.module] if any(each not in modules for each in named[-len(node.names) :]) else []
            elif isinstance(node, ast.Import):
                named += [alias.name for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.append(node.value)
        graph[name] = modules.keys() & {*named} - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def crowded(package: Path) -> list[str]:
    """Return folders with too many files, and layers with too much of the code."""
    folders = [package, *sorted(path for path in package.rglob("*") if path.is_dir())]
    counts = {folder: len(list(folder.glob("*.py"))) for folder in folders}
    wrong = [f"{folder.name}: {count} files" for folder, count in counts.items() if count > MOST_FILES]
    sizes = {path: len(path.read_text().splitlines()) for path in package.rglob("*.py")}
    wrong += [f"{path.relative_to(package)}: {n} lines" for path, n in sorted(sizes.items()) if n > MOST_LINES]
    lines: dict[str, int] = dict.fromkeys(ROOMS, 0)
    for path, room in sources(package):
        parts = path.relative_to(package).parts
        part = "/".join(parts[:2]) if room == "studies" and len(parts) > 2 else room  # each study is a layer by itself
        lines[part] = lines.get(part, 0) + sizes[path]
    whole = sum(lines.values())
    return wrong + [f"{room}: {n} of {whole} lines" for room, n in lines.items() if n > MOST_OF_THE_CODE * whole]


def test_no_file_imports_a_later_layer() -> None:
    assert complaints(crossings(PACKAGE), ALLOWED) == []


def test_no_study_imports_another() -> None:
    assert neighbours(PACKAGE) == []


def test_no_modules_import_one_another_in_a_circle() -> None:
    assert circle(PACKAGE) == []


def test_no_folder_or_layer_is_too_large() -> None:
    assert crowded(PACKAGE) == []


def test_diagram_shows_every_layer_once_and_in_order() -> None:
    picture = (REPOSITORY / "docs/architecture.md").read_text().split("```mermaid")[1].split("```")[0]
    shown = [line.split("[")[0].strip() for line in picture.splitlines() if "[" in line and "subgraph" not in line]
    assert [name for name in shown if name in ROOMS] == list(ROOMS)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package with two files per layer, and no violations."""
    folder = tmp_path / "tide"
    for room in ROOMS[1:]:
        for number in (1, 2):
            place = folder / room / f"file_{number}.py"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("from tide.errors import TideError\n" * 10)
    (folder / "errors.py").write_text("class TideError(Exception): ...\n")
    (folder / "__init__.py").write_text('__version__ = "1"\n')
    return folder


def test_valid_package_has_no_violations(package: Path) -> None:
    (package / "cli" / "file_1.py").write_text("from tide import __version__\nfrom tide.runs import file_1\n")
    assert crossings(package) == set()
    assert neighbours(package) == crowded(package) == []


@pytest.mark.parametrize(
    "line",
    [
        "from tide.studies.streams import loop",
        "import tide.studies.streams.window.loop as loop",
        "from tide import studies",
        "def late():\n    from tide.studies.streams.window.loop import run",
        "if TYPE_CHECKING:\n    from tide.studies import study",
    ],
)
def test_import_of_a_later_layer_is_found_at_any_nesting_level(package: Path, line: str) -> None:
    (package / "results" / "file_1.py").write_text(f"{line}\n")
    assert crossings(package) == {Crossing("results/file_1.py", "studies")}
    assert complaints(crossings(package), set()) == ["results/file_1.py imports 'studies', a later room"]
    (package / "errors.py").write_text("from tide.runs import file_1\n")
    assert Crossing("errors.py", "runs") in crossings(package)


@pytest.mark.parametrize(
    "line",
    [
        "from tide.measure import file_1",
        "from tide.measure.file_1 import x",
        "def late():\n    from tide.measure.file_1 import x",
        "if TYPE_CHECKING:\n    from tide.measure.file_1 import x",
        "PROGRAM = 'tide.measure.file_1'",
    ],
)
def test_circle_is_found_however_it_is_closed(package: Path, line: str) -> None:
    (package / "measure" / "file_1.py").write_text("from tide.measure.file_2 import x\n")
    assert circle(package) == []
    (package / "measure" / "file_2.py").write_text(f"{line}\n")
    assert {*circle(package)} == {"tide.measure.file_1", "tide.measure.file_2"}


def test_unneeded_permission_is_reported(package: Path) -> None:
    allowed = {Crossing("results/file_1.py", "studies")}
    assert complaints(crossings(package), allowed) == ["results/file_1.py imports 'studies' no more: remove it"]


def test_unknown_layer_is_named(package: Path) -> None:
    (package / "helpers").mkdir()
    (package / "helpers" / "words.py").write_text("")
    with pytest.raises(AssertionError, match="no room 'helpers'"):
        crossings(package)
    (package / "helpers" / "words.py").unlink()
    (package / "util.py").write_text("")
    with pytest.raises(AssertionError, match="no room 'util'"):
        crossings(package)


def test_relative_import_is_refused(package: Path) -> None:
    (package / "runs" / "file_1.py").write_text("from ..studies import streams\n")
    with pytest.raises(AssertionError, match="in full"):
        crossings(package)


def test_study_that_imports_another_is_found(package: Path) -> None:
    for name in ("one", "two"):
        (package / "studies" / name).mkdir()
        (package / "studies" / name / "study.py").write_text(f"from tide.studies.{name} import words\n")
    (package / "studies" / "one" / "words.py").write_text("from tide.studies import file_1\n")
    assert neighbours(package) == []
    (package / "studies" / "one" / "words.py").write_text("from tide.studies.two.study import STUDY\n")
    assert neighbours(package) == ["studies/one/words.py imports tide.studies.two.study"]


def test_too_many_files_and_too_much_code_are_found(package: Path) -> None:
    for number in range(3, 32):
        (package / "measure" / f"file_{number}.py").write_text("")
    assert crowded(package) == ["measure: 31 files"]
    (package / "stream" / "file_1.py").write_text("x = 1\n" * 200)
    assert any(each.startswith("stream: ") for each in crowded(package))
    (package / "stream" / "file_1.py").write_text("")
    for name in ("one", "two"):
        (package / "studies" / name).mkdir()
        (package / "studies" / name / "words.py").write_text("x = 1\n" * 120)
    assert crowded(package) == ["measure: 31 files"]
    (package / "studies" / "two" / "words.py").write_text("x = 1\n" * 400)
    assert any(each.startswith("studies/two: ") for each in crowded(package))
    (package / "errors.py").write_text("x = 1\n" * 501)
    assert "errors.py: 501 lines" in crowded(package)
