"""Encoding of dataclasses as JSON and decoding from it, both derived from the dataclass declaration.

Each field is the JSON key of that name, and its type determines the allowed values:

    str, bool, int, float   a string, true or false, an integer, a number
    X | None                what X allows, or null
    tuple[X, ...]           a list
    Pairs[X]                an object with arbitrary keys, whose order is kept
    a dataclass             an object, decoded as that dataclass
    X | Y of dataclasses    an object, decoded as the first of them whose keys without a default it has
    Any                     anything

A key whose field has a default may be absent, and unknown keys are ignored. Every error names the file, the key and
the value found.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Container, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from tidemark.errors import AnalysisError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LARGEST = 2**63 - 1  # largest integer accepted: the database holds no larger one
OF_LINES = "reason"  # the only key whose string may span lines: it may quote the end of a log


class Fields:
    """One JSON object, read key by key; `read` decodes a complete one."""

    def __init__(self, source: str, values: Mapping[str, Any], prefix: str = "") -> None:
        self.source, self.values, self._prefix = source, values, prefix

    @classmethod
    def read(cls, path: Path) -> Fields:
        """Return the object in the file at `path`; raise AnalysisError if the file is missing or holds no object."""
        values = _loaded(path)
        if not isinstance(values, dict):
            raise AnalysisError(f"{path}: found {type(values).__name__}; allowed: an object")
        return cls(str(path), values)

    @classmethod
    def read_list(cls, path: Path) -> list[Fields]:
        """Return the objects in the list that the file at `path` holds; raise AnalysisError as `read` does."""
        values = _loaded(path)
        if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
            raise AnalysisError(f"{path}: found {type(values).__name__}; allowed: a list of objects")
        return [cls(str(path), each, f"[{place}].") for place, each in enumerate(values)]

    def wrong(self, key: str, allowed: str) -> AnalysisError:
        """Return the AnalysisError to raise for the value at `key`, or for its absence."""
        found = repr(self.values[key])[:60] if key in self.values else "nothing"
        return AnalysisError(f"{self.source}: key '{self._prefix}{key}': found {found}; allowed: {allowed}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def number(self, key: str) -> float:
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number")
        return float(value)

    def maybe_number(self, key: str) -> float | None:
        return None if self.values.get(key) is None else self.number(key)

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, "a whole number")
        return value

    def check_version(self, *allowed: int, default: int | None = None) -> None:
        """Raise AnalysisError unless `schema_version` is one of `allowed`; where the key is absent it is `default`."""
        if self.integer("schema_version", default) not in allowed:
            versions = " and ".join(map(str, allowed))
            raise self.wrong("schema_version", f"{versions}. Analyse it with the version of Tidemark that measured it.")

    def part(self, key: str) -> Fields:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Fields(self.source, value, f"{self._prefix}{key}.")

    def parts(self, key: str) -> list[Fields]:
        """Return a list of objects; an absent key is an empty list."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, "a list of objects")
        return [Fields(self.source, item, f"{self._prefix}{key}[{place}].") for place, item in enumerate(value)]

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings; an absent key is an empty list."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "a list of texts")
        return tuple(value)

    def spelt(self, key: str) -> str | None:
        """Return the value at `key` formatted by `spelt`; None if the key is absent or null."""
        value = self.values.get(key)
        return None if value is None else spelt(value)

    def names(self) -> tuple[str, ...]:
        return tuple(self.values)


