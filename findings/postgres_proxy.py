"""A proxy on loopback between PostgreSQL and its clients, for the scripts in this folder that drop an answer.

It reads the frames of the protocol. After `lose_answer`, it forwards the next COMMIT of a transaction that wrote, waits
for the server's answer, and closes the client's connection instead of passing it on. `hits` holds the answers that were
dropped. `words` replaces texts in error messages, as a server in another language would send them.
"""

import re
import socket
import struct
import threading
from contextlib import suppress

WRITES = re.compile(rb"\b(INSERT|UPDATE|DELETE|COPY\b.*\bFROM STDIN)\b", re.IGNORECASE | re.DOTALL)
ENDS = re.compile(rb"(^|;)\s*(COMMIT|END|ROLLBACK)( TRANSACTION)?[\s;\0]*$", re.IGNORECASE)
NOT_ENCRYPTED = {80877103, 80877104}  # requests for TLS and for GSSAPI: both are answered with a no


class Connection:
    """One client's connection, and the one to the server that is its other half."""

    def __init__(self, proxy: "Proxy", client: socket.socket) -> None:
        self.proxy, self.client = proxy, client
        self.server = socket.create_connection(("127.0.0.1", proxy.server_port))
        self.wrote, self.lost = False, False
        for each in (client, self.server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for work in (self.requests, self.answers):
            threading.Thread(target=self.carry, args=(work,), daemon=True).start()

    def carry(self, work) -> None:
        with suppress(OSError):  # one of the two has gone
            work()
        self.close()

    def close(self) -> None:
        for each in (self.client, self.server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.proxy.open.discard(self)

    def requests(self) -> None:
        while True:  # the first message has no type
            size = exactly(self.client, 4)
            body = exactly(self.client, struct.unpack("!I", size)[0] - 4)
            if struct.unpack("!I", body[:4])[0] not in NOT_ENCRYPTED:
                break
            self.client.sendall(b"N")
        self.server.sendall(size + body)
        while True:
            kind, whole = frame(self.client)
            if kind in (b"Q", b"P"):
                self.statement(whole[5:] if kind == b"Q" else whole[whole.index(b"\0", 5) + 1 :])
            self.server.sendall(whole)

    def statement(self, text: bytes) -> None:
        if WRITES.search(text):
            self.wrote = True
        if ends := ENDS.search(text):
            if self.wrote and ends[2].upper() != b"ROLLBACK" and self.proxy.armed:
                self.lost, self.proxy.armed = True, False
            self.wrote = False

    def answers(self) -> None:
        held = []
        while True:
            kind, whole = frame(self.server)
            if kind == b"E":
                whole = translated(whole, self.proxy.words)
            held.append(whole)
            if self.lost and kind == b"C":
                tag = whole[5:-1].decode()
            if kind == b"Z" and self.lost:
                self.proxy.hits.append(tag)
                return
            if not self.lost:
                self.client.sendall(b"".join(held))
                held.clear()


class Proxy:
    """Listens on `port` until `close`; `hits` are the server's answers that no client was given."""

    def __init__(self, server_port: int) -> None:
        self.server_port, self.armed = server_port, False
        self.hits: list[str] = []
        self.words: list[tuple[str, str]] = []
        self.open: set[Connection] = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
                self.open.add(Connection(self, client))
            except OSError:
                return

    def lose_answer(self) -> None:
        """Lose the answer to the next COMMIT of a transaction that wrote."""
        self.armed = True

    def take_hits(self) -> list[str]:
        """Return what the server answered since this was asked last; what was armed and did not happen is off."""
        taken, self.hits, self.armed = self.hits, [], False
        return taken

    def close(self) -> None:
        self.listener.close()
        for each in list(self.open):
            each.close()


def exactly(source: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = source.recv(size - len(parts))
        if not part:
            raise OSError("the other side has closed")
        parts += part
    return parts


def frame(source: socket.socket) -> tuple[bytes, bytes]:
    """Return the type of the next message, and all of it."""
    head = exactly(source, 5)
    return head[:1], head + exactly(source, struct.unpack("!I", head[1:])[0] - 4)


def translated(error: bytes, words: list[tuple[str, str]]) -> bytes:
    """Return an error's frame with each pattern of `words` in its message replaced by its text."""
    fields = error[5:].split(b"\0")
    for number, field in enumerate(fields):
        for pattern, text in words if field[:1] == b"M" else ():
            field = field[:1] + re.sub(pattern, text, field[1:].decode()).encode()
        fields[number] = field
    body = b"\0".join(fields)
    return b"E" + struct.pack("!I", len(body) + 4) + body
