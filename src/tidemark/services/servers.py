"""The servers of one series: made in the order in which they need each other, stopped in the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services.base import Service, ServiceFiles, Surroundings
from tidemark.services.http import names_loopback


class Servers:
    """Prepared, then started; stopped for certain when the context ends, data and all."""

    def __init__(self, services: Mapping[type[Service], Service]) -> None:
        self.by_class = services
        self._awaited: list[Service] = []  # launched, not yet known to answer

    def launch(self) -> None:
        """Start those that need no other, and do not wait; `start` does, and must be called."""
        for service in self.by_class.values():
            if not service.needs:
                service.launch()
                self._awaited.append(service)

    def start(self) -> None:
        """Start all of them, side by side where neither needs the other."""
        if not self._awaited:
            self.launch()

        def wait_for(service: Service) -> None:
            if service in self._awaited:
                self._awaited.remove(service)
                service.start()

        for service in self.by_class.values():
            if service.needs:
                for kind in service.needs:
                    wait_for(self.by_class[kind])
                service.launch()
                self._awaited.append(service)
        for service in tuple(self._awaited):
            wait_for(service)

    def check(self) -> None:
        """Raise ServiceError if one of them has died."""
        for service in self.by_class.values():
            service.check()

    def ended(self) -> bool:
        """Whether one of ours has died; cheap enough to ask while a window is open."""
        return any(service.has_ended() for service in self.by_class.values())

    def ours(self) -> list[Service]:
        """What a system stands on and was started here, and can be killed: each before those that it needs."""
        found = reversed(list(self.by_class.values()))
        return [service for service in found if not service.is_external and not service.is_instrument]

    def pids(self) -> list[int]:
        """All processes of those that are ours."""
        return [pid for service in self.by_class.values() for pid in service.pids()]

    def files(self) -> dict[str, tuple[Path, ...]]:
        """The files whose share in memory tells how cold the servers are: their programs, and their data."""
        found: dict[str, tuple[Path, ...]] = {}
        for service in self.by_class.values():
            files: ServiceFiles = service.files()
            found[f"{service.name} program"] = files.program
            found[f"{service.name} data"] = files.data
        return found

    def programs(self) -> frozenset[Path]:
        """The files that the servers run from, which stay the same while they run."""
        return frozenset(path for service in self.by_class.values() for path in service.files().program)

    def versions(self) -> dict[str, str]:
        """What each running server calls itself."""
        return {service.title: service.version() for service in self.by_class.values()}


def in_order(wanted: Iterable[type[Service]]) -> list[type[Service]]:
    """`wanted` and all that they need, each after those that it needs."""
    ordered: list[type[Service]] = []

    def add(kind: type[Service]) -> None:
        for needed in kind.needs:
            add(needed)
        if kind not in ordered:
            ordered.append(kind)

    for kind in wanted:
        add(kind)
    return ordered


def started_here(wanted: Iterable[type[Service]], config: ServicesConfig) -> list[type[Service]]:
    """`wanted` and all that they need, without those of which `config` names a running one.

    With those, too, before which a client of ours goes.
    """
    return [kind for kind in in_order(wanted) if kind.has_client or kind.address_in(config) is None]


def out_of_reach(wanted: Iterable[type[Service]], config: ServicesConfig) -> str | None:
    """Why an engine that `config` names cannot reach another one of `wanted`, and what to do; None where all can.

    What listens on this machine's loopback alone can be reached by those that run on it.
    """
    asked = list(dict.fromkeys(wanted))
    for engine in asked:
        place = engine.address_in(config)
        if not engine.visits or place is None or names_loopback(place):
            continue
        for other in asked:
            theirs = other.address_in(config)
            if other is not engine and (theirs is None or names_loopback(theirs)):
                key = other.address_key
                instead = f"services.{engine.address_key}: null" if key is None else f"services.{key}, as both reach it"
                return (
                    f"services.{engine.address_key} is {place}, which cannot reach {other.title} on this machine's "
                    f"loopback ({theirs or 'started here'}); give {instead}"
                )
    return None


def locks_of(kinds: Iterable[type[Service]]) -> tuple[str, ...]:
    """The folders of envs/jars that servers of `kinds` run from, each once, in the order of their names."""
    return tuple(sorted({name for kind in kinds for name in kind.locks}))


def tools_of(kinds: Iterable[type[Service]]) -> tuple[str, ...]:
    """The tools that servers of `kinds` run from, each once, in the order of their names."""
    return tuple(sorted({name for kind in kinds for name in kind.tools}))


@contextmanager
def prepared(
    wanted: Iterable[type[Service]], workspace: Workspace, directory: Path, config: ServicesConfig
) -> Iterator[Servers]:
    """The servers of `wanted` with their programs verified and data directories made, not yet started."""
    services: dict[type[Service], Service] = {}
    with ExitStack() as stack:
        for kind in in_order(wanted):
            service = kind.from_config(Surroundings(workspace, directory / kind.name, config, services))
            services[kind] = service
            stack.callback(service.remove_data)
            service.prepare()
        yield Servers(services)
