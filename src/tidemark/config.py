"""Configuration: read from config.yaml and the command line, checked against the schema, parsed once.

No address of an external server may contain a secret: the configuration is copied into plan.json, run.json and
archives that are published. A part of an address that may be a secret is never repeated in a message either, because
messages go into logs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tidemark.errors import ConfigError
from tidemark.paths import REPOSITORY
from tidemark.schema import COMMAND_LINE, Key, Origin, Place, by_name, check, one_of, sections
from tidemark.settings import CommonSettings, DisturbanceConfig, ServicesConfig, decoded

__all__ = ["ALL", "Config", "DisturbanceConfig", "ServicesConfig", "from_snakemake", "load", "parse"]

ALL = "all"  # value of `studies`
PRESET = "preset"  # key of an override that stands for the values of a file in PRESETS
PRESETS = REPOSITORY / "presets"
MOST_LEVELS = 50  # maximum nesting of brackets and blocks; a configuration has fewer than ten

Rule = tuple[Callable[[str], str | None], str]  # describes the secret in an address, if any; and where it belongs

# Parameters of libpq whose values are secrets.
LIBPQ_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
LIBPQ_PLACES = (
    "put it into the environment variable PGPASSWORD, into the file that PGPASSFILE names or into ~/.pgpass; "
    "DuckDB, psycopg and the JDBC driver of the Iceberg catalog find it there"
)
HTTP_PLACES = (
    "give scheme, host, port and path alone; a Polaris takes its client's secret from TIDEMARK_POLARIS_SECRET or "
    "services.polaris_secret_file, and other catalogs are reached without credentials"
)
ENGINE_PLACES = "give scheme, host and port alone; workers of Connect and clusters are reached without credentials"
KAFKA_PLACES = "give host:port, with commas between several; brokers are reached without credentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(CommonSettings):
    """Configuration in force: the common settings, and the section of each study."""

    sections: Mapping[str, Mapping[str, Any]]  # by the study's name, defaults filled in
    origin: Origin  # source of the values, for messages
    effective: str  # the complete configuration as JSON, defaults filled in

    def whole(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.effective)
        return found

    def changed(self) -> dict[str, Any]:
        """Return the keys whose values are not the defaults; a value with other keys than its default is whole."""
        return _other(self.whole(), parse({}, Origin("the defaults", {})).whole())

    def sources(self) -> dict[str, tuple[Any, str]]:
        """Return the value of each key, dotted, and where it was given: a file with its line, --config, or default."""
        changed = dict(_dotted(self.changed()))
        return {
            key: (value, (key in changed and self.origin.source(tuple(key.split(".")))) or "default")
            for key, value in _dotted(self.whole())
        }


def _other(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in values.items():
        default = defaults[key]
        if isinstance(value, dict) and isinstance(default, dict) and value.keys() == default.keys():
            value, default = _other(value, default), {}
        if value != default:
            found[key] = value
    return found


def _dotted(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys of the top level and of the sections below it, as `section.key`, with their values."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from ((f"{key}.{name}", below) for name, below in value.items())
        else:
            yield key, value


def load(path: Path, overrides: Iterable[str] = ()) -> Config:
    """Load the configuration at `path`, with `key=value` overrides whose values are read as YAML.

    `preset=NAME` stands for the values of a file in PRESETS; others override them, wherever it stands.
    """
    values, places = _file(path, str(path))
    named, given = _overrides(overrides)
    for name in named:
        chosen, lines = _file(preset_file(name), f"presets/{name}.yaml")
        preset = dict(_dotted(chosen))
        values = _merge(values, preset)
        places = _given(preset, places, {key: f"presets/{name}.yaml:{line}" for key, line in lines.items()})
    return parse(_merge(values, given), Origin(str(path), _given(given, places)))


def _file(path: Path, name: str) -> tuple[dict[Any, Any], dict[Key, Place]]:
    """Return the values of a YAML file and the line of each key."""
    values, lines = _read_yaml(_read(path), name)
    if values is None:  # Snakemake refuses such a file
        raise ConfigError(f"{name}: found no key; a file that changes no default holds {{}}")
    if not isinstance(values, dict):
        raise ConfigError(f"{name}: found {type(values).__name__}, expected keys with values, as in the shipped file")
    return values, lines


def presets() -> dict[str, Path]:
    """Return the files of the presets, by name."""
    return {path.stem: path for path in sorted(PRESETS.glob("*.yaml"))}


def about_preset(name: str) -> str:
    """Return the comment at the top of a preset: its question, disk space and time."""
    lines = takewhile(lambda line: line.startswith("#"), _read(preset_file(name)).splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines)


def preset_file(name: str) -> Path:
    """Return the file of a preset; raise ConfigError for an unknown name."""
    one_of(name, presets(), (PRESET,), Origin(COMMAND_LINE, {}))
    return presets()[name]


def _given(
    given: Iterable[str], before: Mapping[Key, Place], places: Mapping[Key, Place] | None = None
) -> dict[Key, Place]:
    """Return `before` with the dotted keys `given` later: at their `places`, else on the command line.

    Keys below a given one have no place of their own any more.
    """
    keys = [tuple(key.split(".")) for key in given]
    kept = {key: place for key, place in before.items() if not any(key[: len(top)] == top for top in keys)}
    above = {key[:size]: COMMAND_LINE for key in keys for size in range(1, len(key) + 1)}
    return above | dict(places or {}) | kept


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}. The shipped config.yaml is a start.") from error


def _read_yaml(text: str, place: str) -> tuple[Any, dict[Key, Place]]:
    """Return the value of a YAML text, and the line, from 1, of each of its keys; ConfigErrors begin with `place`."""
    try:
        with suppress(yaml.YAMLError):
            return _parsed(text, place, yaml.CSafeLoader)
        return _parsed(text, place, yaml.SafeLoader)  # ten times slower; its error shows the place
    except yaml.YAMLError as error:
        raise ConfigError(f"{place}: this is not YAML: {error}") from error
    except (ValueError, OverflowError, TypeError) as error:
        raise ConfigError(f"{place}: a value cannot be read: {error}") from error


def _parsed(text: str, place: str, kind: Any) -> tuple[Any, dict[Key, Place]]:
    _refuse_growth(text, place, kind)
    loader = kind(text)
    node = loader.get_single_node()
    lines: dict[Key, Place] = dict(_lines(node, place))
    return loader.construct_document(node) if node else None, lines


def _refuse_growth(text: str, place: str, kind: Any) -> None:
    """Raise ConfigError for aliases and unlimited nesting, with which a short text can exhaust memory or stack."""
    levels = 0
    for event in yaml.parse(text, Loader=kind):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError(
                f"{place}: found the alias '*{event.anchor}' on line {line}; write out what it stands for"
            )
        levels += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if levels > MOST_LEVELS:
            raise ConfigError(f"{place}: found more than {MOST_LEVELS} levels on line {line}; allowed: fewer")


def _overrides(items: Iterable[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of presets among `key=value` items, and the values of all others by key."""
    named, values = [], {}
    for item in items:
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise ConfigError(f"--config {item!r}: expected key=value, for example protocol=smoke")
        if key == PRESET:
            named.append(value)
        else:
            values[key], _ = _read_yaml(value, f"--config '{key}=...'")
    return named, values


