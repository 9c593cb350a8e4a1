"""A supervised child process: its output goes to a log, it is reliably stopped, and it never outlives Tidemark."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from tidemark.errors import DiskFull, ServiceError
from tidemark.machine.child import how_ended
from tidemark.machine.processes import cpu_seconds, total
from tidemark.paths import private_directory

LAUNCHER = Path(__file__).with_name("launch.py")
NOBODY = 65534


def unprivileged_account() -> int | None:
    """Return the uid that servers run as if Tidemark is root; None if it is not, and they run as the same user."""
    return NOBODY if os.geteuid() == 0 else None


def server_environment(**added: str) -> dict[str, str]:
    """Return the environment of a server: the same on every machine, plus `added`.

    Only PATH is inherited; variables such as JAVA_TOOL_OPTIONS or PGPORT would change what is measured.
    """
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC", **added}


def launched(command: Sequence[object], account: int | None = None) -> list[str]:
    """Return the arguments that start `command`, as `account` (a uid) if given; it ends with the calling thread."""
    launch = (sys.executable, "-I", "-S", LAUNCHER, os.getpid(), "-" if account is None else account)
    return [str(part) for part in (*launch, *command)]


def give(path: Path) -> Path:
    """Give the file or folder `path` to the servers' account, which differs from Tidemark's if that is root."""
    account = unprivileged_account()
    if account is not None:
        os.chown(path, account, account)
    return path


def write_private(path: Path, content: str) -> Path:
    """Create a file that only its owner, the account that servers run as, can read."""
    private_directory(path.parent)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)
    return give(path)


def free_ports(count: int) -> list[int]:
    """Return `count` different free loopback ports; another process may take one before it is used."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def is_free(port: int) -> bool:
    """Return True if no process listens on the loopback port; False for 0."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ignore connections in TIME_WAIT
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return port != 0


def same_or_free(port: int) -> int:
    """Return `port` if it is free, because clients of the last start know that address; else a free one."""
    return port if is_free(port) else free_ports(1)[0]


MOST_BYTES = 1 << 20  # at the end of a log that are read
LEAST_ROOM = 16 << 20  # bytes; with less free space the disk counts as full, whatever the log contains


def tail(path: Path, lines: int = 20) -> str:
    """Return the last `lines` lines of a log, reading at most its last megabyte."""
    return "\n".join(_end(path).splitlines()[-lines:])


def _end(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MOST_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


class Child:
    """A running program, created by `Child.start`; `stop` ends it and all processes that it started."""

    def __init__(self, what: str, process: subprocess.Popen[bytes], log_path: Path) -> None:
        self.what, self.log_path = what, log_path
        self._process = process

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Pickle as None: in another process a server has no process of its own."""
        return type(None), ()

    @classmethod
    def start(
        cls,
        what: str,
        command: Sequence[str | Path],
        log_path: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        account: int | None = None,
    ) -> Child:
        """Start `command` in a new session in `cwd`, by default the folder of `log_path`, which gets its output.

        `what` names it in messages. It has exactly the environment `env`, by default that of `server_environment`. With
        `account` (a uid; requires root) it runs as that account. The kernel kills it when the calling *thread* ends for
        any reason; therefore only the main thread may call. Raise ServiceError in any other thread.
        """
        if threading.current_thread() is not threading.main_thread():
            raise ServiceError(f"{what}: a server is started from the main thread, whose end is also its own.")
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                launched(command, account),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=server_environment() if env is None else env,
                cwd=cwd or log_path.parent,
                start_new_session=True,
            )
        return cls(what, process, log_path)

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status (negative: the signal that ended it), or None while it runs."""
        return self._process.poll()

    def tail(self, lines: int = 20) -> str:
        return tail(self.log_path, lines)

    def pids(self) -> list[int]:
        """Return the ids of its process and all descendants that are running."""
        return [process.pid for process in self._family()]

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of its running processes so far, including their ended children."""
        return total(cpu_seconds, self.pids()) or 0.0

    def check(self) -> None:
        """Raise ServiceError if it has ended, or DiskFull if its log reports a full disk."""
        if self.poll() is not None:
            raise self.failure("ended on its own")

    def failure(self, happened: str) -> ServiceError | DiskFull:
        """Return an exception with the program's name, what happened, its exit status, and the end of its log."""
        status = self.poll()
        state = "still running" if status is None else how_ended(status)
        text = self.tail() or "(it is empty)"
        # A server may log many lines after a failed write, or may have no space left for its log either.
        free = shutil.disk_usage(self.log_path.parent).free
        full = "No space left on device" in _end(self.log_path) or free < LEAST_ROOM
        why = ": no room left on the device" if full else ""
        message = f"{self.what} {happened} ({state}){why}. Its log, {self.log_path}, ends:\n{text}"
        return DiskFull(message) if full else ServiceError(message)

    def run_to_end(self, timeout_s: float) -> None:
        """Wait for a program that ends by itself; raise ServiceError on a timeout or a non-zero exit status."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self.failure(f"did not end within {timeout_s:.0f} s") from None
        finally:
            self.stop(signal.SIGKILL, 0)
        if status != 0:
            raise self.failure("failed")

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout_s: float = 15.0) -> None:
        """Send the signal `how`, kill what is left after `timeout_s`, and wait for all its processes."""
        family = self._family()
        try:
            if self._process.poll() is None:
                self._process.send_signal(how)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout_s)
        finally:
            # Runs also after Ctrl-C in the wait above. A server's children may be in separate sessions, so they are
            # killed one by one; psutil compares start times, so a reused pid is never killed by mistake.
            for process in (*family, *self._family()):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
            psutil.wait_procs(family, timeout=5)

    def _family(self) -> list[psutil.Process]:
        try:
            leader = psutil.Process(self._process.pid)
            return [leader, *leader.children(recursive=True)] if self._process.poll() is None else []
        except psutil.NoSuchProcess:
            return []


def wait_for_line(child: Child, needle: str, timeout_s: float, since: int = 0) -> None:
    """Wait until the log, from byte `since` on, contains `needle`; raise ServiceError on exit or timeout."""
    deadline = time.monotonic() + timeout_s
    while True:
        ended = child.poll() is not None
        with child.log_path.open("rb") as log:
            log.seek(since)
            if needle.encode() in log.read():
                return
        if ended:
            raise child.failure("ended while it was starting")
        if time.monotonic() > deadline:
            raise child.failure(f"was not ready within {timeout_s:.0f} s")
        time.sleep(0.05)


def wait_until(child: Child, is_ready: Callable[[], bool], timeout_s: float, late: str = "was not ready") -> None:
    """Wait until `is_ready` returns True; failed requests count as False. Raise ServiceError, with the log's end."""
    deadline = time.monotonic() + timeout_s
    while True:
        child.check()
        with suppress(OSError, ValueError, KeyError):
            if is_ready():
                return
        if time.monotonic() > deadline:
            raise child.failure(f"{late} within {timeout_s:.0f} s")
        time.sleep(0.05)
