"""A TCP proxy on loopback, run as a separate program, that adds a round-trip time to one server.

    python -I -S delay.py HOST PORT RTT_MS LISTEN

Standard library only. Data from one side is delivered to the other half a round trip later, in order: one delay line
per direction, without bandwidth limit and without loss. A connection costs one round trip before its first byte, like
TCP's handshake; because the kernel completes `connect` at once, this delay shows in the first response.
At 0 ms data is passed on as it arrives, so the cost measured there is the proxy's own.

The event loop uses select(2), whose timeouts have microsecond resolution while those of epoll have milliseconds. This
limits the proxy to about 500 concurrent connections.
"""

from __future__ import annotations

import asyncio
import ctypes
import selectors
import sys
from collections import deque
from collections.abc import Callable

PR_SET_TIMERSLACK = 29
BUFFER_BYTES = 1 << 20  # high-water mark of one side's unsent data; above it the other side is not read


class Line:
    """Delay line of one direction: data passed to `put` is written to a sink later; `open` may set it after data."""

    def __init__(self, delay_s: float, ended: Callable[[], None]) -> None:
        """Create an empty line; `ended` is called once the end of the stream has been delivered."""
        self._loop, self._delay_s, self._ended = asyncio.get_running_loop(), delay_s, ended
        self._waiting: deque[tuple[float, bytes]] = deque()  # (due time, data); empty data marks the end of the stream
        self._sink: asyncio.WriteTransport | None = None
        self.has_ended = False

    def put(self, data: bytes, not_before: float = 0.0) -> None:
        """Queue `data`; `not_before` is the earliest time to send it, on the loop's clock."""
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
    """One of the two sides of a connection; data received here goes into the line to the other side."""

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
        return True  # keep the connection half-open: the other side may still send

    def _close_both(self) -> None:
        """Close both sides once both have sent everything and both ends were delivered."""
        if self.other is not None and self.line.has_ended and self.other.line.has_ended:
            self.close()
            self.other.close()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Close the other side after the same delay that data has."""
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
    """The client's side; it connects to the server once a handshake over the delayed link would have finished."""

    beyond: type[Side] = Side  # the server's side

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
        server = self.beyond(self.delay_s)
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
    # Timer slack of 1 nanosecond instead of the kernel's default of 50 microseconds.
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(serve(host, port, rtt_ms / 2000, listen))


if __name__ == "__main__":
    main()
