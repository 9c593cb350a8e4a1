"""From the configuration to the series that it asks for, in the order in which they run."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import itertools
import json
import os
import random
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidemark import __version__
from tidemark.config import Config, Study, SystemEntry
from tidemark.errors import ConfigError
from tidemark.machine.inventory import inventory
from tidemark.measure.identity import harness_digest
from tidemark.measure.spec import FORMAT, SeriesSpec
from tidemark.paths import Workspace, write_if_changed
from tidemark.stacks import locks
from tidemark.systems import registry
from tidemark.systems.base import Capability, Options, Variant

FOOTER_BYTES = 65536
PROCESSORS = ("threads", "cpus")  # axes that the machine's processors bound


@dataclass(frozen=True, slots=True)
class Plan:
    series: tuple[SeriesSpec, ...]
    config: Config
    dataset_key: str
    machine: str  # identity of the machine that it is for
    notes: tuple[str, ...] = ()  # where the machine cannot give what was asked for

    @property
    def dataset_directory(self) -> str:
        return f"data/prepared/{self.dataset_key}"

    def to_json(self) -> str:
        """The contract with the analysis: the series of this configuration and where their runs lie."""
        series = [
            {
                "id": spec.id,
                "system": spec.name,
                "title": spec.title,
                "base": spec.system,
                "mode": spec.mode,
                "batch_size": spec.batch_size,
                "protocol": spec.protocol,
                "stack": spec.stack,
                "study": spec.study,
                "threads": spec.threads,
                "cpus": spec.cpus,
                "read_ahead": spec.read_ahead,
                "position": spec.position,
                "repeat": spec.repeat,
                "repeats": spec.repeated_id,
                "directory": spec.directory,
            }
            for spec in self.series
        ]
        whole: dict[str, Any] = {"schema_version": 1, "config": json.loads(self.config.effective)}
        whole |= {"tidemark": {"version": __version__, "format": FORMAT, "harness": harness_digest()}}
        whole |= {"machine": {"identity": self.machine}}
        whole |= {"series": series, "notes": self.notes}
        return json.dumps(whole, indent=1) + "\n"

    def write(self, workspace: Workspace) -> None:
        """Put the plan where the rules read it; files whose content stays the same keep their mtime.

        It becomes that of the results once all of it is measured: until then they belong to the plan before.
        """
        write_if_changed(workspace.plan, self.to_json())
        for spec in self.series:
            write_if_changed(workspace.root / spec.directory / "spec.json", replace(spec, position=0).to_json())


def dataset_key(config: Config) -> str:
    """12 hex digits that change when the prepared trips would."""
    dataset = config.dataset
    files = [_identity(path) for path in dataset.paths]
    seeded = config.seed if dataset.source in ("auto", "synthetic") and not dataset.paths else None
    decisive = [dataset.source, files, dataset.rows, dataset.synthetic_rows, seeded]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:12]


def _identity(path: Path) -> list[Any]:
    """Size and footer of a Parquet file: the footer holds the statistics and places of all that is in it."""
    if not path.is_file():
        return [str(path)]
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - FOOTER_BYTES))
        return [size, hashlib.sha256(file.read()).hexdigest()]


def variant(entry: SystemEntry, source: str) -> Variant:
    """The system that a line below `systems` means, its options checked against the system's own."""
    known = registry()
    if entry.like not in known:
        close = difflib.get_close_matches(entry.like, known, 1, 0.5)
        raise ConfigError(
            f"{source}: key 'systems.{entry.name}': found no system '{entry.like}'; "
            f"allowed: {', '.join(known)}" + (f"; did you mean '{close[0]}'?" if close else "")
        )
    system = known[entry.like]
    options = _options(entry, system.Options, source)
    title = entry.title or (system.title if entry.name == entry.like else entry.name)
    return Variant(entry.name, system, options, title)


def following(entry: SystemEntry, config: Config) -> SystemEntry:
    """`entry` with all options of its system: those left out are what the main configuration, or a default, says.

    A default is a setting as any other: a series measured with another one is another series.
    """
    given = dict(entry.options)
    for field in dataclasses.fields(registry()[entry.like].Options):
        key = field.metadata.get("follows")
        given.setdefault(field.name, field.default if key is None else getattr(config, key))
    return replace(entry, options=tuple(sorted(given.items())))


def _options(entry: SystemEntry, kind: type[Options], source: str) -> Options:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    for key, value in entry.options:
        place = f"{source}: key 'systems.{entry.name}.{key}'"
        if key not in fields:
            close = difflib.get_close_matches(key, fields, 1, 0.5)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            known = ", ".join(["like", "title", *fields])
            raise ConfigError(f"{place}: found an option that '{entry.like}' does not have; allowed: {known}{hint}")
        allowed = typing.get_args(hints[key]) if isinstance(hints[key], types.UnionType) else (hints[key],)
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
        if type(value) not in allowed:
            raise ConfigError(f"{place}: found {json.dumps(value, default=str)}; allowed: {names}")
        choices = fields[key].metadata.get("choices")
        if choices and value not in choices:
            raise ConfigError(f"{place}: found {value!r}; allowed: {', '.join(map(str, choices))}")
        minimum = fields[key].metadata.get("minimum")
        if minimum is not None and value is not None and value < minimum:
            raise ConfigError(f"{place}: found {value}; allowed: at least {minimum}")
    return kind(**dict(entry.options))