def spelt(value: Any) -> str:
    """Format a value for display: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def printable(text: str, lines: bool = False) -> str:
    """Return `text` as one line that is safe to print: control characters become U+FFFD, line breaks spaces.

    With `lines`, line breaks are kept.
    """
    if text.isprintable():
        return text
    made = text if lines else " ".join(text.splitlines())
    return "".join(each if each in "\n\t" or _is_shown(each) else "\N{REPLACEMENT CHARACTER}" for each in made)


def _is_shown(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def loaded(source: str, text: str | bytes) -> Any:
    """Parse `text` as JSON, with all of its strings made `printable`.

    Raises AnalysisError, naming `source`, for invalid or too deeply nested JSON, NaN, and integers over 64 bits.
    """
    try:
        return _sound(source, json.loads(text), "")
    except RecursionError:
        raise AnalysisError(
            f"{source}: cannot be read as JSON: found lists or objects in one another, hundreds deep; "
            "allowed: a file that Tidemark wrote"
        ) from None
    except ValueError as error:
        raise AnalysisError(f"{source}: cannot be read as JSON: {error}") from error


def _sound(source: str, value: Any, key: str) -> Any:
    if isinstance(value, str):
        return printable(value, key.rpartition(".")[2] == OF_LINES)
    if isinstance(value, dict):
        return {printable(name): _sound(source, each, f"{key}.{name}" if key else name) for name, each in value.items()}
    if isinstance(value, list):
        return [_sound(source, each, key) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise AnalysisError(f"{source}: key '{printable(key)}': found {value}; allowed: a finite number")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise AnalysisError(f"{source}: key '{printable(key)}': found more than 64 bits; allowed: up to {LARGEST:,}")
    return value


def _loaded(path: Path) -> Any:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise AnalysisError(f"{path}: not there; run 'all' again to measure or fetch what is missing") from None
    except OSError as error:
        raise AnalysisError(f"{path}: cannot be read as JSON: {error}") from error
    return loaded(str(path), text)


type Pairs[T] = tuple[tuple[str, T], ...]

SCALARS: dict[type, tuple[str, tuple[type, ...]]] = {
    str: ("a text", (str,)),
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
}
LISTS = {str: "texts", bool: "true or false", int: "whole numbers", float: "numbers"}

_hints = cache(get_type_hints)


def pairs[T](values: Mapping[str, T]) -> Pairs[T]:
    return tuple(values.items())


def read[T: DataclassInstance](kind: type[T], f: Fields) -> T:
    """Decode one object as a `kind`; raise AnalysisError, naming file and key, if its declaration forbids a value.

    If `kind` has a class attribute `below`, its object is at that key of `f`.
    """
    hints, below = _hints(kind), getattr(kind, "below", "")
    f, given = f.part(below) if below else f, {}
    for each in fields(kind):
        if each.name in f.values:
            given[each.name] = _read(hints[each.name], f, each.name)
        elif not _has_default(each):
            raise f.wrong(each.name, allowed(hints[each.name]))
    return kind(**given)


def values_of(shape: DataclassInstance) -> dict[str, Any]:
    """Return the values of the fields of `shape`, as they are, by name."""
    return {each.name: getattr(shape, each.name) for each in fields(shape)}


def picked[T: DataclassInstance](kind: type[T], values: Mapping[str, Any]) -> T:
    """Return a `kind` with those of `values` that are its fields; fields that are not among them have their default."""
    return kind(**{each.name: values[each.name] for each in fields(kind) if each.name in values})


def written(shape: DataclassInstance) -> dict[str, Any]:
    """Return the JSON object from which `read` restores `shape`."""
    hints, below = _hints(type(shape)), getattr(shape, "below", "")
    whole = {each.name: _plain(hints[each.name], getattr(shape, each.name)) for each in fields(shape)}
    return {below: whole} if below else whole


def to_json(shape: DataclassInstance) -> str:
    """Return the JSON text of a file that holds `shape`."""
    return json.dumps(written(shape), indent=1) + "\n"


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _without_null(hint: Any) -> tuple[Any, bool]:
    """Split X or `X | None` into X and whether null is allowed."""
    if get_origin(hint) not in (Union, UnionType) or NoneType not in get_args(hint):
        return hint, False
    (kind,) = (each for each in get_args(hint) if each is not NoneType)
    return kind, True


def _alternative(kind: Any, names: Container[str]) -> Any:
    """Return the dataclass of `X | Y` that an object with the keys `names` is decoded as; the last if none fits."""
    *first, last = get_args(kind)
    fitting = (each for each in first if all(_has_default(key) or key.name in names for key in fields(each)))
    return next(fitting, last)


def allowed(hint: Any) -> str:
    """Return what the type of a field allows, in words."""
    kind, null = _without_null(hint)
    if kind in SCALARS:
        words = SCALARS[kind][0]
    elif get_origin(kind) is tuple:
        words = f"a list of {LISTS.get(_without_null(get_args(kind)[0])[0], 'objects')}"
    else:
        words = "anything" if kind is Any else "an object"
    return f"{words} or null" if null else words


def _read(hint: Any, f: Fields, key: str) -> Any:
    value = f.values[key]
    kind, null = _without_null(hint)
    if kind is Any or (value is None and null):
        return value
    if kind in SCALARS:
        if type(value) not in SCALARS[kind][1]:
            raise f.wrong(key, SCALARS[kind][0])
        return kind(value)
    if get_origin(kind) in (Union, UnionType):
        kind = _alternative(kind, f.part(key).values)
    if is_dataclass(kind):
        return read(kind, f.part(key))  # type: ignore[arg-type]
    (of, *_) = get_args(kind)
    if get_origin(kind) is Pairs:
        part = f.part(key)
        return tuple((name, _read(of, part, name)) for name in part.names())
    if is_dataclass(of):
        return tuple(read(of, each) for each in f.parts(key))  # type: ignore[arg-type]
    of, null = _without_null(of)
    if not isinstance(value, list) or not all(
        type(each) in SCALARS[of][1] or (each is None and null) for each in value
    ):
        raise f.wrong(key, allowed(kind))
    return tuple(None if each is None else of(each) for each in value)


def _plain(hint: Any, value: Any) -> Any:
    kind, _ = _without_null(hint)
    if value is None or kind is Any or kind in SCALARS:
        return value
    if is_dataclass(value):
        return written(value)  # type: ignore[arg-type]
    (of, *_) = get_args(kind)
    if get_origin(kind) is Pairs:
        return {name: _plain(of, each) for name, each in value}
    return [_plain(of, each) for each in value]
