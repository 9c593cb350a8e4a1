"""Registry of all systems, found in this package, and resolution of the configuration's entries to them.

A file with a subclass of `System` is a system.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import Any

from tidemark import code
from tidemark.errors import ConfigError
from tidemark.runs.spec import SeriesSpec, WorkloadSettings
from tidemark.schema import Key, Origin, nearest
from tidemark.systems.base import Options, System, Variant


@cache
def registry() -> dict[str, type[System]]:
    """Return all systems by name, sorted by name.

    Raise ConfigError if a class lacks a required attribute or method, or if two classes have the same name.
    """
    systems: dict[str, type[System]] = {}
    for item in code.named_classes("tidemark.systems"):
        if issubclass(item, System):
            other = systems.setdefault(item.name, item)
            if other is not item:
                raise ConfigError(f"{_place(item)}: the name '{item.name}' is that of {_place(other)}; give it another")
            _refuse_half(item)
    return dict(sorted(systems.items()))


def _refuse_half(kind: type[System]) -> None:
    lacking = [name for name in System.__annotations__ if not hasattr(kind, name)]
    lacking += [f"{name}()" for name in sorted(getattr(kind, "__abstractmethods__", ()))]
    lacking += [] if is_dataclass(kind.Options) else ["Options as a dataclass"]
    if lacking:
        bases = ", ".join(each.__name__ for each in kind.__bases__)
        raise ConfigError(
            f"{_place(kind)} (system '{kind.name}') lacks {', '.join(lacking)}; see the docstrings of {bases}"
        )


def _place(kind: type[System]) -> str:
    """Return the file and the name of a class."""
    return f"{inspect.getfile(kind)}: class {kind.__name__}"


def of_kind[Kind: System](kind: type[Kind]) -> dict[str, type[Kind]]:
    """Return the systems of one kind, by name."""
    return {name: item for name, item in registry().items() if issubclass(item, kind)}


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """One entry below `systems`; `options` are as written, and are checked later against the system's own."""

    name: str
    like: str
    title: str | None
    options: tuple[tuple[str, Any], ...]

    @classmethod
    def parse(cls, name: str, entry: Mapping[str, Any]) -> SystemEntry:
        options = tuple(sorted((key, value) for key, value in entry.items() if key not in ("like", "title")))
        return cls(name, entry.get("like", name), entry.get("title"), options)


def variant(entry: SystemEntry, origin: Origin, place: Key = ("systems",), kind: type[System] = System) -> Variant:
    """Return the system that `entry` names; raise ConfigError, with its place in the configuration, if it is invalid.

    `kind`: what a study can measure; a system of another kind is refused.
    """
    known: Mapping[str, type[System]] = of_kind(kind)
    if entry.like not in known:
        other = registry().get(entry.like)
        close = nearest(entry.like, known) if other is None else ""
        found = f"no system '{entry.like}'" if other is None else f"'{entry.like}', which is {other.kind}"
        where = origin.place((*place, entry.name))
        raise ConfigError(f"{where}: found {found}; allowed: {', '.join(known)}{close}")
    system = known[entry.like]
    title = entry.title or (system.title if entry.name == entry.like else entry.name)
    return Variant(entry.name, system, _options(entry, system.Options, origin, place), title)


def variant_of(spec: SeriesSpec) -> Variant:
    """Return the system of a planned series."""
    return variant(SystemEntry(spec.name, spec.system, spec.title, spec.options), Origin("the series", {}))


def spec_of(
    base: SeriesSpec, entry: SystemEntry, chosen: Variant, given: WorkloadSettings, *, window_seconds: float, runs: int
) -> SeriesSpec:
    """Return `base` as a series of `entry`, which has all its options and resolves to `chosen`, with these settings."""
    return replace(
        base,
        name=entry.name,
        title=chosen.title,
        system=entry.like,
        options=entry.options,
        mode=given.label,
        settings=given.pairs,
        window_seconds=window_seconds,
        runs=runs,
    )


def repeated(spec: SeriesSpec, count: int, **own: Any) -> list[SeriesSpec]:
    """Return `spec` with the fields `own`, once for each of `count` repeats."""
    return [replace(spec, repeat=number, **own) for number in range(1, count + 1)]


def with_defaults(entry: SystemEntry, settings: Mapping[str, Any]) -> SystemEntry:
    """Return `entry` with all options of its system; an omitted one gets the setting that it follows, or its default.

    A default is a setting like any other: a series measured with another one is another series. An unknown system is
    returned unchanged: `variant` reports the error.
    """
    given = dict(entry.options)
    known = registry().get(entry.like)
    for field in dataclasses.fields(known.Options) if known else ():
        followed = field.metadata.get("follows")
        given.setdefault(field.name, field.default if followed is None else settings[followed])
    return replace(entry, options=tuple(sorted(given.items())))


def _options(entry: SystemEntry, kind: type[Options], origin: Origin, place: Key) -> Options:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    for key, value in entry.options:
        where = origin.place((*place, entry.name, key))
        if key not in fields:
            known = ", ".join(["like", "title", *fields])
            raise ConfigError(
                f"{where}: found an option that '{entry.like}' does not have; allowed: {known}{nearest(key, fields)}"
            )
        allowed = typing.get_args(hints[key]) if isinstance(hints[key], types.UnionType) else (hints[key],)
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
        if type(value) not in allowed:
            raise ConfigError(f"{where}: found {json.dumps(value, default=str)}; allowed: {names}")
        if (choices := fields[key].metadata.get("choices")) and value not in choices:
            raise ConfigError(f"{where}: found {value!r}; allowed: {', '.join(map(str, choices))}")
        minimum = fields[key].metadata.get("minimum")
        if minimum is not None and value is not None and value < minimum:
            raise ConfigError(f"{where}: found {value}; allowed: at least {minimum}")
    return kind(**dict(entry.options))
