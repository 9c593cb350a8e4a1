"""Settings declared as classes: decoded, bounded, described and turned into a JSON Schema from one declaration.

Each field is a key. Its type, its default and its `Meta` (bounds, pattern, description) are the rules of the key:

    class Section:
        rate: Annotated[int, Meta(ge=1, le=100_000, description="Events per second that are due.")] = 1000

A class's docstring describes the key that holds it. A field without a default must be given; one whose default is UNSET
may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

DAY = 86_400  # the longest time that can be set, in seconds
NAME = "^[a-z0-9][a-z0-9-]*$"

Text = Annotated[str, Meta(min_length=1)]
WebAddress = Annotated[str, Meta(pattern=r"^https?://[^/\s]+/?$")]
Brokers = Annotated[str, Meta(pattern=r"^[^,\s]+:[0-9]{1,5}(,[^,\s]+:[0-9]{1,5})*$")]
SparkMaster = Annotated[str, Meta(pattern=r"^(local|local\[([1-9][0-9]{0,3}|\*)\]|spark://[^/\s]+)$")]


def about(description: str, **bounds: Any) -> Meta:
    """Return the rules of a key: what it means, and its bounds."""
    return Meta(description=description, **bounds)


def one_of_these(*allowed: str) -> Meta:
    """Return the rule that a text is one of `allowed`, which errors and help give in this order."""
    return Meta(extra_json_schema={"enum": [*allowed]})


class Shipped(dict[str, Any]):
    """Default of a mapping, as it is written in a configuration; msgspec accepts a plain dict only if it is empty."""


def shipped(module: str) -> dict[str, Shipped]:
    """Return the defaults of mappings by key, of the file defaults.yaml next to the file `module`."""
    import yaml  # no measured process loads it for a setting's class

    text = Path(module).with_name("defaults.yaml").read_text()
    return {key: Shipped(value) for key, value in yaml.load(text, yaml.CSafeLoader).items()}


UNIQUE = Meta(extra_json_schema={"uniqueItems": True})
Item = TypeVar("Item")
Several = Annotated[tuple[Item, ...], UNIQUE]
OneOrMore = Annotated[tuple[Item, ...], Meta(min_length=1), UNIQUE]

Seconds = Annotated[float, Meta(gt=0, le=DAY)]
Count = Annotated[int, Meta(ge=1, le=1000)]


@dataclass(frozen=True, slots=True)
class DisturbanceConfig:
    """Limits above which other work on the machine disturbs a run; the run is marked, and measured once more."""

    foreign_cores: Annotated[
        float,
        about(
            "Processors that other programs used, on average over the window; the kernel's threads do not count.",
            ge=0, le=4096,
        ),
    ] = 0.2  # fmt: skip
    steal_cores: Annotated[
        float, about("Processors that the hypervisor took, on average over the window.", ge=0, le=4096)
    ] = 0.1
    gap_seconds: Annotated[
        float,
        about(
            "Seconds for which the machine was suspended, or by which the wall clock was stepped, during the window.",
            gt=0, le=DAY,
        ),
    ] = 0.05  # fmt: skip
    disk_share: Annotated[
        float,
        about(
            "Bytes that other programs wrote to a disk during the window, divided by those that the system is charged "
            "with; at least a megabyte counts.",
            ge=0,
            le=1_000_000,
        ),
    ] = 0.05
    retries: Annotated[
        int,
        about("How often a disturbed run is measured again; the disturbed run is kept and reported.", ge=0, le=10),
    ] = 1


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """The trips."""

    source: Annotated[
        str,
        one_of_these("auto", "path", "raw", "download", "synthetic"),
        about("auto takes the first that exists, and reports it: path, data/raw, the download, the synthetic replica."),
    ] = "auto"
    path: Annotated[
        tuple[Path, ...] | None, about("A TLC month as Parquet (yellow or green), or a list of months.")
    ] = None
    rows: Annotated[Annotated[int, Meta(ge=1, le=10_000_000_000)] | None, about("Use only the first rows.")] = None
    synthetic_rows: Annotated[int, about("Rows of the synthetic replica.", ge=1, le=1_000_000_000)] = 4_181_444

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.path or ()


@dataclass(frozen=True, slots=True)
class ServicesConfig:
    """The servers; the address of a running server replaces the one that would be started here."""

    kafka_address: Annotated[
        Brokers | None, about("host:port of a running broker, or of several with commas. null: one is started.")
    ] = None
    kafka_heap_mb: Annotated[int, about("Heap of the broker that is started.", ge=256, le=65536)] = 1024
    postgres_address: Annotated[
        str | None,
        about(
            "A libpq address (postgresql://host:port/db) of a running PostgreSQL; its password goes into PGPASSWORD or "
            "a passfile. null: one is started."
        ),
    ] = None
    iceberg_rest_address: Annotated[
        Annotated[str, Meta(pattern=r"^https?://[^/\s]+(/\S*)?$")] | None,
        about("http://host:port of a running Iceberg REST catalog. null: the reference server is started."),
    ] = None
    iceberg_rest_heap_mb: Annotated[
        int,
        about(
            "Heap of the Iceberg catalog server that is started (the reference server or Polaris).", ge=128, le=65536
        ),
    ] = 512
    connect_address: Annotated[
        WebAddress | None,
        about(
            "http://host:port of a running Kafka Connect worker with the Iceberg sink among its plugins; kafka_address "
            "names its broker. null: one is started."
        ),
    ] = None
    flink_address: Annotated[
        Annotated[str, Meta(pattern=r"^http://(\[[0-9a-fA-F:.]+\]|[^/:\s]+):[0-9]{1,5}/?$")] | None,
        about(
            "http://host:port of the REST interface of a running Flink session cluster, of the same minor release as "
            "the client here (2.1). null: jobs run on a cluster within one process."
        ),
    ] = None
    spark_master: Annotated[
        SparkMaster | None,
        about(
            "Where Spark's tasks run: local[N], in one process with N threads, or spark://host:port, the master of a "
            "running standalone cluster of the release here (3.5) that sees this folder at the same path. null: local, "
            "all processors."
        ),
    ] = None
    polaris_path: Annotated[
        Text | None, about("A binary distribution of Apache Polaris 1.3.0 to start, as a folder, a .tgz or a .zip.")
    ] = None
    polaris_address: Annotated[
        WebAddress | None,
        about(
            "http://host:port of a running Apache Polaris. Its client's secret goes into TIDEMARK_POLARIS_SECRET or "
            "polaris_secret_file."
        ),
    ] = None
    polaris_catalog: Annotated[Text | None, about("The name of a catalog in the running Polaris.")] = None
    polaris_client_id: Annotated[
        Text | None, about("A client of the running Polaris that may manage the content of that catalog.")
    ] = None
    polaris_secret_file: Annotated[
        Text | None,
        about("A file with that client's secret. null: the environment's TIDEMARK_POLARIS_SECRET is used."),
    ] = None

    def why_no_polaris(self) -> str | None:
        """Return why no Polaris can be started or reached, and what to do; None if one can."""
        if self.polaris_path is not None or self.polaris_address is not None:
            return None
        return (
            "no Polaris; give services.polaris_path (a distribution), or services.polaris_address (a running one); its "
            "server is in no package registry"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSettings:
    """Settings common to all studies."""

    protocol: Annotated[
        str,
        about(
            "Sizes to run: smoke (CI), quick (a first result), thesis (the study's own sizes), or a name that is "
            "defined below a study's 'protocols'."
        ),
    ] = "quick"
    repeats: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        about(
            "How often each series of every study is measured, instead of the protocol's numbers; from two on, "
            "intervals cover how series differ."
        ),
    ] = None
    precision: Annotated[
        Annotated[float, Meta(ge=0, le=1000)] | None,
        about(
            "Half-width of intervals, in per cent, that ends rounds once each ratio of systems has it, instead of the "
            "protocol's; 0: all rounds are measured."
        ),
    ] = None
    budget_minutes: Annotated[
        Annotated[float, Meta(ge=0, le=1_000_000)] | None,
        about(
            "Minutes of measuring a study after which no further round begins, instead of the "
            "protocol's; 0: without a limit."
        ),
    ] = None
    studies: Annotated[
        OneOrMore[str],
        about(
            "What to measure: names of studies, or all of them as 'all'; './tidemark list studies' lists them. Each "
            "study has a section of its name."
        ),
    ] = ("streams",)
    seed: Annotated[int, about("Seed of the order of the series and of the synthetic trips.", ge=0, le=2**32 - 1)] = (
        20251101
    )
    cold: Annotated[
        str,
        one_of_these("auto", "evict", "none", "reboot"),
        about("How run 0 is made cold. auto: evict if this account may, else none."),
    ] = "auto"
    archive: Annotated[
        Path | None, about("An archive of './tidemark archive': make everything from its runs, without measuring.")
    ] = None
    keep_tables: Annotated[
        bool, about("Keep the tables of finished runs in .tidemark/work instead of removing them.")
    ] = False
    stacks: Annotated[
        OneOrMore[Annotated[str, Meta(pattern=NAME)]],
        about(
            "Software stacks to measure with: thesis, current, paimon (for that table system only), or a stack that "
            "'./tidemark stack add' made; each is a lock in envs/."
        ),
    ] = ("thesis",)
    disturbance: DisturbanceConfig = DisturbanceConfig()
    dataset: DatasetConfig = DatasetConfig()
    services: ServicesConfig = ServicesConfig()


System = Annotated[
    dict[str, Any],
    about(
        "The system's own options; './tidemark show system NAME' lists them.",
        extra_json_schema={
            "properties": {
                "like": {"type": "string", "description": "The system that this is a variant of."},
                "title": {"type": "string", "description": "The variant's name in tables and figures."},
            }
        },
    ),
]
Systems = Annotated[
    dict[Annotated[str, Meta(pattern=NAME)], System],
    Meta(min_length=1),
    about("The systems to measure, by name. A variant is a new name with 'like' and the options that differ."),
]
Size = TypeVar("Size")
Protocols = Annotated[
    dict[str, Size], Meta(min_length=1), about("Named sets of sizes. Add a line to define another one.")
]


def or_else[T](value: T | UnsetType, otherwise: T) -> T:
    """Return the `value` of a key; `otherwise` if the key was left out."""
    return otherwise if value is UNSET else value


def decoded[T](values: Mapping[str, Any], kind: type[T]) -> T:
    """Return checked `values` as a `kind`. Raises msgspec.ValidationError for values that its schema forbids."""
    return msgspec.convert(values, kind, strict=False, dec_hook=lambda type_, value: type_(value))


def json_schema(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of a class of settings, without references.

    Unknown keys are forbidden where a class names the keys.
    """
    (top,), parts = msgspec.json.schema_components(
        (kind,), schema_hook=lambda _type: {"type": "string"}, ref_template="{name}"
    )
    return cast(dict[str, Any], _plain(top, parts))


