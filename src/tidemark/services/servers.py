"""The servers of one series, created in dependency order and stopped in reverse order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services.base import Service, ServiceContext
from tidemark.services.http import names_loopback


class Servers:
    """Servers that are prepared and then started; the context reliably stops them and removes their data."""

    def __init__(self, services: Mapping[type[Service], Service]) -> None:
        self.by_class = services
        self._awaited: list[Service] = []  # launched, not yet known to answer

    def of(self, wanted: Iterable[type[Service]]) -> Servers:
        """Return those of `wanted` and of all their dependencies, which are among these."""
        return Servers({kind: self.by_class[kind] for kind in in_order(wanted)})

    def find[S: Service](self, kind: type[S]) -> S | None:
        """Return the server of class `kind`; None if it is not among them."""
        found = self.by_class.get(kind)
        return found if isinstance(found, kind) else None

    def launch(self) -> None:
        """Launch the servers without dependencies and do not wait; `start` must follow, and waits."""
        for service in self.by_class.values():
            if not service.needs:
                service.launch()
                self._awaited.append(service)

    def start(self) -> None:
        """Start all servers, concurrently where neither depends on the other."""
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

    def settle(self) -> None:
        """Have each server do what it would do later by itself, perhaps in a window; one that has died is left out."""
        for service in self.by_class.values():
            if not service.has_ended():
                service.settle()

    def check(self) -> None:
        """Raise ServiceError if one of them has died."""
        for service in self.by_class.values():
            service.check()

    def ended(self) -> bool:
        """Return True if a server started here has died; cheap enough to call within a window."""
        return any(service.has_ended() for service in self.by_class.values())

    def ours(self) -> list[Service]:
        """Return the servers started here that a system depends on and can be killed, dependents first."""
        found = reversed(list(self.by_class.values()))
        return [service for service in found if not service.is_external and not service.is_instrument]

    def pids(self) -> list[int]:
        """Return the ids of all processes of the servers started here."""
        return [pid for service in self.by_class.values() for pid in service.pids()]

    def files(self) -> dict[str, tuple[Path, ...]]:
        """Return the program and data files whose share in the page cache shows how cold the servers are."""
        found: dict[str, tuple[Path, ...]] = {}
        for service in self.by_class.values():
            files = service.files()
            found |= {f"{service.name} program": files.program, f"{service.name} data": files.data}
        return found

    def programs(self) -> frozenset[Path]:
        """Return the files that the servers run from, which do not change while they run."""
        return frozenset(path for service in self.by_class.values() for path in service.files().program)

    def versions(self) -> dict[str, str]:
        """Return the version that each running server reports, by title."""
        return {service.title: service.version() for service in self.by_class.values()}


def in_order(wanted: Iterable[type[Service]]) -> list[type[Service]]:
    """Return `wanted` and all their dependencies, each after those that it needs."""
    return list(dict.fromkeys(each for kind in wanted for each in (*in_order(kind.needs), kind)))


def started_here(wanted: Iterable[type[Service]], config: ServicesConfig) -> list[type[Service]]:
    """Return `wanted` and all their dependencies, without those that are external according to `config`.

    External servers with a Tidemark client (`has_client`) are included.
    """
    return [kind for kind in in_order(wanted) if kind.has_client or kind.address_in(config) is None]


def out_of_reach(wanted: Iterable[type[Service]], config: ServicesConfig) -> str | None:
    """Return why an external engine in `config` cannot reach another of `wanted`, and a remedy; None if all can.

    A server that listens only on this machine's loopback can be reached only by engines on this machine.
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
    """Return the folders of envs/jars that servers of `kinds` run from, sorted, without duplicates."""
    return tuple(sorted({name for kind in kinds for name in kind.locks}))


def tools_of(kinds: Iterable[type[Service]]) -> tuple[str, ...]:
    """Return the tools that servers of `kinds` run from, sorted, without duplicates."""
    return tuple(sorted({name for kind in kinds for name in kind.tools}))


@contextmanager
def prepared(
    wanted: Iterable[type[Service]], workspace: Workspace, directory: Path, config: ServicesConfig
) -> Iterator[Servers]:
    """Yield the servers of `wanted` with verified programs and created data directories, not yet started."""
    services: dict[type[Service], Service] = {}
    with ExitStack() as stack:
        for kind in in_order(wanted):
            service = kind.from_config(ServiceContext(workspace, directory / kind.name, config, services))
            services[kind] = service
            stack.callback(service.remove_data)
            service.prepare()
        yield Servers(services)
