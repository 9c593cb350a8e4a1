"""A proxy between a client and a catalog server that injects one fault of a server that loses or doubles objects."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tidemark.services.http import open_url


@contextmanager
def proxy(base: str, fault: str, where: str) -> Iterator[str]:
    """Yield the address of a proxy to the server at `base`; the fault affects requests with `where` in path or body.

    swallow: a request is answered with success and never sent. twice: it is sent again under another name. hide:
    the name is left out of listings. repeat: it is listed twice. drop: an update is sent without the value it sets.
    keep: a deletion is acknowledged and not carried out.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: object) -> None:
            del format, arguments

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def forward(self, body: bytes) -> tuple[int, bytes]:
            headers = {"Content-Type": "application/json"}
            asked = urllib.request.Request(base + self.path, body or None, headers, method=self.command)
            try:
                with open_url(asked, 30) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                return error.code, error.read()

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            meant = where in self.path or where.encode() in body
            if self.command == "POST" and meant and fault == "swallow":
                return self.answer(200, b"{}")
            if self.command == "DELETE" and meant and fault == "keep":
                return self.answer(204, b"")
            if self.command == "POST" and meant and fault == "drop":
                body = body.replace(where.encode(), b"SomethingElse")
            status, said = self.forward(body)
            if self.command == "POST" and meant and fault == "twice":
                self.forward(body.replace(where.encode(), b"Again_" + where.encode()))
            if self.command == "GET" and fault in ("hide", "repeat") and b'"identifiers"' in said:
                found = json.loads(said)
                names = found["identifiers"]
                wanted = [each for each in names if each["name"] == where]
                found["identifiers"] = [each for each in names if each not in wanted] + wanted * 2 * (fault == "repeat")
                said = json.dumps(found).encode()
            return self.answer(status, said)

        do_GET = do_HEAD = do_POST = do_DELETE = handle_any

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
