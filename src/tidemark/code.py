"""The package's own code: which files a room has, what a module leads to, and digests of what they mean."""

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
    """The Python and Java files of rooms (`measure`) and of single files (`lifetime.py`), each once, in order."""
    found: set[Path] = set()
    for name in places:
        place = PACKAGE / name
        found |= {
            path for path in (place.rglob("*") if place.is_dir() else (place,)) if path.suffix in (".py", ".java")
        }
    return sorted(found)


def named_classes(package: str) -> Iterator[type[Any]]:
    """The classes with a `name` of their own that stand in modules below `package`, all of which are imported.

    ConfigError, naming file and line, for a module that cannot be.
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
    """File and line of what went wrong."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"


@cache
def led_to(module: str) -> frozenset[Path]:
    """The files of the package that `module` imports, at its top or anywhere in it, and what those import; its own too.

    A module that is named by a text of its own, to be run as a program, counts as imported.
    Java sources belong to the folder that they lie in: they are led to with the first of its files.
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
    """SHA-256 of the code in `paths`, in hex. Comments and docstrings are not in it: they change no number."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        content = meaning(path.read_text()) if path.suffix == ".py" else path.read_text()
        whole.update(f"{path.relative_to(PACKAGE).as_posix()}\n{content}\n".encode())
    return whole.hexdigest()


def meaning(source: str) -> str:
    """What Python makes of `source`: without comments, layout and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _is_described(node):
            node.body = node.body[1:]
    return ast.dump(tree)


def _is_described(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