def make_plan(config: Config, root: Path | None = None) -> Plan:
    """The series of `config`, in an order drawn from its seed; the same series always at the same path.

    `root` is the workspace's folder, whose disk is part of the machine's identity; the current one if left out.
    """
    key = dataset_key(config)
    machine = inventory(root or Path.cwd()).identity
    locked = {stack: _digest(locks(stack)) for stack in config.stacks}
    chosen = {entry.name: variant(entry, config.source) for entry in config.systems}
    for each in chosen.values():
        _check_compression(each, config)
    entries = [following(entry, config) for entry in config.systems]
    made: list[SeriesSpec] = []
    for stack, lock_sha256 in locked.items():
        for entry, mode in itertools.product(entries, config.modes):
            base = SeriesSpec(
                study="main",
                name=entry.name,
                title=chosen[entry.name].title,
                system=entry.like,
                options=entry.options,
                mode=mode,
                batch_size=config.batch_size if mode == "batch" else 1,
                threads=config.threads,
                cpus=config.cpus,
                compression=config.compression,
                encoding=config.encoding,
                producer=config.producer,
                overlap=config.overlap and mode == "batch",
                read_ahead=config.read_ahead if mode == "single" else 1,
                cold=config.cold,
                maintenance=config.maintenance,
                keep_tables=config.keep_tables,
                protocol=config.protocol.name,
                window_seconds=_window_seconds(chosen[entry.name], config),
                runs=config.protocol.runs,
                repeat=1,
                stack=stack,
                lock_sha256=lock_sha256,
                harness=harness_digest(),
                machine=machine,
                dataset_directory=f"data/prepared/{key}",
                disturbance=config.disturbance,
                services=config.services,
                seed=config.seed,
                position=0,
            )
            if config.main:
                made += _repeated(base, config.protocol.repeats)
            for study in config.studies:
                for varied in _vary(base, study, config):
                    made += _repeated(varied, study.repeats or config.protocol.repeats)
    notes = tuple(dict.fromkeys(note for study in config.studies for note in _limits(study)))
    ordered = _in_order({spec.id: spec for spec in reversed(made)}.values(), config.seed)
    placed = tuple(replace(spec, position=place) for place, spec in enumerate(ordered))
    return Plan(placed, config, key, machine, notes)


def _window_seconds(chosen: Variant, config: Config) -> float:
    stores = Capability.READ_BACK in chosen.system.capabilities
    return config.protocol.window_seconds if stores else config.protocol.harness_window_seconds


def _repeated(spec: SeriesSpec, repeats: int) -> list[SeriesSpec]:
    return [replace(spec, repeat=number) for number in range(1, repeats + 1)]


def _in_order(series: Iterable[SeriesSpec], seed: int) -> list[SeriesSpec]:
    """In an order drawn from `seed`, each repeat of all series before the next one of any.

    So repeats of a series lie far apart, and what a machine does for some minutes meets one of them alone.
    """
    source = random.Random(seed)
    rounds: dict[int, list[SeriesSpec]] = {}
    for spec in sorted(series, key=lambda spec: (spec.repeat, spec.id)):
        rounds.setdefault(spec.repeat, []).append(spec)
    for each in rounds.values():
        source.shuffle(each)
    return [spec for each in rounds.values() for spec in each]


def _digest(content: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_compression(chosen: Variant, config: Config) -> None:
    """Refuse a codec that a system cannot be told to write: its files would say another."""
    allowed = chosen.system.compressions
    if config.compression not in allowed:
        raise ConfigError(
            f"{config.source}: key 'compression': found '{config.compression}'; the system '{chosen.name}' can be told "
            f"to write {', '.join(sorted(allowed))} only. Choose one of these, or take '{chosen.name}' out of 'systems'"
        )


def _limits(study: Study) -> list[str]:
    """What of the study's values this machine cannot give."""
    most = os.cpu_count() or 1
    if study.axis not in PROCESSORS:
        return []
    return [
        f"study '{study.name}': {value} {study.axis} were asked for, this machine has {most}; measured with {most}"
        for value in study.values
        if isinstance(value, int) and value > most
    ]


def _vary(base: SeriesSpec, study: Study, config: Config) -> list[SeriesSpec]:
    """`base` once for each value of the study's axis, or nothing where the study leaves it out."""
    if study.systems is not None and base.name not in study.systems:
        return []
    if base.mode not in (study.modes or config.modes):
        return []
    window = min(study.window_seconds or base.window_seconds, base.window_seconds * 6)
    made = []
    for value in study.values:
        wanted = int if study.axis == "cpus" else type(getattr(base, study.axis))
        if type(value) is not wanted:
            raise ConfigError(
                f"{config.source}: key 'study.{study.name}.values': found {value!r}; "
                f"allowed for '{study.axis}': {wanted.__name__}"
            )
        if study.axis in PROCESSORS:
            value = min(value, os.cpu_count() or 1)
        spec = replace(base, study=study.name, window_seconds=window, runs=study.runs or base.runs)
        changed: dict[str, Any] = {study.axis: value}
        made.append(replace(spec, **changed))
    return made