def _merge(values: Mapping[Any, Any], overrides: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return `values` updated with `overrides`; a dotted key addresses a nested value."""
    merged: dict[Any, Any] = dict(values)
    for key, value in overrides.items():
        head, _, rest = key.partition(".") if isinstance(key, str) else (key, "", "")
        if rest:
            below = by_name(merged.get(head))
            merged[head] = _merge(below if isinstance(below, dict) else {}, {rest: value})
        else:
            merged[head] = value
    return merged


def from_snakemake(values: Mapping[str, Any], path: Path) -> Config:
    """Parse the configuration as Snakemake holds it: the file's keys, overridden by those of its --config."""
    lines = _read_yaml(_read(path), str(path))[1] if path.exists() else {}
    return parse(json.loads(json.dumps(values, default=str)), Origin(str(path), lines))


def _lines(node: Any, place: str, prefix: Key = ()) -> Iterator[tuple[Key, int]]:
    """Yield each key with its line, from 1; raise ConfigError for a duplicate key."""
    seen: dict[str, int] = {}
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    for key, value in pairs:
        name, line = str(key.value), key.start_mark.line + 1
        if name in seen:
            where = f"lines {seen[name]} and {line}" if line > seen[name] else f"on line {line}"
            raise ConfigError(f"{place}: key '{'.'.join((*prefix, name))}' stands twice, {where}; keep one of them")
        seen[name] = line
        yield (*prefix, name), line
        yield from _lines(value, place, (*prefix, name))
    for index, value in enumerate(node.value if isinstance(node, yaml.SequenceNode) else ()):
        yield (*prefix, str(index)), value.start_mark.line + 1
        yield from _lines(value, place, (*prefix, str(index)))


def parse(values: Mapping[Any, Any], origin: Origin) -> Config:
    """Check `values` against the schema, fill in its defaults, and return them as a Config."""
    # First of all, as errors of the schema quote the rejected value.
    refuse_secrets(values, origin)
    values = check(values, origin)
    known = list(sections())
    for name in values["studies"]:
        one_of(name, [ALL, *known], ("studies",), origin)
    common = decoded({key: value for key, value in values.items() if key not in known}, CommonSettings)
    if common.dataset.source == "path" and not common.dataset.paths:
        raise ConfigError(
            f"{origin.place(('dataset', 'path'))}: found nothing, but dataset.source is 'path'; "
            "give the Parquet file's path there, or another source"
        )
    if common.dataset.path is not None and (not common.dataset.paths or common.dataset.source not in ("auto", "path")):
        raise ConfigError(
            f"{origin.place(('dataset', 'path'))}: found {len(common.dataset.paths)} files, and dataset.source "
            f"'{common.dataset.source}'; allowed: one file or more, with the source 'auto' or 'path', or null"
        )
    _check_services(values["services"], origin)
    given = {each.name: getattr(common, each.name) for each in fields(common)}
    given["studies"] = tuple(known) if ALL in common.studies else common.studies
    given["archive"] = common.archive if values["archive"] else None
    return Config(
        **given,
        sections={name: values[name] for name in known},
        origin=origin,
        effective=json.dumps(values, indent=2, default=str),
    )


def _check_services(services: dict[str, Any], origin: Origin) -> None:
    """Raise ConfigError for a Polaris that could be neither started nor reached, and for a Connect without its broker.

    A worker of Connect reads only topics of its own broker.
    """

    def refuse(key: str, found: str, allowed: str) -> None:
        raise ConfigError(f"{origin.place(('services', key))}: found {found}; {allowed}")

    if services["polaris_path"] is not None and services["polaris_address"] is not None:
        refuse("polaris_path", "a path in addition to polaris_address", "allowed: one of the two")
    for key in ("polaris_client_id", "polaris_catalog", "polaris_secret_file"):
        if services["polaris_address"] is None and services[key] is not None:
            refuse(key, "a value", "allowed: with polaris_address alone; a started one makes its own")
        if services["polaris_address"] is not None and services[key] is None and key != "polaris_secret_file":
            refuse(key, "nothing", "needed: polaris_address, polaris_client_id, polaris_catalog together")
    if services["connect_address"] is not None and services["kafka_address"] is None:
        broker = "the address of the broker that this worker of Connect reads from (its own bootstrap.servers)"
        refuse("kafka_address", "connect_address alone", f"needed: {broker}")


def refuse_secrets(values: Mapping[Any, Any], origin: Origin) -> None:
    """Raise ConfigError for an address that contains a secret, with the place where the secret belongs.

    `values` is the configuration as written; values that are not strings are left to the schema.
    """
    for place, (find, instead) in _places(values):
        address: object = values
        for key in place:
            address = address.get(key) if isinstance(address, Mapping) else None
        found = find(address) if isinstance(address, str) else None
        if found is not None:
            raise ConfigError(
                f"{origin.place(place)}: found {found}, not shown here; the configuration is copied into "
                f"plan.json, run.json and archives, so no secret may be in it: {instead}"
            )


def _places(values: Mapping[Any, Any]) -> Iterator[tuple[Key, Rule]]:
    """Yield the keys of addresses, with their rules: those below `services`, and the engine of a study's section."""
    yield from ((("services", key), rule) for key, rule in RULES.items())
    yield from (((str(section), "engine", "master"), RULES["spark_master"]) for section in values)


def _in_libpq(address: str) -> str | None:
    """Describe what a libpq address (URL or keywords) must not contain; None if it is acceptable."""
    from psycopg import ProgrammingError  # imported only if an external server is configured
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(address)
    except ProgrammingError:
        # libpq's own message quotes what it could not read, which may be part of a password.
        return "an address that libpq cannot read"
    secrets = [name for name in LIBPQ_SECRETS if parts.get(name)]
    return f"a value for {' and '.join(secrets)}" if secrets else None


def _in_url(address: str) -> str | None:
    """Describe what an http address must not contain; None if it is acceptable."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "an address that is no URL"
    if "@" in parts.netloc:
        return "user information (something before an '@')"
    if parts.query or parts.fragment:
        return "a query or a fragment (something behind a '?' or a '#')"
    return None


def _in_brokers(addresses: str) -> str | None:
    return "user information (something before an '@')" if "@" in addresses else None


def _in_client_id(client: str) -> str | None:
    return "an id with something behind a ':'" if ":" in client else None


RULES: Mapping[str, Rule] = {
    "postgres_address": (_in_libpq, LIBPQ_PLACES),
    "iceberg_rest_address": (_in_url, HTTP_PLACES),
    "polaris_address": (_in_url, HTTP_PLACES),
    "polaris_client_id": (_in_client_id, HTTP_PLACES),
    "kafka_address": (_in_brokers, KAFKA_PLACES),
    "connect_address": (_in_url, ENGINE_PLACES),
    "flink_address": (_in_url, ENGINE_PLACES),
    "spark_master": (_in_brokers, ENGINE_PLACES),
}
