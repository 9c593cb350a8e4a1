"""Faults of single commits: proxies in threads of this process that lose the answer to one, or the commit itself.

They hit only a request that commits: `PostgresFaults` the COMMIT of a transaction that wrote, `HttpFaults` a request
whose method and path match. They can also cut all of the clients' connections after some time, and tell what that did
to the commit. `CommitKills` kill a client whose commit is a file here: right before it appears, or right after.
"""

from __future__ import annotations

import http.client
import re
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import ClassVar, Self

from tidemark.machine import strace
from tidemark.services.base import Service

AFTER = "after"  # the server commits and answers; the client's connection is closed without the answer
BEFORE = "before"  # the connection is closed, and the server never has the request
TWICE = "twice"  # the request is delivered two times, as by a proxy that replays it; the second answer is given
STATUS = "status"  # the server commits; the client gets 503
LATE = "late"  # the server commits; the client, if it still waits after HELD_S seconds, gets the answer then
RESTART = "restart"  # the server commits, is killed before its answer is passed on, and is started again at once
CUT_OFF = "cut"  # all connections are cut at some moment: before the commit was sent, or AFTER, or once it was ANSWERED
ANSWERED = "answered"
HELD_S = 6.0
UNAVAILABLE = 503
COMMITTED = "COMMIT"  # PostgreSQL's tag for a commit
LONGEST = 200  # characters of a request that are kept
LONGEST_S = 60.0  # wait for the server's answer to a request, or until a server that was killed answers again
WRITES = re.compile(rb"\b(INSERT|UPDATE|DELETE|COPY\b.*\bFROM STDIN)\b", re.IGNORECASE | re.DOTALL)
ENDS = re.compile(rb"(^|;)\s*(COMMIT|END|ROLLBACK)( TRANSACTION)?[\s;\0]*$", re.IGNORECASE)
ENCRYPTION = {80877103, 80877104}  # requests for TLS and for GSSAPI: both are answered with a no
NO_BODY = {204, 304}
OF_ONE_CONNECTION = {"connection", "transfer-encoding", "content-length"}  # headers that are not passed on


@dataclass(frozen=True, slots=True)
class Hit:
    """One commit that was hit."""

    fault: str  # of a CUT: BEFORE, AFTER or ANSWERED
    asked: str  # the request's method and path, or the statement
    answers: tuple[str, ...]  # of the server, in order: COMMITTED, or HTTP's statuses; none if it never had the commit

    @property
    def counts(self) -> bool:
        """True if the server committed, or if it never had the request: what happened then is known."""
        return self.fault == BEFORE or any(each == COMMITTED or each.startswith("2") for each in self.answers[:1])

    @property
    def lost(self) -> bool:
        """True if the server committed and its answer did not reach the client."""
        return self.fault == AFTER and self.counts


class CommitFaults(AbstractContextManager["CommitFaults"]):
    """Faults of single commits."""

    faults: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        self._armed = ""
        self._hits: list[Hit] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def hit_next(self, fault: str) -> None:
        """Hit the next commit with `fault`, one of `faults`."""
        assert fault in self.faults, fault
        self._armed = fault

    def during[T](self, write: Callable[[], T]) -> T:
        """Return what `write` returns; a server that is killed meanwhile is started again."""
        return write()

    def wait(self) -> None:
        """Wait until a server that was killed answers again; most kill none."""

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


class Passing:
    """One client's connection through a proxy."""

    request: socket.socket
    is_cut = False  # nothing that the client sends reaches the server any more
    loses = ""  # request whose answer is not given; the connection is closed once the server has answered

    def drop(self) -> None:
        """Close the connection at once."""
        with suppress(OSError):  # the client has closed it
            self.request.shutdown(socket.SHUT_RDWR)


class _Listener[P: FaultProxy](ThreadingTCPServer):
    daemon_threads = True
    proxy: P


