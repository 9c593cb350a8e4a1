"""Section `streams` of the configuration, the settings that a series takes from it, and the record of a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.config import ServicesConfig
from tidemark.errors import ConfigError
from tidemark.measure.table_calls import Latencies
from tidemark.measure.workload import Evict
from tidemark.runs.serde import Pairs
from tidemark.runs.spec import BATCH, MAIN, SINGLE, WorkloadSettings
from tidemark.schema import Key, Origin, one_of
from tidemark.settings import or_else
from tidemark.studies.streams.config import Protocol, Sweep
from tidemark.systems.registry import SystemEntry

SECTION = "streams"
NULL_SECONDS = 3.0
ONE_CHUNK, A_CHUNK_EACH = "one", "rows"
AHEAD = "ahead"  # the producer fills the topic before the window
PRODUCER = "producer"  # group of its process
STREAMED, FLUSHED = "streamed", "flushed"  # states of a table: as the window left it, and after maintenance


@dataclass(frozen=True, slots=True)
class StreamSettings(WorkloadSettings):
    """Settings that decide how a series writes its stream, in addition to the system and its options."""

    lacking: ClassVar[Mapping[str, Any]] = {"least_seconds": 0.0, "chunks": ONE_CHUNK, "evict": Evict.FIRST}

    mode: str  # SINGLE or BATCH
    batch_size: int  # events per write; 1 in single mode
    threads: int
    compression: str
    encoding: str
    producer: str
    overlap: bool
    read_ahead: int  # most events per read in single mode; 1 in batch mode
    maintenance: bool
    commits: int = 0  # commits that end a window; 0: only its length ends it
    least_seconds: float = 0.0  # length from which the commits end it
    chunks: str = ONE_CHUNK  # of a batch: one, or one for each event
    evict: str = Evict.FIRST  # runs before which the page cache is emptied

    @property
    def most_events(self) -> int | None:
        """Events of a window that ends by its number of commits; None if it ends by its length."""
        return self.commits * self.batch_size or None

    @property
    def label(self) -> str:
        """Mode as a path component."""
        return SINGLE if self.mode == SINGLE else f"{BATCH}-{self.batch_size}"


@dataclass(frozen=True, slots=True)
class StreamsSection:
    """Parsed section."""

    protocol: Protocol
    systems: tuple[SystemEntry, ...]
    modes: tuple[str, ...]
    sweeps: Mapping[str, Sweep]  # chosen ones, by name
    main: bool  # whether the configuration itself is measured, in addition to sweeps
    cpus: int | None
    given: Mapping[str, Any]  # the complete section by key

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, services: ServicesConfig, origin: Origin) -> StreamsSection:
        """Parse the section. Raises ConfigError, with the place of the key, for unknown names."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        # As written, and not decoded: a window of 8 seconds and one of 8.0 are recorded as two series.
        sizes = Protocol(**given["protocols"][protocol])
        names = given["sweeps"] or sizes.sweeps
        asked: Key = ("sweeps",) if given["sweeps"] else ("protocols", protocol, "sweeps")
        for name in names:
            one_of(name, [MAIN, *given["sweep"]], (SECTION, *asked), origin)
        most = sizes.window_seconds if sizes.commits else 0
        if sizes.least_seconds > most:
            place = origin.place((SECTION, "protocols", protocol, "least_seconds"))
            why = "its window_seconds" if sizes.commits else "as it has no commits"
            raise ConfigError(f"{place}: found {sizes.least_seconds:g}; allowed: at most {most:g}, {why}")
        if sizes.rounds and sizes.runs == 1:
            place = origin.place((SECTION, "protocols", protocol, "rounds"))
            raise ConfigError(f"{place}: found {sizes.rounds}; allowed: 0, as its one run is cold and rounds are hot")
        for key, without in (("block", 1), ("precision", 0), ("budget_minutes", 0)):
            if (found := getattr(sizes, key)) != without and not sizes.rounds:
                place = origin.place((SECTION, "protocols", protocol, key))
                raise ConfigError(f"{place}: found {found:g}; allowed: {without}, as there are no rounds")
        sweeps = {name: Sweep(**given["sweep"][name]) for name in names if name != MAIN}
        for name, sweep in sweeps.items():
            for system in or_else(sweep.systems, ()):
                one_of(system, given["systems"], (SECTION, "sweep", name, "systems"), origin)
        _check_polaris(given, services, origin)
        return cls(
            protocol=sizes,
            systems=tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items()),
            modes=tuple(given["modes"]),
            sweeps=sweeps,
            main=MAIN in names,
            cpus=given["cpus"],
            given=given,
        )

    @property
    def harness_window_seconds(self) -> float:
        """Window length in seconds of a system that stores nothing: its speed is constant from the first second on."""
        return min(self.protocol.window_seconds, or_else(self.protocol.null_seconds, NULL_SECONDS))

    def settings(self, mode: str) -> StreamSettings:
        """Return the settings of a series in `mode`, without those of sweeps."""
        given = self.given
        same = ("threads", "compression", "encoding", "producer", "maintenance", "evict")
        return StreamSettings(
            mode=mode,
            batch_size=given["batch_size"] if mode == BATCH else 1,
            overlap=given["overlap"] and mode == BATCH,
            read_ahead=given["read_ahead"] if mode == SINGLE else 1,
            chunks=given["chunks"] if mode == BATCH else ONE_CHUNK,
            commits=self.protocol.commits,
            least_seconds=self.protocol.least_seconds,
            **{key: given[key] for key in same},
        )


def _check_polaris(given: Mapping[str, Any], services: ServicesConfig, origin: Origin) -> None:
    """Raise ConfigError if the catalog is a Polaris that can be neither started nor reached."""
    asking: list[Key] = [(SECTION, "catalog")] if given["catalog"] == "polaris" else []
    asking += [
        (SECTION, "systems", name, "catalog")
        for name, entry in given["systems"].items()
        if entry.get("catalog") == "polaris"
    ]
    missing = services.why_no_polaris()
    if missing and asking:
        raise ConfigError(f"{origin.place(asking[0])}: found 'polaris', but {missing}")


@dataclass(frozen=True, slots=True)
class NotRead:
    """The reason why a table could not be read."""

    why_not: str  # why the table could not be read


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """Reads of the table by a client that never wrote to it, by state of the table; empty if it was not read."""

    reads: Pairs[Latencies | NotRead] = ()  # latencies of queries by state of the table: streamed, flushed
