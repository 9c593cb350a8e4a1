"""The package's own code: the files of a subpackage, the modules that a module imports, and digests of code."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
import re
import traceback
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from tidemark.errors import ConfigError

PACKAGE = Path(__file__).parent
# Packages and files whose code determines what is measured, and how. Planning and analysis are not included, nor are
# the shapes of run files, whose meaning has a version, and the declarations of settings, whose values a run records.
MEASURING = ("machine", "measure", "services", "stream", "studies", "systems", "process_lifetime.py")
# What the package's own source has, as its formatter writes it: no backslash, no second statement in a line.
IMPORT = re.compile(r"^[ ]*(?:from|import) (tidemark[\w.]*)(?: import (\([^)]*\)|.*))?", re.MULTILINE)
NAME = re.compile(r"#.*|(\w+)(?: as \w+)?")
PROGRAM = re.compile(r"[\"'](tidemark(?:\.\w+)+)[\"']")


def files(*places: str, suffixes: Collection[str] = (".py", ".java")) -> list[Path]:
    """Return the files with `suffixes` of subpackages (`measure`), and single files (`process_lifetime.py`), sorted."""
    there = [PACKAGE / name for name in places]
    found = (path for place in there for path in (place.rglob("*") if place.is_dir() else (place,)))
    return sorted({path for path in found if path.suffix in suffixes})


def named_classes(package: str) -> Iterator[type[Any]]:
    """Import all modules below `package`, and yield the classes defined in them that set `name` themselves.

    Raises ConfigError, naming file and line, if a module cannot be imported.
    """
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        try:
            imported = importlib.import_module(module.name)
        except Exception as error:
            raise ConfigError(
                f"{_place(error)}: cannot be imported ({type(error).__name__}: {error}); mend the file, or take it away"
            ) from error
        for _, item in inspect.getmembers(imported, inspect.isclass):
            if "name" in vars(item) and item.__module__ == module.name:
                yield item


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
        due += imports(_text(path))
    return frozenset(found)


def imports(source: str) -> set[str]:
    """Return the package's modules that `source` names, and each name imported from one as if it were a module."""
    names = set(PROGRAM.findall(source))
    for module, imported in IMPORT.findall(source):
        names |= {module, *(f"{module}.{name}" for name in NAME.findall(imported) if name)}
    return names


@cache
def _text(path: Path) -> str:
    return path.read_text()


def _file(module: str) -> Path | None:
    place = PACKAGE.parent.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 (hex) of the code in `paths`, without what changes no result: comments, docstrings, layout."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(f"{path.relative_to(PACKAGE).as_posix()}\n{_meaning(path)}\n".encode())
    return whole.hexdigest()


def on_disk() -> str:
    """Return the SHA-256 (hex) of the files of `MEASURING` as they are on the disk now, comments included."""
    whole = hashlib.sha256()
    for path in files(*MEASURING):
        whole.update(path.read_bytes())
    return whole.hexdigest()


@cache
def _meaning(path: Path) -> str:
    return meaning(_text(path)) if path.suffix == ".py" else _text(path)


def meaning(source: str) -> str:
    """Return the byte code of `source` as text, without line numbers, docstrings and assertions."""
    return _described(compile(source, "", "exec", dont_inherit=True, optimize=2))


def _described(value: object) -> str:
    if isinstance(value, CodeType):
        signature = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags)
        names = (value.co_name, value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        return f"{signature} {names} {value.co_code.hex()} {_described(value.co_consts)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_described, value))})"
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, frozenset) else repr(value)
