"""Validation of a configuration against the schema: defaults are filled in, and errors state their location."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tidemark.errors import ConfigError
from tidemark.settings import CommonSettings, json_schema

SECTIONS = Path(__file__).parent / "studies"  # one folder per study, whose config.py declares its section
COMMAND_LINE = "--config"  # place of a value of the command line

Key = tuple[str, ...]  # path of names, outermost first
Place = int | str  # the line in the file, from 1, or a place elsewhere


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of values: the file's name, and the place of each key that was given."""

    name: str
    places: Mapping[Key, Place]

    def place(self, key: Key) -> str:
        """Return "file:line: key", without the line if it is unknown; "--config: key" for the command line."""
        return f"{self.source(key) or self.name}: key '{'.'.join(key) or '(all)'}'"

    def source(self, key: Key) -> str | None:
        """Return where the value of `key` was given, itself or in a key around it; None for a default."""
        found = next((self.places[key[:size]] for size in range(len(key), 0, -1) if key[:size] in self.places), None)
        return f"{self.name}:{found}" if isinstance(found, int) else found


@cache
def sections() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas of the studies' sections, by study name."""
    names = sorted(path.parent.name for path in SECTIONS.glob("*/config.py"))
    declared = {name: import_module(f"{__package__}.studies.{name}.config").CONFIG for name in names}
    return {name: {**json_schema(kind), "default": {}} for name, kind in declared.items()}


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the complete configuration: common keys, then one section per study."""
    common = json_schema(CommonSettings)
    return {**common, "properties": {**common["properties"], **sections()}}


def editor_schema() -> str:
    """Return the schema of a configuration as text, as editors take it: JSON Schema, draft 7.

    It also allows what the check completes: a single value for a list, names alone for systems, nothing for a section.
    """
    whole = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Configuration of Tidemark"}
    return json.dumps(whole | _completed(schema()), indent=1, ensure_ascii=False) + "\n"


def _completed(rule: Any) -> Any:
    """Return `rule` with the shorter forms that `_fill` completes."""
    if isinstance(rule, list):
        return [_completed(each) for each in rule]
    if not isinstance(rule, dict):
        return rule
    own = {key: value if key in ("default", "enum") else _completed(value) for key, value in rule.items()}
    kinds = rule.get("type", ())
    if "array" in kinds and isinstance(rule.get("items"), dict):
        short: Any = own["items"]
    elif "propertyNames" in rule:
        names = {"type": ["string", "null"]}
        short = {"anyOf": [names, {"type": "array", "items": names}]}
    elif kinds == "object":
        short = {"type": "null"}
    else:
        return own
    about = {key: own.pop(key) for key in ("description", "default") if key in own}
    return {**about, "anyOf": [own, short]}


def check(values: Mapping[Any, Any], origin: Origin) -> dict[str, Any]:
    """Return `values` with the schema's defaults filled in; raise ConfigError for the most severe violation."""
    # Not at the top: each writer of a window is a process that imports this file, and none of them checks anything.
    import jsonschema
    from jsonschema.exceptions import best_match

    rules = schema()
    filled: dict[str, Any] = _fill(_plain_keys(values), rules)
    _refuse_unusable(filled, (), origin)
    problems = list(jsonschema.Draft202012Validator(rules).iter_errors(filled))
    if problems:
        worst = min(problems, key=lambda problem: (problem.validator != "additionalProperties", len(problem.path)))
        raise ConfigError(_explain(best_match([worst]), origin))  # of several alternatives, the nearest one
    return filled


