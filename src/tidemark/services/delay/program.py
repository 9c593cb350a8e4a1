"""A program of its own: a TCP proxy on loopback whose other side is a given time away.

    python -I -S program.py HOST PORT RTT_MS LISTEN

Standard library only. What comes from one side is given to the other half a round trip later, in the order in which it
came: a delay line in each direction, without a limit of bandwidth and without loss. A connection costs a round trip
before its first byte, as TCP's handshake does; the kernel answers `connect` at once, so it shows in the first answer.
At 0 ms all is passed on as it comes: what that costs is the proxy's own.

It waits by select(2), whose timeouts have microseconds where those of epoll have milliseconds: some 500 connections at
once are the most that it takes.
"""

from __future__ import annotations

import asyncio
import ctypes
import selectors
import sys
from collections import deque
from collections.abc import Callable

PR_SET_TIMERSLACK = 29
BUFFER_BYTES = 1 << 20  # that one side may be behind with before the other is no longer read


class Line:
    """One direction: what is `put` is written to a sink later, which may come when something is in it already."""

    def __init__(self, delay_s: float, ended: Callable[[], None]) -> None:
        """`ended` is called once the end has been delivered."""
        self._loop, self._delay_s, self._ended = asyncio.get_running_loop(), delay_s, ended
        self._waiting: deque[tuple[float, bytes]] = deque()  # when it is due, and what; nothing at all is its end
        self._sink: asyncio.WriteTransport | None = None
        self.has_ended = False

    def put(self, data: bytes, not_before: float = 0.0) -> None:
        """`not_before`: when it is sent at the earliest, by the loop's clock."""
        if self._delay_s == 0 and self._sink is not None and not self._waiting:
            self._write(data)
            return
        self._waiting.append((max(self._loop.time(), not_before) + self._delay_s, data))
        if len(self._waiting) == 1 and self._sink is not None:
            self._wait()

    def open(self, sink: asyncio.WriteTransport) -> None:
        self._sink = sink
        if self._waiting:
            self._wait()

    def _wait(self) -> None:
        self._loop.call_at(self._waiting[0][0], self._deliver)

    def _deliver(self) -> None:
        now = self._loop.time()
        self._write(self._waiting.popleft()[1])
        while self._waiting and self._waiting[0][0] <= now:
            self._write(self._waiting.popleft()[1])
        if self._waiting:
            self._wait()

    def _write(self, data: bytes) -> None:
        assert self._sink is not None
        if not data:
            self.has_ended = True
            self._ended()
        if self._sink.is_closing():
            return
        if data:
            self._sink.write(data)
        else:
            self._sink.write_eof()


class Side(asyncio.Protocol):
    """One of the two sides of a connection: what it says goes into the line to the other."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s, self.line, self.opened = delay_s, Line(delay_s, self._close_both), 0.0
        self.other: Side | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        self.line.put(data, self.opened)

    def eof_received(self) -> bool:
        self.line.put(b"", self.opened)
        return True  # the other may still have something to say

    def _close_both(self) -> None:
        """Where both have said all, and heard it."""
        if self.other is not None and self.line.has_ended and self.other.line.has_ended:
            self.close()
            self.other.close()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """The other learns of it as late as of all else."""
        del error
        if self.other is not None:
            asyncio.get_running_loop().call_later(self.delay_s, self.other.close)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()


class Client(Side):
    """Who connected to us: what it wants to reach is connected to as soon as its handshake would have been over."""

    def __init__(self, host: str, port: int, delay_s: float) -> None:
        super().__init__(delay_s)
        self._place = host, port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self.opened = loop.time() + 2 * self.delay_s
        self._reaching = loop.create_task(self._reach(3 * self.delay_s))

    async def _reach(self, wait_s: float) -> None:
        if wait_s:
            await asyncio.sleep(wait_s)
        server = Side(self.delay_s)
        server.other = self
        assert self.transport is not None
        try:
            await asyncio.get_running_loop().create_connection(lambda: server, *self._place)
        except OSError as error:
            print(f"not reached: {error}", file=sys.stderr, flush=True)
            self.transport.abort()
            return
        assert server.transport is not None
        self.other = server
        server.line.open(self.transport)
        self.line.open(server.transport)
        if self.transport.is_closing():
            server.close()


async def serve(host: str, port: int, delay_s: float, listen: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Client(host, port, delay_s), "127.0.0.1", listen)
    print(f"delays on port: {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    host, port, rtt_ms, listen = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    # Timers to the nanosecond, in place of the kernel's usual 50 microseconds.
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(serve(host, port, rtt_ms / 2000, listen))


if __name__ == "__main__":
    main()
