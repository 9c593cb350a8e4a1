"""Encoding of dataclasses as JSON and decoding from it, both derived from the dataclass declaration.

Each field is the JSON key of that name, and its type determines the allowed values:

    str, bool, int, float   a string, true or false, an integer, a number
    X | None                what X allows, or null
    tuple[X, ...]           a list
    Pairs[X]                an object with arbitrary keys, whose order is kept
    a dataclass             an object, decoded as that dataclass
    X | Y of dataclasses    an object, decoded as the first of them whose keys without a default it has
    Any                     anything

A key whose field has a default may be absent, and unknown keys are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from tidemark.runs.coding.json_reader import Fields

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
    """Decode one object as a `kind`; raise AnalysisError, naming file and key, if its declaration forbids a value."""
    hints = _hints(kind)
    given = {}
    for each in fields(kind):
        if each.name in f.values:
            given[each.name] = _read(hints[each.name], f, each.name)
        elif not _has_default(each):
            raise f.wrong(each.name, _allowed(hints[each.name]))
    return kind(**given)


def written(shape: DataclassInstance) -> dict[str, Any]:
    """Return the JSON object from which `read` restores `shape`."""
    hints = _hints(type(shape))
    return {each.name: _plain(hints[each.name], getattr(shape, each.name)) for each in fields(shape)}


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


def _allowed(hint: Any) -> str:
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
        raise f.wrong(key, _allowed(kind))
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