def _plain_keys(values: Any) -> Any:
    """Convert all keys to strings: YAML reads the key `null` as None and `1` as a number."""
    if isinstance(values, Mapping):
        return {"null" if key is None else str(key): _plain_keys(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_plain_keys(value) for value in values]
    return values


def by_name(values: Any) -> Any:
    """Expand a name or a list of names to a mapping of names without settings; return anything else unchanged."""
    names = ["null" if name is None else name for name in values] if isinstance(values, list) else [values]
    if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        return values
    return {name: {} for name in names}


def _fill(values: Any, rules: Mapping[str, Any]) -> Any:
    """Return `values` with defaults for missing keys, {} for objects without value, and single values as lists.

    If systems are named, a name alone means that system with its defaults.
    """
    if rules.get("type") == "object":
        if values is None:
            values = {}
        if "propertyNames" in rules:
            values = by_name(values)
        if not isinstance(values, Mapping):
            return values
        properties, others = rules.get("properties", {}), rules.get("additionalProperties")
        defaults = {key: rule["default"] for key, rule in properties.items() if "default" in rule and key not in values}
        rest = others if isinstance(others, dict) else {}
        return {key: _fill(value, properties.get(key, rest)) for key, value in {**values, **defaults}.items()}
    if _is_one_of_a_list(values, rules):
        values = [values]
    if isinstance(values, list) and isinstance(rules.get("items"), dict):
        return [_whole(value, rules["items"]) for value in values]
    return _whole(values, rules)


def _whole(value: Any, rules: Mapping[str, Any]) -> Any:
    """Return 2 for a 2.0 where the schema, which accepts both, expects an integer."""
    kinds = rules.get("type") or ()
    is_integer = "integer" in ([kinds] if isinstance(kinds, str) else kinds)
    return int(value) if is_integer and isinstance(value, float) and value.is_integer() else value


def _is_one_of_a_list(value: Any, rules: Mapping[str, Any]) -> bool:
    """Return True if the schema expects a list here, of which `value` is to be the only element."""
    if value is None or isinstance(value, (list, Mapping)):
        return False
    allowed = [rules, *rules.get("oneOf", ())]
    lists = any("array" in (rule.get("type") or ()) for rule in allowed)
    return lists and all(rule.get("const") != value for rule in allowed)


def _refuse_unusable(values: Any, path: Key, origin: Origin) -> None:
    """Raise ConfigError for values that a schema lets pass.

    NaN passes every comparison, a line break after a name its pattern, and no key may name another folder.
    """
    if isinstance(values, float) and not math.isfinite(values):
        raise ConfigError(f"{origin.place(path)}: found {values}; allowed: a finite number")
    for text in (values, *path[-1:]):
        if isinstance(text, str) and not text.isprintable():
            raise ConfigError(f"{origin.place(path)}: found {text!r}; allowed: one line of printable characters")
    if path and ("/" in path[-1] or path[-1].startswith(".")):
        raise ConfigError(
            f"{origin.place(path)}: found '{path[-1]}'; allowed: a name without '/' or a dot at its start"
        )
    items = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        _refuse_unusable(value, (*path, str(key)), origin)


def _explain(problem: Any, origin: Origin) -> str:
    path = tuple(str(part) for part in problem.absolute_path)
    found = json.dumps(problem.instance, default=str)
    about = problem.schema.get("description")
    twice = _twice(problem.instance)
    if problem.validator == "additionalProperties" and isinstance(problem.schema.get("properties"), dict):
        known = list(problem.schema["properties"])
        unknown = next(key for key in problem.instance if key not in known)
        return f"{origin.place((*path, unknown))}: found {_unknown(unknown, known, at_top=not path)}"
    if twice and problem.validator in ("uniqueItems", "type"):
        return f"{origin.place(path)}: names {twice} twice; allowed: once" + (f". ({about})" if about else "")
    if problem.validator == "enum":
        allowed = "allowed: " + ", ".join(json.dumps(value) for value in problem.validator_value)
        allowed += nearest(str(problem.instance), map(str, problem.validator_value))
    elif problem.validator == "type" and "propertyNames" in problem.schema:
        allowed = "allowed: a name, a list of names, or names with their options, as {ducklake: {}}"
    elif problem.validator == "type":
        kinds = problem.validator_value
        allowed = "allowed: " + (kinds if isinstance(kinds, str) else " or ".join(kinds))
    elif problem.validator == "required":
        allowed = "needed as well: " + ", ".join(k for k in problem.validator_value if k not in problem.instance)
    else:
        words = {
            "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "minItems": "items, at least",
            "minProperties": "keys, at least", "pattern": "names that match",
        }  # fmt: skip
        allowed = f"allowed: {words.get(problem.validator, problem.validator)} {problem.validator_value}"
    return f"{origin.place(path)}: found {found[:200]}; {allowed}" + (f". ({about})" if about else "")


def _unknown(key: str, known: Iterable[str], *, at_top: bool) -> str:
    """Return how to write a `key` that is not among the `known` ones, or the nearest of them, or all."""
    owners = [name for name, section in sections().items() if at_top and key in section["properties"]]
    if owners:
        return f"a key of a study's section; write it as {' or '.join(f'{name}.{key}' for name in owners)}"
    names = list(known)
    said = nearest(key, names) or f"; the keys here are: {', '.join(names)}"
    return f"a key that does not exist{said}"


def _twice(values: Any) -> str:
    """Return the first duplicate value of a list, as JSON; empty if there is none."""
    written = [json.dumps(value, default=str) for value in values] if isinstance(values, list) else []
    return next((each.replace('"', "'") for place, each in enumerate(written) if each in written[:place]), "")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question with the one of `known` most similar to `name`; empty if none is similar."""
    close = difflib.get_close_matches(name, list(known), 1, 0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def system_of(
    name: str, section: str, configured: Iterable[str], known: Iterable[str], path: Key, origin: Origin
) -> None:
    """Raise ConfigError for a `name` in a study's `section` that no system has.

    Valid are the systems `configured` there, the schema's default systems, and the `known` ones of its kind.
    """
    shipped = sections()[section]["properties"]["systems"]["default"]
    one_of(name, dict.fromkeys((*configured, *shipped, *known)), path, origin)


def one_of(name: str, known: Iterable[str], path: Key, origin: Origin) -> None:
    """Raise ConfigError for a `name` that is not among the `known`, with the nearest one."""
    names = list(known)
    if name not in names:
        raise ConfigError(f"{origin.place(path)}: found '{name}'; allowed: {', '.join(names)}{nearest(name, names)}")