def _plain(rule: Any, parts: Mapping[str, Any]) -> Any:
    """Return `rule` with references replaced by the `parts` that they name, and "X or null" as one type."""
    if isinstance(rule, list):
        return [_plain(each, parts) for each in rule]
    if not isinstance(rule, dict):
        return rule
    if "$ref" in rule:
        rule = {**parts[rule["$ref"]], **{key: value for key, value in rule.items() if key != "$ref"}}
    null = {"type": "null"}
    if null in rule.get("anyOf", ()):
        (other,) = (each for each in rule["anyOf"] if each != null)
        rest = {key: value for key, value in rule.items() if key != "anyOf"}
        rule = {**_plain(other, parts), **rest, "type": [other["type"], "null"]}
    plain = {key: _plain(value, parts) for key, value in rule.items() if key not in ("title", "default", "properties")}
    if "default" in rule:
        plain["default"] = msgspec.json.decode(msgspec.json.encode(rule["default"]))
    if "enum" in plain:
        plain.pop("type", None)
    if "description" in plain:
        plain["description"] = " ".join(plain["description"].split())
    others = rule.get("additionalProperties")
    if others and "$ref" in others and "description" not in others:
        del plain["additionalProperties"]["description"]  # a docstring describes a key, and these have no fixed name
    if "properties" in rule:
        plain["properties"] = {name: _plain(below, parts) for name, below in rule["properties"].items()}
    if "required" in rule:
        plain["additionalProperties"] = False
        if not rule["required"]:
            del plain["required"]
    return plain
