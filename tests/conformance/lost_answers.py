"""A proxy before PostgreSQL that loses the answer to a commit: the server commits, the client never learns of it."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

READ_BYTES = 1 << 16
QUERY = b"Q"  # first byte of such a message in PostgreSQL's protocol
RESET = struct.pack("ii", 1, 0)  # closing a socket with this notifies the other side at once


class LostAnswers:
    """Proxy that, if `armed`, drops the next commit's answer together with its connection; `lost` counts the drops.

    If `forwards` is False, the connection ends before the server receives the commit.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.armed = False
        self.forwards = True
        self.lost = 0

    def serve(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(self._server)
            loses = threading.Event()
            for work in (self._forward, self._back):
                threading.Thread(target=work, args=(client, server, loses), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket, loses: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(READ_BYTES):
                if self.armed and data.startswith(QUERY) and b"COMMIT" in data.upper():
                    self.armed = False
                    loses.set()
                    if not self.forwards:
                        break
                server.sendall(data)
        _end(server)

    def _back(self, client: socket.socket, server: socket.socket, loses: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(READ_BYTES):
                if loses.is_set():  # the server has answered, so it has executed the request
                    self.lost += 1
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    break
                client.sendall(data)
        _end(client)
        _end(server)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def losing_answers(server: tuple[str, int]) -> Iterator[LostAnswers]:
    proxy = LostAnswers(server)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()
