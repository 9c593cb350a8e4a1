"""The configuration: read from config.yaml and the command line, checked against the schema, parsed once."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
import yaml

from tidemark.errors import ConfigError

SCHEMA = Path(__file__).parents[2] / "workflow" / "schemas" / "config.schema.yaml"
COMMAND_LINE = -1  # in place of a line number, for a value that no file holds


@dataclass(frozen=True, slots=True)
class Protocol:
    """A named set of sizes."""

    name: str
    window_seconds: float
    runs: int


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """One line below `systems`: `options` are as written, checked later against the system's own."""

    name: str
    like: str
    title: str | None
    options: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Study:
    """One axis varied; None means that the main configuration's value holds."""

    name: str
    axis: str
    values: tuple[Any, ...]
    systems: tuple[str, ...] | None
    modes: tuple[str, ...] | None
    window_seconds: float | None
    runs: int | None


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    source: str
    paths: tuple[Path, ...]
    rows: int | None
    synthetic_rows: int


def _later() -> Any:
    """A setting that came after the first measurements: where it is left out, theirs stay what they were."""
    return field(default=None, metadata={"silent": True})


@dataclass(frozen=True, slots=True)
class ServicesConfig:
    kafka_address: str | None = None
    kafka_heap_mb: int = 1024
    postgres_address: str | None = None
    iceberg_rest_address: str | None = None
    iceberg_rest_heap_mb: int = 512
    polaris_path: str | None = _later()
    polaris_address: str | None = _later()
    polaris_catalog: str | None = _later()
    polaris_client_id: str | None = _later()
    polaris_secret_file: str | None = _later()


@dataclass(frozen=True, slots=True)
class Config:
    protocol: Protocol
    seed: int
    systems: tuple[SystemEntry, ...]
    modes: tuple[str, ...]
    batch_size: int
    threads: int
    catalog: str
    compression: str
    encoding: str
    producer: str
    overlap: bool
    read_ahead: int
    cold: str
    maintenance: bool
    keep_tables: bool
    archive: Path | None  # in place of measurements
    stacks: tuple[str, ...]
    studies: tuple[Study, ...]
    main: bool
    dataset: DatasetConfig
    services: ServicesConfig
    source: str  # the file's name, for messages
    effective: str  # the whole configuration as JSON, defaults filled in


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of the configuration."""
    return cast(dict[str, Any], yaml.safe_load(SCHEMA.read_text()))


def load(path: Path, overrides: Iterable[str] = ()) -> Config:
    """The configuration of `path` with `key=value` overrides on top, values read as YAML."""
    text = _read(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: this is not YAML: {error}") from error
    except (ValueError, OverflowError, TypeError) as error:
        raise ConfigError(f"{path}: a value cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: found {type(values).__name__}, expected keys with values, as in the shipped file")
    given = _overrides(overrides)
    try:
        return parse(_merge(values, given), str(path), _lines(node) | _from_command_line(given))
    except RecursionError:
        raise ConfigError(f"{path}: a value contains itself (an alias to what it stands in); write it out") from None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}. The shipped config.yaml is a start.") from error


def _overrides(items: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in items:
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise ConfigError(f"--config {item!r}: expected key=value, for example protocol=smoke")
        try:
            found[key] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError) as error:
            raise ConfigError(f"--config {item!r}: the value is not YAML: {error}") from error
    return found


def _merge(values: Mapping[Any, Any], overrides: Mapping[Any, Any]) -> dict[Any, Any]:
    """`values` with `overrides` on top; a dotted key goes below its parts."""
    merged: dict[Any, Any] = dict(values)
    for key, value in overrides.items():
        head, _, rest = key.partition(".") if isinstance(key, str) else (key, "", "")
        if rest:
            below = merged.get(head)
            merged[head] = _merge(below if isinstance(below, dict) else {}, {rest: value})
        else:
            merged[head] = value
    return merged


def from_snakemake(values: Mapping[str, Any], path: Path) -> Config:
    """The configuration as Snakemake holds it: the file's keys with those of its --config on top."""
    lines = _lines(yaml.compose(path.read_text(), Loader=yaml.SafeLoader)) if path.exists() else {}
    return parse(json.loads(json.dumps(values, default=str)), str(path), lines)


def _from_command_line(given: Mapping[str, Any]) -> dict[tuple[str, ...], int]:
    return {tuple(key.split(".")): COMMAND_LINE for key in given}


