"""The package's own code: the files of a subpackage, the modules that a module imports, and digests of code."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import pkgutil
import re
import traceback
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tidemark.errors import ConfigError

PACKAGE = Path(__file__).parent
MODULE = re.compile(r"tidemark(\.\w+)+")


def files(*places: str) -> list[Path]:
    """Return the Python and Java files of subpackages (`measure`) and single files (`process_lifetime.py`), sorted."""
    found: set[Path] = set()
    for name in places:
        place = PACKAGE / name
        found |= {
            path for path in (place.rglob("*") if place.is_dir() else (place,)) if path.suffix in (".py", ".java")
        }
    return sorted(found)


def named_classes(package: str) -> Iterator[type[Any]]:
    """Import all modules below `package`, and yield the classes defined in them that set `name` themselves.

    Raises ConfigError, naming file and line, if a module cannot be imported.
    """
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        for _, item in inspect.getmembers(_imported(module.name), inspect.isclass):
            if "name" in vars(item) and item.__module__ == module.name:
                yield item


def _imported(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise ConfigError(
            f"{_place(error)}: cannot be imported ({type(error).__name__}: {error}); mend the file, or take it away"
        ) from error


def _place(error: Exception) -> str:
    """Return file and line of the cause of `error`."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"


@cache
def led_to(module: str) -> frozenset[Path]:
    """Return the package's files that `module` imports, anywhere in it and transitively, and its own file.

    A module that is the content of a string literal, to be run as a program, counts as imported.
    Java sources belong to their folder: they are included with the first of its files.
    """
    found: set[Path] = set()
    due = [module]
    while due:
        path = _file(due.pop())
        if path is None or path in found:
            continue
        found |= {path, *path.parent.glob("*.java")}
        due += _imports(path)
    return frozenset(found)


@cache
def _imports(path: Path) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
            names.append(node.value)
    return tuple(name for name in names if name.startswith(PACKAGE.name))


def _file(module: str) -> Path | None:
    place = PACKAGE.parent.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 (hex) of the code in `paths`, without comments and docstrings, which change no result."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        content = meaning(path.read_text()) if path.suffix == ".py" else path.read_text()
        whole.update(f"{path.relative_to(PACKAGE).as_posix()}\n{content}\n".encode())
    return whole.hexdigest()


def meaning(source: str) -> str:
    """Return the syntax tree of `source` as text: without comments, layout and docstrings."""
    tree = ast.parse(source)
    described = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, described) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
