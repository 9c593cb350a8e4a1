"""Program that starts Spark applications on request and reports their times: `python -I -S run_applications.py FILE`.

Standard library only. FILE holds, as JSON, the command of an application and its environment. The program serves HTTP
on a loopback port chosen by the kernel. An order posted to /job gets a new application that ends with it, like under a
cluster manager; an order posted to /session goes to an application that is kept. Times are CLOCK_MONOTONIC, which the
application uses too.
"""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

PR_SET_PDEATHSIG = 1
ANSWER = b"answer: "


def die_with_parent() -> None:
    """Have the kernel kill the application when this process ends; called in the child before exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))


class Application:
    """A running application; `asked_ns` is its start time, `ready_ns` the time at which its session was ready."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.asked_ns = time.perf_counter_ns()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, preexec_fn=die_with_parent
        )
        self.ready_ns = self._heard()["ready_ns"]

    def tell(self, order: bytes) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(order + b"\n")
        self._process.stdin.flush()
        return self._heard()

    def end(self) -> None:
        """Close its input, so that it ends by itself; raise RuntimeError on a non-zero exit status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.read()
        if self._process.wait() != 0:
            raise RuntimeError(f"the application ended with status {self._process.returncode}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                return dict(json.loads(line.removeprefix(ANSWER)))
            print(line.decode(errors="replace").rstrip(), flush=True)
        raise RuntimeError(f"the application ended, with status {self._process.wait()}; its output is in this log")


class Asked(BaseHTTPRequestHandler):
    """Request handler that processes one order at a time."""

    command_line: ClassVar[list[str]]
    environment: ClassVar[dict[str, str]]
    kept: ClassVar[list[Application]] = []

    def do_POST(self) -> None:
        order = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            answer = self._session(order) if self.path == "/session" else self._job(order)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        body = json.dumps(answer).encode()
        self.send_response(500 if "error" in answer else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _job(self, order: bytes) -> dict[str, Any]:
        application = Application(self.command_line, self.environment)
        answer = application.tell(order)
        application.end()
        times = {"asked_ns": application.asked_ns, "ready_ns": application.ready_ns}
        return {**answer, **times, "ended_ns": time.perf_counter_ns()}

    def _session(self, order: bytes) -> dict[str, Any]:
        if not self.kept:
            self.kept.append(Application(self.command_line, self.environment))
        try:
            return self.kept[0].tell(order)
        except Exception:
            self.kept.pop().kill()
            raise

    def log_message(self, format: str, *arguments: Any) -> None:
        print(format % arguments, flush=True)


def main() -> None:
    order = json.loads(Path(sys.argv[1]).read_text())
    Asked.command_line, Asked.environment = order["command"], order["environment"]
    server = HTTPServer(("127.0.0.1", 0), Asked)
    print(f"Listens on port: {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