def _lines(node: Any, prefix: tuple[str, ...] = ()) -> dict[tuple[str, ...], int]:
    """The line, from 1, on which each key stands."""
    found: dict[tuple[str, ...], int] = {}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = (*prefix, str(key.value))
            found[name] = key.start_mark.line + 1
            found |= _lines(value, name)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            name = (*prefix, str(index))
            found[name] = value.start_mark.line + 1
            found |= _lines(value, name)
    return found


def parse(values: Mapping[Any, Any], source: str, lines: Mapping[tuple[str, ...], int]) -> Config:
    """Check `values` against the schema, fill in its defaults, and make them a Config."""
    rules = schema()
    filled = _fill(_plain_keys(values), rules)
    _refuse_unbounded(filled, (), source, lines)
    problems = list(jsonschema.Draft202012Validator(rules).iter_errors(filled))
    if problems:
        worst = min(problems, key=lambda problem: (problem.validator != "additionalProperties", len(problem.path)))
        raise ConfigError(_explain(worst, source, lines))
    return _build(filled, source, lines)


def _plain_keys(values: Any) -> Any:
    """YAML reads the key `null` as nothing and `1` as a number; keys here are names."""
    if isinstance(values, Mapping):
        return {"null" if key is None else str(key): _plain_keys(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_plain_keys(value) for value in values]
    return values


def _fill(values: Any, rules: Mapping[str, Any]) -> Any:
    """`values` with the schema's defaults where a key is missing, and {} where a key has no value."""
    if rules.get("type") == "object":
        if values is None:
            values = {}
        if not isinstance(values, Mapping):
            return values
        filled = dict(values)
        properties = rules.get("properties", {})
        others = rules.get("additionalProperties")
        for key, rule in properties.items():
            if key not in filled and "default" in rule:
                filled[key] = rule["default"]
        for key, value in filled.items():
            rule = properties.get(key, others if isinstance(others, dict) else {})
            filled[key] = _fill(value, rule)
        return filled
    return values


def _refuse_unbounded(values: Any, path: tuple[str, ...], source: str, lines: Mapping[tuple[str, ...], int]) -> None:
    """NaN passes every comparison that a schema makes, so it is looked for first."""
    if isinstance(values, float) and not math.isfinite(values):
        raise ConfigError(f"{_place(source, path, lines)}: found {values}; allowed: a finite number")
    items = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        _refuse_unbounded(value, (*path, str(key)), source, lines)


def _explain(problem: Any, source: str, lines: Mapping[tuple[str, ...], int]) -> str:
    path = tuple(str(part) for part in problem.absolute_path)
    allowed = ""
    found = json.dumps(problem.instance, default=str)
    if problem.validator == "additionalProperties" and isinstance(problem.schema.get("properties"), dict):
        known = list(problem.schema["properties"])
        unknown = next(key for key in problem.instance if key not in known)
        path = (*path, unknown)
        close = difflib.get_close_matches(unknown, known, 1, 0.5)
        found = "a key that does not exist"
        allowed = f"did you mean '{close[0]}'? " if close else ""
        allowed += f"The keys here are: {', '.join(known)}"
    elif problem.validator == "enum":
        allowed = "allowed: " + ", ".join(json.dumps(value) for value in problem.validator_value)
        close = difflib.get_close_matches(str(problem.instance), [str(v) for v in problem.validator_value], 1, 0.5)
        allowed += f"; did you mean '{close[0]}'?" if close else ""
    elif problem.validator == "type":
        kinds = problem.validator_value
        allowed = "allowed: " + (kinds if isinstance(kinds, str) else " or ".join(kinds))
    elif problem.validator == "required":
        allowed = "needed as well: " + ", ".join(k for k in problem.validator_value if k not in problem.instance)
    else:
        words = {
            "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "minItems": "items, at least",
            "minProperties": "keys, at least", "uniqueItems": "no value twice", "pattern": "names that match",
        }  # fmt: skip
        allowed = f"allowed: {words.get(problem.validator, problem.validator)} {problem.validator_value}"
    about = problem.schema.get("description")
    return f"{_place(source, path, lines)}: found {found[:200]}; {allowed}" + (f". ({about})" if about else "")


def _place(source: str, path: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> str:
    """file:line: key, as far as the line is known; values of the command line have none."""
    line = next((lines[path[:size]] for size in range(len(path), 0, -1) if path[:size] in lines), None)
    where = "--config" if line == COMMAND_LINE else f"{source}:{line}" if line else source
    return f"{where}: key '{'.'.join(path) or '(all)'}'"


def _one_of(
    name: str, known: Iterable[str], path: tuple[str, ...], source: str, lines: Mapping[tuple[str, ...], int]
) -> None:
    names = list(known)
    if name not in names:
        close = difflib.get_close_matches(name, names, 1, 0.5)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise ConfigError(f"{_place(source, path, lines)}: found '{name}'; allowed: {', '.join(names)}{hint}")


def _build(values: dict[str, Any], source: str, lines: Mapping[tuple[str, ...], int]) -> Config:
    _one_of(values["protocol"], values["protocols"], ("protocol",), source, lines)
    for name in values["studies"]:
        _one_of(name, ["main", *values["study"]], ("studies",), source, lines)
    for name, study in values["study"].items():
        for system in study.get("systems", ()):
            if name in values["studies"]:
                _one_of(system, values["systems"], ("study", name, "systems"), source, lines)
    dataset = values["dataset"]
    path = dataset["path"]
    paths = tuple(Path(p) for p in ([path] if isinstance(path, str) else path or ()))
    if dataset["source"] == "path" and not paths:
        raise ConfigError(
            f"{_place(source, ('dataset', 'path'), lines)}: found nothing, but dataset.source is 'path'; "
            "give the Parquet file's path there, or another source"
        )
    _check_polaris(values, source, lines)
    return Config(
        protocol=Protocol(values["protocol"], **values["protocols"][values["protocol"]]),
        seed=values["seed"],
        systems=tuple(_entry(name, entry) for name, entry in values["systems"].items()),
        modes=tuple(values["modes"]),
        batch_size=values["batch_size"],
        threads=values["threads"],
        catalog=values["catalog"],
        compression=values["compression"],
        encoding=values["encoding"],
        producer=values["producer"],
        overlap=values["overlap"],
        read_ahead=values["read_ahead"],
        cold=values["cold"],
        maintenance=values["maintenance"],
        keep_tables=values["keep_tables"],
        archive=Path(values["archive"]) if values["archive"] else None,
        stacks=tuple(values["stacks"]),
        studies=tuple(_study(name, values["study"][name]) for name in values["studies"] if name != "main"),
        main="main" in values["studies"],
        dataset=DatasetConfig(dataset["source"], paths, dataset["rows"], dataset["synthetic_rows"]),
        services=ServicesConfig(**values["services"]),
        source=source,
        effective=json.dumps(values, indent=2, default=str),
    )


def _check_polaris(values: dict[str, Any], source: str, lines: Mapping[tuple[str, ...], int]) -> None:
    """Refuse a Polaris that nobody could start or reach."""
    services = values["services"]

    def refuse(key: str, found: str, allowed: str) -> None:
        raise ConfigError(f"{_place(source, tuple(key.split('.')), lines)}: found {found}; {allowed}")

    asking = ["catalog"] if values["catalog"] == "polaris" else []
    asking += [f"systems.{name}.catalog" for name, e in values["systems"].items() if e.get("catalog") == "polaris"]
    if asking and services["polaris_path"] is None and services["polaris_address"] is None:
        refuse(
            asking[0], "'polaris', but no Polaris", "give services.polaris_path (a distribution), or "
            "services.polaris_address (a running one); its server is in no package registry"
        )  # fmt: skip
    if services["polaris_path"] is not None and services["polaris_address"] is not None:
        refuse("services.polaris_path", "a path beside polaris_address", "allowed: one of the two")
    for key in ("polaris_client_id", "polaris_catalog", "polaris_secret_file"):
        if services["polaris_address"] is None and services[key] is not None:
            refuse(f"services.{key}", "a value", "allowed: with polaris_address alone; a started one makes its own")
        if services["polaris_address"] is not None and services[key] is None and key != "polaris_secret_file":
            refuse(f"services.{key}", "nothing", "needed: polaris_address, polaris_client_id, polaris_catalog together")


def _entry(name: str, entry: dict[str, Any]) -> SystemEntry:
    options = tuple(sorted((key, value) for key, value in entry.items() if key not in ("like", "title")))
    return SystemEntry(name, entry.get("like", name), entry.get("title"), options)


def _study(name: str, study: dict[str, Any]) -> Study:
    systems, modes = study.get("systems"), study.get("modes")
    return Study(
        name=name,
        axis=study["axis"],
        values=tuple(study["values"]),
        systems=tuple(systems) if systems else None,
        modes=tuple(modes) if modes else None,
        window_seconds=study.get("window_seconds"),
        runs=study.get("runs"),
    )
