"""Server program that answers every HTTP request on a loopback port immediately with a minimal response.

Standard library only. It reads each request to its end, as any server must before the next one, and inspects only the
method and whether the request is for the catalog's configuration.
"""

from __future__ import annotations

import asyncio
import re

LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
HEAD = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
EMPTY = HEAD % (b"200 OK", 2, b"{}")
SAID = b'{"defaults": {}, "overrides": {}}'
CONFIG = HEAD % (b"200 OK", len(SAID), SAID)
NOTHING = b"HTTP/1.1 204 No Content\r\n\r\n"


class Answer(asyncio.Protocol):
    """One connection: requests are handled one after another, each once it is complete."""

    def __init__(self) -> None:
        self._waiting = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(b"\r\n\r\n")) >= 0:
            head = self._waiting[:end]
            length = LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._waiting) < whole:
                return
            self._waiting = self._waiting[whole:]
            assert self._transport is not None
            self._transport.write(_answer(head))


def _answer(head: bytes) -> bytes:
    if head.startswith(b"HEAD"):
        return NOTHING
    return CONFIG if head.startswith(b"GET /v1/config") else EMPTY


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Answer, "127.0.0.1", 0)
    print(f"answers on port: {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
