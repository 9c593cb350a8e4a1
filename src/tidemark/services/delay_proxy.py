"""A proxy that adds a round-trip time between a server and its clients, which a loopback address lacks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol, Self

from tidemark.paths import Workspace
from tidemark.services.base import Service, ServiceContext
from tidemark.services.own import OwnProgram
from tidemark.services.programs.process import is_free


class Reachable(Protocol):
    """A server that accepts TCP connections."""

    def host_and_port(self) -> tuple[str, int]:
        """Return the address; read when the proxy starts."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """A port of this machine's loopback."""

    port: int

    def host_and_port(self) -> tuple[str, int]:
        return "127.0.0.1", self.port


class DelayProxy(OwnProgram):
    """Proxy on a loopback port in front of one server: each byte arrives `rtt_ms` / 2 later, in either direction.

    There is no bandwidth limit and no loss. `delayed` creates the proxy class for a class of servers.
    A round trip of one byte to an echo server on loopback takes 0.03 ms without the proxy. On two processors with eight
    programs competing for them, its 10th percentile was 0.19 ms at 0 ms, 1.4 at 1, 5.6 at 5 and 20.7 at 20: about
    0.2 ms are the proxy's overhead, the rest is timers waiting for a processor. Nothing arrives early.
    """

    name: ClassVar[str] = "delay-proxy"
    title: ClassVar[str] = "Delay proxy"
    is_instrument: ClassVar[bool] = True
    program: ClassVar[str] = "tidemark.services.programs.delay"
    port_line: ClassVar[str] = "delays on port: "
    target: ClassVar[type[Service]]
    rtt_ms: ClassVar[float]

    def __init__(self, workspace: Workspace, directory: Path, target: Reachable, rtt_ms: float) -> None:
        super().__init__(workspace, directory)
        self.before, self._rtt_ms = target, rtt_ms

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around.workspace, around.directory, around.server(cls.target), cls.rtt_ms)

    def host_and_port(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    def _arguments(self) -> tuple[str, ...]:
        host, port = self.before.host_and_port()
        # Reuse the previous port if it is free: clients know that address.
        listen = self._port if is_free(self._port) else 0
        return host, str(port), f"{self._rtt_ms:g}", str(listen)


@cache
def delayed(kind: type[Service], milliseconds: float) -> type[DelayProxy]:
    """Return the proxy class that puts a server of `kind` a round trip of `milliseconds` away; cached.

    A user lists it in `needs` next to the server, and connects to its `host_and_port` instead of the server's.
    """

    class Delayed(DelayProxy):
        name: ClassVar[str] = f"{DelayProxy.name}-{kind.name}"
        title: ClassVar[str] = f"{DelayProxy.title} ({kind.title}, {milliseconds:g} ms)"
        needs: ClassVar[tuple[type[Service], ...]] = (kind,)
        target: ClassVar[type[Service]] = kind
        rtt_ms: ClassVar[float] = milliseconds

    return Delayed
