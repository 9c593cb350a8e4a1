"""Complete, self-contained specification of one series: read by `tidemark measure` and recorded in its runs.

The names that run files use are here too: the modes of writing a stream, and the stages of a time budget.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self, get_type_hints

from tidemark.config import DisturbanceConfig, ServicesConfig
from tidemark.errors import ConfigError
from tidemark.runs.serde import values_of

SINGLE, BATCH = "single", "batch"  # one event per write, and many
MODES = (SINGLE, BATCH)
TWIN = "-twin"  # ends the second name of a system that is measured twice, in an A/A comparison
# Stages of a window's wall-clock time, in the order in which an event passes them; `rest`: time in none of them.
STAGES = ("poll", "decode", "assemble", "write", "bookkeeping", "wait_for_producer", "rest")
MAIN = "main"  # in place of a sweep's name: the configuration itself, of which sweeps vary one setting

GROUP = re.compile(r"\(\?P<(\w+)>[^)]*\)")  # of a label's pattern

FORMAT = 3  # version of what is measured and recorded, in all studies
# Fields that do not affect a series' results: its names, its order, what it keeps, and digests of the code. If the
# code measures something differently, `measurement` changes.
SILENT = (
    "study", "sweep", "title", "position", "keep_tables", "seed", "repeat", "in_round", "block", "disturbance",
    "harness", "client",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSpec:
    """One system in one mode of a workload; every field that affects the measurement is part of `fingerprint`.

    Fields with a default are set by the study and the plan, which start from a specification without a system.
    """

    study: str  # study that asked for it
    sweep: str = MAIN  # or the name of the sweep
    workload: str  # what its windows do
    name: str = ""  # name of the system in the configuration
    title: str = ""  # name of the system in results
    system: str = ""  # registered system of which it is a variant
    options: tuple[tuple[str, Any], ...] = ()  # options of the system
    mode: str = ""  # as in its path: single, batch-1000
    settings: tuple[tuple[str, Any], ...] = ()  # settings of the workload
    cpus: int | None = None  # number of processors that the client's process is bound to; None: all
    cold: str  # how run 0 is made cold
    keep_tables: bool  # true if tables stay in .tidemark/work
    protocol: str  # name of the sizes
    window_seconds: float = 0.0  # length of a window, at most
    runs: int = 0  # number of runs, with run 0
    repeat: int = 1  # ordinal of this repeat of the series, from 1
    in_round: bool = False  # its hot runs alone, on servers that all systems of a block of rounds use in turn
    block: int = 0  # ordinal of the block of rounds, from 1; 0 if it is in none
    stack: str  # name of the releases
    lock_sha256: str = ""  # hash of the locks that decide what runs
    measurement: str = ""  # versions of what the workload times and of what the system does
    harness: str  # digest of the measuring code, for information
    client: str = ""  # digest of the system's code, for information
    machine: str  # identity of the measuring machine
    dataset_directory: str  # folder of the trips; empty if the workload reads none
    disturbance: DisturbanceConfig  # limits above which other work disturbs a run
    services: ServicesConfig  # addresses of servers that are used instead of own ones
    seed: int  # seed of the order of series and of synthetic trips
    position: int = 0  # place in the order of all series, from 0

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change if and only if the measurement would."""
        decisive = {key: value for key, value in asdict(self).items() if key not in SILENT}
        text = json.dumps({"format": FORMAT, **decisive}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def repeated_id(self) -> str:
        """Id of the first repeat, common to all repeats of a series."""
        return f"{self.workload}/{self.name}/{self.mode}/{self.fingerprint}"

    @property
    def id(self) -> str:
        return self.repeated_id + (f"-{self.repeat}" if self.repeat > 1 else "")

    @property
    def label(self) -> str:
        """Name for people: system, mode, and the number of the repeat from 2 on."""
        return f"{self.name} {self.mode}" + (f" ({self.repeat})" if self.repeat > 1 else "")

    @property
    def numbers(self) -> range:
        """Numbers of its runs: run 0 is cold, and a round has none."""
        return range(int(self.in_round), self.runs)

    @property
    def job(self) -> str:
        """Name of what is measured in one go: this series, or the block of rounds that it is part of."""
        return f"{self.workload}-block-{self.block:02}-{self.stack}" if self.in_round else self.id.replace("/", "-")

    @property
    def directory(self) -> str:
        """Folder of its runs, relative to the workspace's root."""
        return f"results/runs/{self.id}"

    def configured(self) -> dict[str, Any]:
        """Return all fields by name, the workload's settings merged in, as each run records them."""
        whole = asdict(self)
        return {**{key: value for key, value in whole.items() if key != "settings"}, **dict(self.settings)}

    def described(self) -> dict[str, Any]:
        """Return what plan.json and run.json say of it, by key: its fields, and settings that are not among them."""
        settings = dict(self.settings)
        ids = {"id": self.id, "repeats": self.repeated_id, "directory": self.directory}
        names = {"system": self.name, "base": self.system, "mode": settings.get("mode", self.mode)}
        return {**settings, **values_of(self), **ids, **names}

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, default=str) + "\n"

    @classmethod
    def read(cls, path: Path) -> SeriesSpec:
        """Read spec.json at `path`; raise ConfigError, naming the file, if it is not as this version writes it."""
        try:
            values = json.loads(path.read_text())
        except ValueError as error:
            raise ConfigError(f"{path}: cannot be read as JSON ({error}); run 'all' again") from error
        unknown = set(values) ^ {field.name for field in fields(cls)}
        if unknown:
            raise ConfigError(f"{path}: the keys {sorted(unknown)} do not fit this version; run 'all' again")
        for name in ("options", "settings"):
            values[name] = tuple((key, value) for key, value in values[name])
        values["services"] = ServicesConfig(**values["services"])
        values["disturbance"] = DisturbanceConfig(**values["disturbance"])
        return cls(**values)