class FaultProxy(CommitFaults):
    """Proxy on a loopback port before a server that listens on `target`; RESTART requires the `server` itself."""

    handler: ClassVar[type[BaseRequestHandler]]  # of its connections

    def __init__(self, target: int, server: Service | None = None) -> None:
        super().__init__()
        self.target, self._server = target, server
        self._up, self._woken, self._killing = threading.Event(), threading.Event(), threading.Lock()
        self._up.set()
        self._cutter: threading.Timer | None = None
        self._passing: set[Passing] = set()
        self._committer: Passing | None = None  # connection of the commit that was sent since the last `take`
        self._asked = ""  # that commit
        self._answers: tuple[object, ...] = ()  # the server's, once they were given
        self._listener = _Listener[FaultProxy](("127.0.0.1", 0), self.handler)
        self._listener.proxy = self
        self._thread = threading.Thread(target=self._listener.serve_forever, daemon=True)

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

    def during[T](self, write: Callable[[], T]) -> T:
        """Return what `write` returns; a server that is killed meanwhile is started again, by the calling thread."""
        if self._armed != RESTART:
            return write()
        self._woken.clear()
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(write)
            written.add_done_callback(lambda _: self._woken.set())
            self._woken.wait()
            with self._killing:
                if not self._up.is_set() and self._server is not None:
                    self._server.start()
                    self.target = self._server.host_and_port()[1]
                    self._up.set()
            return written.result()

    def wait(self) -> None:
        self._up.wait(LONGEST_S)

    def kill(self) -> None:
        """Kill the server; `during` starts it again."""
        assert self._server is not None, f"{RESTART} requires a server that was started here"
        with self._killing:
            self._up.clear()
            self._server.kill()
        self._woken.set()

    def cut_after(self, seconds: float) -> None:
        """Cut the connections that there are after `seconds`, unless `take` comes first."""
        self._cutter = threading.Timer(seconds, self._cut)
        self._cutter.daemon = True
        self._cutter.start()

    def _cut(self) -> None:
        with self._lock:
            if self._cutter is None:  # too late
                return
            self._cutter, sent = None, self._committer
            if sent is not None and not self._answers:
                sent.loses = self._asked  # noted once the server has answered
            else:
                fault = BEFORE if sent is None else ANSWERED
                self._hits.append(Hit(fault, self._asked[:LONGEST], tuple(map(str, self._answers))))
            for each in self._passing:
                each.is_cut = True
                if not each.loses:
                    each.drop()

    def take(self) -> list[Hit]:
        with self._lock:
            if self._cutter is not None:
                self._cutter.cancel()
            self._cutter, self._committer, self._asked, self._answers = None, None, "", ()
        return super().take()

    @contextmanager
    def passing(self, connection: Passing) -> Iterator[None]:
        """Cut `connection` with the others while it lasts."""
        with self._lock:
            self._passing.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._passing.discard(connection)

    def sends(self, connection: Passing, asked: str) -> bool:
        """Note that a commit is about to be sent; return False if its connection was cut before."""
        with self._lock:
            if not connection.is_cut and self._committer is None:
                self._committer, self._asked = connection, asked
            return not connection.is_cut

    def gives(self, connection: Passing, give: Callable[[], None], *answers: object) -> bool:
        """Have `give` give the answers to a commit; return False if they are to be lost."""
        with self._lock:  # no cut comes in between
            if connection.loses:
                return False
            give()
            if connection is self._committer:
                self._answers = answers
            return True


class _Session(BaseRequestHandler, Passing):
    """One client's connection, and the one to the server."""

    server: _Listener[PostgresFaults]

    def handle(self) -> None:
        self._wrote, self._fault, self._commits = False, "", False
        try:
            self._upstream = socket.create_connection(("127.0.0.1", self.server.proxy.target))
        except ConnectionRefusedError:  # the server was killed
            return
        for each in (self.request, self._upstream):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=self._carry, args=(self._answers,), daemon=True)
        with self.server.proxy.passing(self), self._upstream:
            back.start()
            self._carry(self._requests)
            back.join()

    def _carry(self, work: Callable[[], None]) -> None:
        with suppress(OSError):  # one of the two has gone
            work()
        for each in (self.request, self._upstream):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

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
        fault = (proxy := self.server.proxy).due()
        if fault == BEFORE:
            proxy.note(BEFORE, COMMITTED)
            return True
        if fault:
            self._fault, self.loses = fault, COMMITTED
        self._commits = True
        return not proxy.sends(self, COMMITTED)

    def _answers(self) -> None:
        proxy, tag, held = self.server.proxy, "", b""
        while True:
            kind, whole = _message(self._upstream)
            if not self._commits:
                self.request.sendall(whole)
                continue
            held += whole  # until the server waits for the next statement, or has refused this one
            if kind == b"C":
                tag = whole[5:-1].decode()
            elif kind == b"Z" or (kind == b"E" and not self.loses):
                self._commits, message, held = False, held, b""
                if not proxy.gives(self, partial(self.request.sendall, message), tag):
                    proxy.note(self._fault or AFTER, self.loses, tag)
                    if self._fault == RESTART:
                        proxy.kill()
                    return


