"""A proxy that puts a server a given time away from its clients: the distance that a loopback address does not have."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol, Self

from tidemark.paths import Workspace
from tidemark.services.base import Service, Surroundings
from tidemark.services.own import OwnProgram
from tidemark.services.programs.process import is_free

PROGRAM = "tidemark.services.delay.program"


class Reachable(Protocol):
    """Whatever takes TCP connections."""

    def host_and_port(self) -> tuple[str, int]:
        """Where; asked for when the proxy starts."""
        ...


class DelayProxy(OwnProgram):
    """On a loopback port, before one server: each byte comes half of `rtt_ms` later, in either direction.

    There is no limit of bandwidth and no loss. `delayed` makes the kind of it that stands before a kind of server.
    Of an exchange of one byte with an echo on loopback (which takes 0.03 ms without it), on two processors with eight
    programs waiting for them, the tenth percentile was 0.19 ms at 0, 1.4 at 1, 5.6 at 5 and 20.7 ms at 20: some 0.2 ms
    are its own, and the rest is what a timer waits for a processor. Nothing comes early.
    """

    name: ClassVar[str] = "delay-proxy"
    title: ClassVar[str] = "Delay proxy"
    is_instrument: ClassVar[bool] = True
    program: ClassVar[Path] = Path(__file__).with_name(f"{PROGRAM.rpartition('.')[2]}.py")
    port_line: ClassVar[str] = "delays on port: "
    target: ClassVar[type[Service]]
    rtt_ms: ClassVar[float]

    def __init__(self, workspace: Workspace, directory: Path, target: Reachable, rtt_ms: float) -> None:
        super().__init__(workspace, directory)
        self.before, self._rtt_ms = target, rtt_ms

    @classmethod
    def from_config(cls, around: Surroundings) -> Self:
        return cls(around.workspace, around.directory, around.server(cls.target), cls.rtt_ms)

    def host_and_port(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    def _arguments(self) -> tuple[str, ...]:
        host, port = self.before.host_and_port()
        # Where it was before, if it ran: its clients know that place.
        listen = self._port if is_free(self._port) else 0
        return host, str(port), f"{self._rtt_ms:g}", str(listen)


@cache
def delayed(kind: type[Service], milliseconds: float) -> type[DelayProxy]:
    """The kind of proxy by which a server of `kind` is a round trip of `milliseconds` away; the same for the same.

    Who wants the distance needs it beside the server, and connects to its `host_and_port` in place of the server's.
    """

    class Delayed(DelayProxy):
        name: ClassVar[str] = f"{DelayProxy.name}-{kind.name}"
        title: ClassVar[str] = f"{DelayProxy.title} ({kind.title}, {milliseconds:g} ms)"
        needs: ClassVar[tuple[type[Service], ...]] = (kind,)
        target: ClassVar[type[Service]] = kind
        rtt_ms: ClassVar[float] = milliseconds

    return Delayed