class HasSettings(Protocol):
    """A planned or a measured series."""

    @property
    def mode(self) -> str: ...

    @property
    def settings(self) -> tuple[tuple[str, Any], ...]: ...


class WorkloadSettings:
    """Settings of a workload, in addition to the system and its options; subclasses are frozen dataclasses.

    `label_pattern` matches the label of a series and names the settings that it encodes. Reading a label is needed only
    for plans of earlier versions, which had the label alone.
    """

    __slots__ = ()
    label_pattern: ClassVar[re.Pattern[str]] = re.compile(".*")
    # Settings that earlier versions lack, with the values that change nothing: such series keep their fingerprint.
    lacking: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    @property
    def label(self) -> str:
        """Mode as a path component: `label_pattern`, with the values of the settings that it names."""
        return GROUP.sub(lambda group: self._spelt(getattr(self, group[1])), self.label_pattern.pattern)

    def _spelt(self, value: Any) -> str:
        """Return a setting as it is spelled in a label."""
        return str(value)

    @classmethod
    def of(cls, series: HasSettings) -> Self:
        """Return the settings of a planned or measured series.

        Those that an old plan does not tell have their default, or are None.
        """
        known = {each.name: each.default for each in fields(cls)}  # type: ignore[arg-type]
        given, names = dict(series.settings), list(known)
        if not given.keys() >= set(names):
            defaults = {name: None if default is MISSING else default for name, default in known.items()}
            given = {**defaults, **cls._of_label(series.mode), **given}
        return cls(**{name: given[name] for name in names})

    @classmethod
    def _of_label(cls, label: str) -> dict[str, Any]:
        """Return the settings that a label encodes; numbers that it leaves out are 0."""
        found, hints = cls.label_pattern.fullmatch(label), get_type_hints(cls)
        given = found.groupdict() if found else {}
        return {name: hints[name](text or 0) if hints[name] in (int, float) else text for name, text in given.items()}

    @property
    def pairs(self) -> tuple[tuple[str, Any], ...]:
        """Settings in the form of `SeriesSpec.settings`, without those that have their value in `lacking`."""
        return tuple(pair for pair in asdict(self).items() if pair not in self.lacking.items())  # type: ignore[call-overload]
