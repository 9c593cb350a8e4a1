"""What one series is to do, complete and on its own: what `tidemark measure` reads and what a run remembers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from tidemark.config import DisturbanceConfig, ServicesConfig
from tidemark.errors import ConfigError

FORMAT = 3  # of what is measured and recorded, in all studies
# What names a series, says when it runs, keeps what it leaves or by which code it is measured, and decides no number
# of it: of the code, `measurement` tells apart what is measured differently.
SILENT = ("study", "sweep", "title", "position", "keep_tables", "seed", "repeat", "disturbance", "harness", "client")


@dataclass(frozen=True, slots=True)
class SeriesSpec:
    """One system in one mode of a workload. Everything here that decides a measurement is part of `fingerprint`."""

    study: str
    sweep: str  # names.MAIN, or the name of the sweep
    workload: str
    name: str
    title: str
    system: str
    options: tuple[tuple[str, Any], ...]
    mode: str  # as a part of its path: single, batch-1000
    settings: tuple[tuple[str, Any], ...]  # the workload's own, by their names
    cpus: int | None  # processors that the client's process is bound to; None: all
    cold: str
    keep_tables: bool
    protocol: str
    window_seconds: float
    runs: int
    repeat: int  # the how manieth time that this series is measured, from 1
    stack: str
    lock_sha256: str
    measurement: str  # versions of what the workload times and of what the system does
    harness: str  # digest of the code that measures, for information
    client: str  # digest of the code of the system, for information
    machine: str  # identity of the machine that measures
    dataset_directory: str  # empty where the workload takes no trips
    disturbance: DisturbanceConfig
    services: ServicesConfig
    seed: int
    position: int

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change when, and only when, the measurement would."""
        decisive = {key: value for key, value in asdict(self).items() if key not in SILENT}
        text = json.dumps({"format": FORMAT, **decisive}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def repeated_id(self) -> str:
        """What all repeats of a series have in common: the id of the first."""
        return f"{self.workload}/{self.name}/{self.mode}/{self.fingerprint}"

    @property
    def id(self) -> str:
        return self.repeated_id + (f"-{self.repeat}" if self.repeat > 1 else "")

    @property
    def label(self) -> str:
        """What people read: system, mode, and which repeat it is."""
        return f"{self.name} {self.mode}" + (f" ({self.repeat})" if self.repeat > 1 else "")

    @property
    def directory(self) -> str:
        """Where its runs lie, from the workspace's root."""
        return f"results/runs/{self.id}"

    def configured(self) -> dict[str, Any]:
        """All of it by name, the workload's settings beside the rest: what a run remembers it was made with."""
        whole = asdict(self)
        return {**{key: value for key, value in whole.items() if key != "settings"}, **dict(self.settings)}

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, default=str) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str) -> SeriesSpec:
        try:
            values = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"{source}: cannot be read as JSON ({error}); run 'all' again") from error
        unknown = set(values) ^ {field.name for field in fields(cls)}
        if unknown:
            raise ConfigError(f"{source}: the keys {sorted(unknown)} do not fit this version; run 'all' again")
        for name in ("options", "settings"):
            values[name] = tuple((key, value) for key, value in values[name])
        values["services"] = ServicesConfig(**values["services"])
        values["disturbance"] = DisturbanceConfig(**values["disturbance"])
        return cls(**values)

    @classmethod
    def read(cls, path: Path) -> SeriesSpec:
        return cls.from_json(path.read_text(), str(path))


class WorkloadSettings:
    """What decides how a workload works, beside the system and its options; a subclass is a frozen dataclass of it."""

    __slots__ = ()

    @classmethod
    def of(cls, spec: SeriesSpec) -> Self:
        given = dict(spec.settings)
        return cls(**{field.name: given[field.name] for field in fields(cls)})  # type: ignore[arg-type]

    @property
    def pairs(self) -> tuple[tuple[str, Any], ...]:
        """As a spec has them."""
        return tuple(asdict(self).items())  # type: ignore[call-overload]
