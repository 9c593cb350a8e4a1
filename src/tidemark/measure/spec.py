"""What one series is to do, complete and on its own: what `tidemark measure` reads and what a run remembers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tidemark.config import DisturbanceConfig, ServicesConfig
from tidemark.errors import ConfigError

FORMAT = 2  # of what is measured and recorded; the digest of the code tells apart what this does not


@dataclass(frozen=True, slots=True)
class SeriesSpec:
    """One system in one mode. Everything here that decides a measurement is part of `fingerprint`."""

    study: str
    name: str
    title: str
    system: str
    options: tuple[tuple[str, Any], ...]
    mode: str
    batch_size: int  # events of one write; 1 in single mode
    threads: int
    cpus: int | None  # processors that the client's process is bound to; None: all
    compression: str
    encoding: str
    producer: str
    overlap: bool
    read_ahead: int  # events read in one go in single mode; 1 in batch mode
    cold: str
    maintenance: bool
    keep_tables: bool
    protocol: str
    window_seconds: float
    runs: int
    repeat: int  # the how manieth time that this series is measured, from 1
    stack: str
    lock_sha256: str
    harness: str  # digest of the code that measures
    machine: str  # identity of the machine that measures
    dataset_directory: str
    disturbance: DisturbanceConfig
    services: ServicesConfig
    seed: int
    position: int

    @property
    def mode_label(self) -> str:
        return "single" if self.mode == "single" else f"batch-{self.batch_size}"

    @property
    def fingerprint(self) -> str:
        """12 hex digits that change when, and only when, the measurement would."""
        decisive = asdict(self)
        for key in ("title", "position", "keep_tables", "study", "seed", "repeat", "disturbance"):
            del decisive[key]
        for each in fields(ServicesConfig):
            if each.metadata.get("silent") and decisive["services"][each.name] is None:
                del decisive["services"][each.name]
        text = json.dumps({"format": FORMAT, **decisive}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def repeated_id(self) -> str:
        """What all repeats of a series have in common: the id of the first."""
        return f"{self.name}/{self.mode_label}/{self.fingerprint}"

    @property
    def id(self) -> str:
        return self.repeated_id + (f"-{self.repeat}" if self.repeat > 1 else "")

    @property
    def label(self) -> str:
        """What people read: system, mode, and which repeat it is."""
        return f"{self.name} {self.mode_label}" + (f" ({self.repeat})" if self.repeat > 1 else "")

    @property
    def directory(self) -> str:
        """Where its runs lie, from the workspace's root."""
        return f"results/runs/{self.id}"

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, default=str) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str) -> SeriesSpec:
        values = json.loads(text)
        unknown = set(values) ^ {field.name for field in fields(cls)}
        if unknown:
            raise ConfigError(f"{source}: the keys {sorted(unknown)} do not fit this version; run 'all' again")
        values["options"] = tuple((key, value) for key, value in values["options"])
        values["services"] = ServicesConfig(**values["services"])
        values["disturbance"] = DisturbanceConfig(**values["disturbance"])
        return cls(**values)

    @classmethod
    def read(cls, path: Path) -> SeriesSpec:
        return cls.from_json(path.read_text(), str(path))
