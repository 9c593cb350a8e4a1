"""An HTTP proxy on loopback that loses the answer to one request, for the scripts of this folder.

It passes whole requests and whole answers on, headers as they are (signatures stay valid), one connection to the
server for each. `Proxy.next_is` arms it for the next request that matches; what happened to that request stands in
`hits`, with the status that the server gave. It runs in threads of the process that uses it.
"""

import contextlib
import http.client
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UNAVAILABLE = 503


class Proxy:
    """Passes requests on to `host`:`port`; the address of clients is `127.0.0.1:port` of this object."""

    def __init__(self, host: str, port: int) -> None:
        self.upstream = (host, port)
        self.hits: list[dict] = []  # of each armed request: fault, request line, statuses of the server
        self._armed: tuple[str, re.Pattern[str], Callable[[], None] | None] | None = None
        self._refuse: tuple[re.Pattern[str], float] | None = None
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next_is(self, fault: str, request: str, between: Callable[[], None] | None = None) -> None:
        """Apply `fault`, which may be "" for none, to the next request whose "METHOD path" matches `request`.

        lost: the server answers, and the client's connection is closed without the answer. cut: the connection is
        closed and the server gets nothing. twice: the request is delivered two times and the second answer is given,
        as a proxy that replays does. outage: as lost, and then the same request is refused with 503 until `between` is
        done. late: the answer is given once `between` is done. `between` is called after the first delivery.
        """
        self._armed = (fault, re.compile(request), between) if fault else None

    def take(self, request: str) -> tuple[str, Callable[[], None] | None]:
        """Return the fault that is due for `request`, and disarm it; "" for none."""
        with self._lock:
            if self._armed and self._armed[1].search(request):
                fault, pattern, between = self._armed
                self._armed = None
                if fault == "outage":
                    self._refuse = (pattern, time.monotonic() + 60)
                return fault, between
            return "", None

    def is_down(self, request: str) -> bool:
        refuse = self._refuse
        return refuse is not None and bool(refuse[0].search(request)) and time.monotonic() < refuse[1]

    def end_outage(self) -> None:
        self._refuse = None


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

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

        def _ask(self, body: bytes) -> tuple[int, str, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(*proxy.upstream, timeout=60)
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "expect", "content-length"):
                    connection.putheader(name, value)
            if body or "Content-Length" in self.headers:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            given = answer.status, answer.reason, answer.getheaders(), answer.read()
            connection.close()
            return given

        def _pass(self) -> None:
            request, body = f"{self.command} {self.path}", self._body()
            if proxy.is_down(request):
                return self._give((UNAVAILABLE, "Service Unavailable", [], b""))
            fault, between = proxy.take(request)
            hit = {"fault": fault, "request": request[:200], "server answered": []}
            if fault:
                proxy.hits.append(hit)
            if fault == "cut":
                return self._close()
            given = self._ask(body)
            hit["server answered"].append(given[0])
            if between and fault != "outage":
                between()
            if fault == "twice":
                given = self._ask(body)
                hit["server answered"].append(given[0])
            if fault in ("lost", "outage"):
                self._close()
                if fault == "outage":
                    if between:
                        between()
                    proxy.end_outage()
                return None
            return self._give(given)

        def _give(self, given: tuple[int, str, list[tuple[str, str]], bytes]) -> None:
            status, reason, headers, body = given
            self.send_response_only(status, reason)
            for name, value in headers:
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length", "0")
            if status not in (204, 304):
                self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
            with contextlib.suppress(ConnectionError):  # the client waits no longer
                self.end_headers()
                self.wfile.write(body)

        def _close(self) -> None:
            self.close_connection = True
            self.connection.shutdown(2)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass

    return Handler