class PostgresFaults(FaultProxy):
    """Proxy before PostgreSQL; connections through it are not encrypted."""

    faults = (AFTER, BEFORE, RESTART)
    handler = _Session


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


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Request(BaseHTTPRequestHandler, Passing):
    protocol_version = "HTTP/1.1"
    server: _Listener[HttpFaults]

    def handle(self) -> None:
        with self.server.proxy.passing(self), suppress(ConnectionError, ValueError):  # cut while a request was read
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _pass(self) -> None:
        asked, body, proxy = f"{self.command} {self.path}", self._body(), self.server.proxy
        commits = bool(proxy.commits.search(asked))
        fault = proxy.due() if commits else ""
        if fault == BEFORE:
            proxy.note(fault, asked)
            return self._close()
        if self.is_cut or (commits and not proxy.sends(self, asked)):
            return self._close()
        try:
            answers = [self._ask(body) for _ in range(2 if fault == TWICE else 1)]
        except (OSError, http.client.HTTPException):  # the server was killed
            return self._close()
        statuses = [each.status for each in answers]
        if not fault:
            give = partial(self._give, answers[0])
            if not commits:
                return give()
            if not proxy.gives(self, give, *statuses):
                proxy.note(AFTER, asked, *statuses)
                self._close()
            return None
        proxy.note(fault, asked, *statuses)
        if fault == RESTART:
            proxy.kill()
        if fault in (AFTER, RESTART) or (fault == LATE and self._is_left()):
            return self._close()
        return self._give(_Answer(UNAVAILABLE, "Service Unavailable", (), b"") if fault == STATUS else answers[-1])

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
        self.drop()


class HttpFaults(FaultProxy):
    """Proxy before an HTTP server; `commits` matches "METHOD path" of a request that commits.

    A request reaches the server on a connection of its own, with all headers as they are, so that signatures hold.
    """

    faults = (AFTER, BEFORE, TWICE, STATUS, LATE, RESTART)
    handler = _Request

    def __init__(self, target: int, commits: str, held_s: float = HELD_S, server: Service | None = None) -> None:
        super().__init__(target, server)
        self.commits, self.held_s = re.compile(commits), held_s


LINKS, REMOVALS = ("link", "linkat"), ("unlink", "unlinkat")
KILLED = "killed by SIGKILL"  # in a recording of strace


class CommitKills(CommitFaults):
    """Kills of a client's process, which commits by a link to a file, and then removes the file's first name.

    BEFORE: as it calls for the link, which is not made. AFTER: as it calls for the removal: the commit is there, which
    the client's caller does not learn.
    """

    faults = (AFTER, BEFORE)

    def __init__(self, folder: Path) -> None:
        """Set up kills of no client yet; `folder` is for the recordings."""
        super().__init__()
        self._client, self._record, self._tracer = 0, folder / ".commit.strace", ExitStack()

    def of(self, client: int) -> None:
        """Have all later kills be of the process `client`."""
        self._client = client

    def hit_next(self, fault: str) -> None:
        super().hit_next(fault)
        fatal = LINKS if fault == BEFORE else REMOVALS
        self._tracer.enter_context(strace.killing(self._client, fatal, {*LINKS, *REMOVALS}, self._record))

    def take(self) -> list[Hit]:
        self._tracer.close()
        lines = self._record.read_text(errors="replace").splitlines() if (fault := self.due()) else []
        if any(KILLED in line for line in lines):
            linked = [call.text for call in strace.completed(lines) if call.name in LINKS]
            self.note(fault, " ".join(linked), *(COMMITTED for _ in linked))
        return super().take()

    def __exit__(self, *_: object) -> None:
        self._tracer.close()
