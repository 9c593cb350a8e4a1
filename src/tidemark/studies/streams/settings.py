"""The section `streams` of the configuration, and what of it a series is set to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.config import ServicesConfig
from tidemark.errors import ConfigError
from tidemark.runs.names import BATCH, MAIN, SINGLE
from tidemark.runs.spec import WorkloadSettings
from tidemark.schema import Key, Origin, one_of
from tidemark.systems.variants import SystemEntry

SECTION = "streams"
NULL_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class StreamSettings(WorkloadSettings):
    """What decides how a series writes its stream, beside the system and its options."""

    mode: str  # SINGLE or BATCH
    batch_size: int  # events of one write; 1 in single mode
    threads: int
    compression: str
    encoding: str
    producer: str
    overlap: bool
    read_ahead: int  # events read in one go in single mode; 1 in batch mode
    maintenance: bool
    commits: int = 0  # after which a window ends, however long it takes; 0: its length alone decides

    @property
    def most_events(self) -> int | None:
        """Events of a window that its commits end; None where its length does."""
        return self.commits * self.batch_size or None

    @property
    def label(self) -> str:
        """The mode as a part of a path."""
        return SINGLE if self.mode == SINGLE else f"{BATCH}-{self.batch_size}"


@dataclass(frozen=True, slots=True)
class Protocol:
    """A named set of sizes."""

    name: str
    window_seconds: float
    runs: int
    repeats: int = 1
    null_seconds: float | None = None

    @property
    def harness_window_seconds(self) -> float:
        """Length of a window of a system that stores nothing: it is the same from its first second on."""
        return min(self.window_seconds, NULL_SECONDS if self.null_seconds is None else self.null_seconds)


@dataclass(frozen=True, slots=True)
class Sweep:
    """One setting varied; None means that the configuration's own value holds."""

    name: str
    axis: str
    values: tuple[Any, ...]
    systems: tuple[str, ...] | None
    modes: tuple[str, ...] | None
    window_seconds: float | None
    runs: int | None
    repeats: int | None

    @classmethod
    def parse(cls, name: str, given: Mapping[str, Any]) -> Sweep:
        systems, modes = given.get("systems"), given.get("modes")
        return cls(
            name=name,
            axis=given["axis"],
            values=tuple(given["values"]),
            systems=tuple(systems) if systems else None,
            modes=tuple(modes) if modes else None,
            window_seconds=given.get("window_seconds"),
            runs=given.get("runs"),
            repeats=given.get("repeats"),
        )


@dataclass(frozen=True, slots=True)
class StreamsSection:
    """The section, parsed."""

    protocol: Protocol
    systems: tuple[SystemEntry, ...]
    modes: tuple[str, ...]
    sweeps: tuple[Sweep, ...]
    main: bool  # whether the configuration itself is measured, beside sweeps
    cpus: int | None
    given: Mapping[str, Any]  # all of it by name

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, services: ServicesConfig, origin: Origin) -> StreamsSection:
        """ConfigError, with the place of the key, for names that stand for nothing."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        for name in given["sweeps"]:
            one_of(name, [MAIN, *given["sweep"]], (SECTION, "sweeps"), origin)
        chosen = {name: given["sweep"][name] for name in given["sweeps"] if name != MAIN}
        for name, sweep in chosen.items():
            for system in sweep.get("systems", ()):
                one_of(system, given["systems"], (SECTION, "sweep", name, "systems"), origin)
        _check_polaris(given, services, origin)
        return cls(
            protocol=Protocol(protocol, **given["protocols"][protocol]),
            systems=tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items()),
            modes=tuple(given["modes"]),
            sweeps=tuple(Sweep.parse(name, sweep) for name, sweep in chosen.items()),
            main=MAIN in given["sweeps"],
            cpus=given["cpus"],
            given=given,
        )

    def settings(self, mode: str) -> StreamSettings:
        """What a series in `mode` is set to, sweeps aside."""
        given = self.given
        return StreamSettings(
            mode=mode,
            batch_size=given["batch_size"] if mode == BATCH else 1,
            threads=given["threads"],
            compression=given["compression"],
            encoding=given["encoding"],
            producer=given["producer"],
            overlap=given["overlap"] and mode == BATCH,
            read_ahead=given["read_ahead"] if mode == SINGLE else 1,
            maintenance=given["maintenance"],
        )


def _check_polaris(given: Mapping[str, Any], services: ServicesConfig, origin: Origin) -> None:
    """Refuse commits through a Polaris that nobody could start or reach."""
    asking: list[Key] = [(SECTION, "catalog")] if given["catalog"] == "polaris" else []
    asking += [
        (SECTION, "systems", name, "catalog")
        for name, entry in given["systems"].items()
        if entry.get("catalog") == "polaris"
    ]
    missing = services.why_no_polaris()
    if missing and asking:
        raise ConfigError(f"{origin.place(asking[0])}: found 'polaris', but {missing}")
