"""The configuration: read from config.yaml and the command line, checked against the schema, parsed once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tidemark.addresses import refuse_secrets
from tidemark.errors import ConfigError
from tidemark.schema import COMMAND_LINE, Key, Origin, check, one_of, sections

ALL = "all"  # of `studies`


@dataclass(frozen=True, slots=True)
class DisturbanceConfig:
    """From where on a run counts as disturbed, and how often it is measured once more then."""

    foreign_cores: float
    steal_cores: float
    gap_seconds: float
    disk_share: float
    retries: int


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    source: str
    paths: tuple[Path, ...]
    rows: int | None
    synthetic_rows: int


@dataclass(frozen=True, slots=True)
class ServicesConfig:
    kafka_address: str | None = None
    kafka_heap_mb: int = 1024
    postgres_address: str | None = None
    iceberg_rest_address: str | None = None
    iceberg_rest_heap_mb: int = 512
    connect_address: str | None = None
    flink_address: str | None = None
    spark_master: str | None = None
    polaris_path: str | None = None
    polaris_address: str | None = None
    polaris_catalog: str | None = None
    polaris_client_id: str | None = None
    polaris_secret_file: str | None = None

    def why_no_polaris(self) -> str | None:
        """Why nobody can start or reach one, and what to do; None where one can."""
        if self.polaris_path is not None or self.polaris_address is not None:
            return None
        return (
            "no Polaris; give services.polaris_path (a distribution), or services.polaris_address (a running one); its "
            "server is in no package registry"
        )


@dataclass(frozen=True, slots=True)
class Config:
    """What is common to all studies; `sections` holds what is a study's own, as the schema of its section has it."""

    protocol: str
    repeats: int | None  # of every series; None: what the protocol says
    studies: tuple[str, ...]
    seed: int
    stacks: tuple[str, ...]
    cold: str
    keep_tables: bool
    archive: Path | None  # in place of measurements
    disturbance: DisturbanceConfig
    dataset: DatasetConfig
    services: ServicesConfig
    sections: Mapping[str, Mapping[str, Any]]  # by the study's name, defaults filled in
    origin: Origin  # where the values come from, for messages
    effective: str  # the whole configuration as JSON, defaults filled in

    @property
    def source(self) -> str:
        """The file's name, for messages."""
        return self.origin.name


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
        return parse(_merge(values, given), Origin(str(path), _lines(node) | _from_command_line(given)))
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
    return parse(json.loads(json.dumps(values, default=str)), Origin(str(path), lines))


def _from_command_line(given: Mapping[str, Any]) -> dict[Key, int]:
    return {tuple(key.split(".")): COMMAND_LINE for key in given}


def _lines(node: Any, prefix: Key = ()) -> dict[Key, int]:
    """The line, from 1, on which each key stands."""
    found: dict[Key, int] = {}
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


def parse(values: Mapping[Any, Any], origin: Origin) -> Config:
    """Check `values` against the schema, fill in its defaults, and make them a Config."""
    # First of all: what the schema refuses it quotes.
    refuse_secrets(values, origin)
    return _build(check(values, origin), origin)


def _build(values: dict[str, Any], origin: Origin) -> Config:
    known = list(sections())
    asked = [values["studies"]] if isinstance(values["studies"], str) else values["studies"]
    for name in asked:
        one_of(name, [ALL, *known], ("studies",), origin)
    dataset = values["dataset"]
    path = dataset["path"]
    paths = tuple(Path(p) for p in ([path] if isinstance(path, str) else path or ()))
    if dataset["source"] == "path" and not paths:
        raise ConfigError(
            f"{origin.place(('dataset', 'path'))}: found nothing, but dataset.source is 'path'; "
            "give the Parquet file's path there, or another source"
        )
    _check_polaris(values["services"], origin)
    _check_connect(values["services"], origin)
    return Config(
        protocol=values["protocol"],
        repeats=values["repeats"],
        studies=tuple(known if ALL in asked else asked),
        seed=values["seed"],
        stacks=tuple(values["stacks"]),
        cold=values["cold"],
        keep_tables=values["keep_tables"],
        archive=Path(values["archive"]) if values["archive"] else None,
        disturbance=DisturbanceConfig(**values["disturbance"]),
        dataset=DatasetConfig(dataset["source"], paths, dataset["rows"], dataset["synthetic_rows"]),
        services=ServicesConfig(**values["services"]),
        sections={name: values[name] for name in known},
        origin=origin,
        effective=json.dumps(values, indent=2, default=str),
    )


def _check_polaris(services: dict[str, Any], origin: Origin) -> None:
    """Refuse a Polaris that nobody could start or reach."""

    def refuse(key: str, found: str, allowed: str) -> None:
        raise ConfigError(f"{origin.place(('services', key))}: found {found}; {allowed}")

    if services["polaris_path"] is not None and services["polaris_address"] is not None:
        refuse("polaris_path", "a path beside polaris_address", "allowed: one of the two")
    for key in ("polaris_client_id", "polaris_catalog", "polaris_secret_file"):
        if services["polaris_address"] is None and services[key] is not None:
            refuse(key, "a value", "allowed: with polaris_address alone; a started one makes its own")
        if services["polaris_address"] is not None and services[key] is None and key != "polaris_secret_file":
            refuse(key, "nothing", "needed: polaris_address, polaris_client_id, polaris_catalog together")


def _check_connect(services: dict[str, Any], origin: Origin) -> None:
    """Refuse a worker of Connect whose broker nobody knows: it reads topics of its own alone."""
    if services["connect_address"] is not None and services["kafka_address"] is None:
        raise ConfigError(
            f"{origin.place(('services', 'kafka_address'))}: found nothing beside connect_address; needed: the address "
            "of the broker that this worker of Connect reads from (its own bootstrap.servers)"
        )
