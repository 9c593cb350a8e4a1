"""Proxies in threads of this process that lose the answer to one commit, or the commit itself.

They know the protocol behind them, and hit only a request that commits: `PostgresFaults` the COMMIT of a transaction
that wrote, `HttpFaults` a request whose method and path match. All else passes as it is.
"""

from __future__ import annotations

import http.client
import re
import select
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, TCPServer, ThreadingTCPServer
from typing import ClassVar, Self

AFTER = "after"  # the server commits and answers; the client's connection is closed without the answer
BEFORE = "before"  # the connection is closed, and the server never has the request
TWICE = "twice"  # the request is delivered two times, as by a proxy that replays it; the second answer is given
STATUS = "status"  # the server commits; the client gets 503
LATE = "late"  # the server commits; the client, if it still waits after HELD_S seconds, gets the answer then
HELD_S = 6.0
UNAVAILABLE = 503
COMMITTED = "COMMIT"  # PostgreSQL's tag for a commit
LONGEST = 200  # characters of a request that are kept
LONGEST_S = 60.0  # wait for the server's answer to a request
WRITES = re.compile(rb"\b(INSERT|UPDATE|DELETE|COPY\b.*\bFROM STDIN)\b", re.IGNORECASE | re.DOTALL)
ENDS = re.compile(rb"(^|;)\s*(COMMIT|END|ROLLBACK)( TRANSACTION)?[\s;\0]*$", re.IGNORECASE)
ENCRYPTION = {80877103, 80877104}  # requests for TLS and for GSSAPI: both are answered with a no
NO_BODY = {204, 304}
OF_ONE_CONNECTION = {"connection", "transfer-encoding", "content-length"}  # headers that are not passed on


@dataclass(frozen=True, slots=True)
class Hit:
    """One commit that was hit."""

    fault: str
    asked: str  # the request's method and path, or the statement
    answers: tuple[str, ...]  # of the server, in order: COMMITTED, or HTTP's statuses; none if it never had the commit

    @property
    def counts(self) -> bool:
        """True if the server committed, or if it never had the request: what happened then is known."""
        return self.fault == BEFORE or any(each == COMMITTED or each.startswith("2") for each in self.answers[:1])


class CommitFaults(ABC):
    """Faults of single commits; a context manager."""

    faults: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        self._armed = ""
        self._hits: list[Hit] = []
        self._lock = threading.Lock()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    def hit_next(self, fault: str) -> None:
        """Hit the next commit with `fault`, one of `faults`."""
        assert fault in self.faults, fault
        self._armed = fault

    def take(self) -> list[Hit]:
        """Return the hits since the last call; a commit that has not come yet is not hit any more."""
        with self._lock:
            self._armed, hits = "", self._hits
            self._hits = []
            return hits

    def due(self) -> str:
        """Return the fault for a commit that has come, or nothing; the next commit is not hit."""
        with self._lock:
            fault, self._armed = self._armed, ""
            return fault

    def note(self, fault: str, asked: str, *answers: object) -> None:
        with self._lock:
            self._hits.append(Hit(fault, asked[:LONGEST], tuple(map(str, answers))))


class FaultProxy(CommitFaults):
    """Proxy on a loopback port before a server that listens on `target`."""

    def __init__(self, target: int) -> None:
        super().__init__()
        self.target = target
        self._listener = self._listen()
        self._thread = threading.Thread(target=self._listener.serve_forever, daemon=True)

    @abstractmethod
    def _listen(self) -> TCPServer: ...

    @property
    def port(self) -> int:
        return int(self._listener.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()


class PostgresFaults(FaultProxy):
    """Proxy before PostgreSQL; connections through it are not encrypted."""

    faults = (AFTER, BEFORE)

    def _listen(self) -> TCPServer:
        listener = _Sessions(("127.0.0.1", 0), _Session)
        listener.proxy = self
        return listener


class _Sessions(ThreadingTCPServer):
    daemon_threads = True
    proxy: PostgresFaults


class _Session(BaseRequestHandler):
    """One client's connection, and the one to the server."""

    server: _Sessions

    def handle(self) -> None:
        self._wrote, self._loses = False, ""
        self._upstream = socket.create_connection(("127.0.0.1", self.server.proxy.target))
        for each in (self.request, self._upstream):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=self._carry, args=(self._answers,), daemon=True)
        back.start()
        self._carry(self._requests)
        back.join()

    def _carry(self, work: Callable[[], None]) -> None:
        with suppress(OSError):  # one of the two has gone
            work()
        for each in (self.request, self._upstream):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        self._upstream.close()

    def _requests(self) -> None:
        while True:  # the first message has no type
            size = _exactly(self.request, 4)
            body = _exactly(self.request, struct.unpack("!I", size)[0] - 4)
            if struct.unpack("!I", body[:4])[0] not in ENCRYPTION:
                break
            self.request.sendall(b"N")
        self._upstream.sendall(size + body)
        while True:
            kind, whole = _message(self.request)
            if kind in (b"Q", b"P") and self._is_cut(
                whole[5:] if kind == b"Q" else whole[whole.index(b"\0", 5) + 1 :]  # after the name of a prepared one
            ):
                return
            self._upstream.sendall(whole)

    def _is_cut(self, statement: bytes) -> bool:
        """Return True if `statement` commits and is not to reach the server."""
        if WRITES.search(statement):
            self._wrote = True
        if not (ends := ENDS.search(statement)):
            return False
        wrote, self._wrote = self._wrote, False
        if not wrote or ends[2].upper() == b"ROLLBACK":
            return False
        fault = self.server.proxy.due()
        if fault == AFTER:
            self._loses = "COMMIT"
        elif fault == BEFORE:
            self.server.proxy.note(BEFORE, "COMMIT")
        return fault == BEFORE

    def _answers(self) -> None:
        tag = ""
        while True:
            kind, whole = _message(self._upstream)
            if not self._loses:
                self.request.sendall(whole)
            elif kind == b"C":
                tag = whole[5:-1].decode()
            elif kind == b"Z":  # the server waits for the next statement
                self.server.proxy.note(AFTER, self._loses, tag)
                return


def _exactly(source: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = source.recv(size - len(parts))
        if not part:
            raise OSError("the other side has closed")
        parts += part
    return parts


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    """Return the type of the next message, and all of it."""
    head = _exactly(source, 5)
    return head[:1], head + _exactly(source, struct.unpack("!I", head[1:])[0] - 4)


class HttpFaults(FaultProxy):
    """Proxy before an HTTP server; `commits` matches "METHOD path" of a request that commits.

    A request reaches the server on a connection of its own, with all headers as they are, so that signatures hold.
    """

    faults = (AFTER, BEFORE, TWICE, STATUS, LATE)

    def __init__(self, target: int, commits: str, held_s: float = HELD_S) -> None:
        super().__init__(target)
        self.commits, self.held_s = re.compile(commits), held_s

    def _listen(self) -> TCPServer:
        listener = _Requests(("127.0.0.1", 0), _Request)
        listener.proxy = self
        return listener


class _Requests(ThreadingHTTPServer):
    daemon_threads = True
    proxy: HttpFaults


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Requests

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _pass(self) -> None:
        asked, body, proxy = f"{self.command} {self.path}", self._body(), self.server.proxy
        fault = proxy.due() if proxy.commits.search(asked) else ""
        if fault == BEFORE:
            proxy.note(fault, asked)
            return self._close()
        answers = [self._ask(body) for _ in range(2 if fault == TWICE else 1)]
        if fault:
            proxy.note(fault, asked, *(each.status for each in answers))
        if fault == AFTER or (fault == LATE and self._is_left()):
            return self._close()
        unavailable = _Answer(UNAVAILABLE, "Service Unavailable", (), b"")
        return self._give(unavailable if fault == STATUS else answers[-1])

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass

    def _is_left(self) -> bool:
        """Return True as soon as the client has closed its connection, and False if it waits for `held_s` seconds."""
        return bool(select.select([self.connection], [], [], self.server.proxy.held_s)[0])

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def _ask(self, body: bytes) -> _Answer:
        """Return the server's answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.proxy.target, timeout=LONGEST_S)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in {*OF_ONE_CONNECTION, "expect"}:
                connection.putheader(name, value)
        if body or "Content-Length" in self.headers:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        given = _Answer(answer.status, answer.reason, tuple(answer.getheaders()), answer.read())
        connection.close()
        return given

    def _give(self, answer: _Answer) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.headers:
            if name.lower() not in OF_ONE_CONNECTION:
                self.send_header(name, value)
        length = {name.lower(): value for name, value in answer.headers}.get("content-length", "0")
        if answer.status not in NO_BODY:
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(answer.body)))
        with suppress(ConnectionError):  # the client waits no longer
            self.end_headers()
            self.wfile.write(answer.body)

    def _close(self) -> None:
        self.close_connection = True
        with suppress(OSError):  # the client has closed it
            self.connection.shutdown(socket.SHUT_RDWR)
