"""PostgreSQL: the catalog of DuckLake and the backend of the Iceberg REST server."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tidemark.config import LIBPQ_SECRETS
from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.base import Service, files_below
from tidemark.services.programs.process import (
    Child,
    give,
    same_or_free,
    unprivileged_account,
    wait_for_line,
    write_private,
)
from tidemark.services.programs.provision import unpack_postgres

SUPERUSER = "postgres"
ISOLATIONS = READ_COMMITTED, SERIALIZABLE = "read committed", "serializable"
COUNTER = "pg_stat_statements"
# Covers all entries; if the server evicted entries (dealloc), their counts are lost.
STATEMENTS = f"""
    SELECT (SELECT coalesce(sum(calls), 0)::bigint FROM {COUNTER} JOIN pg_database ON oid = dbid
        WHERE datname <> current_database() AND (%s::text IS NULL OR datname = %s)), dealloc FROM {COUNTER}_info
"""
# Start of a statement's line in the log while statements are counted: its database and its transaction.
LOGGED_AS = "statements=%d %v "
LOGGED = re.compile(rb"^statements=(\S+) (\d+/\d+) LOG:  (?:statement|execute [^:]*): ", re.MULTILINE)
DURABILITY_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "wal_sync_method")
IPC_RMID = 0
SYSTEM_V_SEGMENTS = Path("/proc/sysvipc/shm")
POSTGRES_INTERLOCK_BYTES = "56"


class Postgres(Service):
    """PostgreSQL 18 on a free loopback port, with scram, a generated password and initdb's other defaults.

    `address`: the connection string of an external server whose role may create databases; None: start one here.
    If Tidemark is root, it runs as an unprivileged account that owns its data directory and may enter root's folders.
    """

    name: ClassVar[str] = "postgres"
    title: ClassVar[str] = "PostgreSQL"
    locks: ClassVar[tuple[str, ...]] = ("postgres",)
    address_key: ClassVar[str] = "postgres_address"
    # SIGINT is its fast shutdown: it ends sessions and leaves the data clean. SIGTERM waits for sessions.
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT
    # SIGQUIT also ends its processes immediately, but through the server itself, which frees its shared memory.
    discard_signal: ClassVar[signal.Signals] = signal.SIGQUIT

    def __init__(self, workspace: Workspace, directory: Path, address: str | None = None) -> None:
        super().__init__(workspace, directory, address)
        self._binaries = Path()
        self._password = ""
        self._counts = False

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        unpack_postgres(workspace)

    @property
    def dsn(self) -> str:
        """libpq connection string, including the password: keep it out of logs and argument lists."""
        return self.database_dsn(None)

    def database_dsn(self, database: str | None) -> str:
        """Return `dsn` for another database of the same server; None means the database in the address."""
        if self.external_at is not None:
            return make_conninfo(self.external_at, **({"dbname": database} if database else {}))
        return make_conninfo(
            host="127.0.0.1", port=self._port, user=SUPERUSER, password=self._password, dbname=database or SUPERUSER
        )

    def jdbc(self, database: str, through: tuple[str, int] | None = None) -> tuple[str, str, str]:
        """Return the JDBC address of an existing database (without credentials), the user and the password.

        `through`: host and port of a proxy between the server and its client, used instead of its own address.

        The values are read from a libpq connection, as they may come from PGPASSWORD, a passfile, PGHOST or a service
        file, which the JDBC driver does not read. Raise ServiceError for a connection that JDBC does not support.
        """
        with self.connect(database) as connection:
            info = connection.info
            host, port, user, password = info.host, info.port, info.user, info.password
            given = info.get_parameters()
        self._reached_by_tcp(host)
        host, port = through or (host, port)
        address = f"jdbc:postgresql://{f'[{host}]' if ':' in host else host}:{port}/{quote(database, safe='')}"
        # Both drivers use the same spelling for these.
        secured = {key: given[key] for key in ("sslmode", "sslrootcert") if given.get(key)}
        return f"{address}?{urlencode(secured)}" if secured else address, user, password

    def _reached_by_tcp(self, host: str) -> str:
        """Return `host`; raise ServiceError if it is a Unix-domain socket."""
        if not host or host.startswith(("/", "@")):
            raise ServiceError(
                f"{self.title} is reached through the socket {host or 'of its default place'}, which neither the JDBC "
                "driver of the Iceberg catalog nor a proxy can open. Give services.postgres_address a host, as in "
                "host=127.0.0.1."
            )
        return host

    def host_and_port(self) -> tuple[str, int]:
        """Return the address that libpq uses; raise ServiceError if it is a Unix-domain socket."""
        if self.external_at is None:
            return "127.0.0.1", self._port
        with self.connect() as connection:
            return self._reached_by_tcp(connection.info.host), connection.info.port

    def connect(self, database: str | None = None, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """Return a new connection, which the caller closes; `options` are passed to psycopg."""
        return psycopg.connect(self.database_dsn(database), connect_timeout=10, **options)

    def settle(self) -> None:
        """Write a checkpoint: by itself the server writes one every five minutes, in the window of any system."""
        if not self.is_external:
            with self.connect(autocommit=True) as connection:
                connection.execute("CHECKPOINT")

    def create_database(self, name: str) -> str:
        """Create the database `name` and return its connection string."""
        with self.connect(autocommit=True) as connection:
            self._note(name)
            try:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            except psycopg.Error as error:
                if error.sqlstate is not None:  # rejected by the server; the name may be another user's
                    self._strike(name)
                raise
        return self.database_dsn(name)

    def isolate(self, name: str, level: str) -> None:
        """Set the default isolation level of the database `name`, for new sessions."""
        database, value = sql.Identifier(name), sql.Literal(level)
        with self.connect(autocommit=True) as connection:
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}").format(database, value)
            )

    def isolation(self, name: str) -> str:
        """Return the default isolation level of transactions in the database `name`, read in a new session."""
        return str(self._row("SHOW default_transaction_isolation", database=name)[0])

    def drop_database(self, name: str) -> None:
        """Drop the database `name` and end its sessions; do nothing if it does not exist."""
        with self.connect(autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))
        self._strike(name)

    def drop(self, name: str) -> None:
        self.drop_database(name)

    def address_outside(self) -> dict[str, str | None]:
        parts = conninfo_to_dict(self.external_at or "")
        kept = {key: str(value) for key, value in parts.items() if key not in LIBPQ_SECRETS and value is not None}
        return {"postgres_address": make_conninfo(**kept)}

    def database_bytes(self, name: str) -> int:
        """Return the size of a database on disk in bytes, by pg_database_size."""
        return int(self._row("SELECT pg_database_size(%s)", [name])[0])

    def durability_settings(self, database: str) -> dict[str, str]:
        """Return the settings that determine what is on disk after a commit in `database`, as a session sees them."""
        query = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s) ORDER BY name"
        with self.connect(database, autocommit=True) as connection:
            return dict(connection.execute(query, [list(DURABILITY_SETTINGS)]).fetchall())

    def log_files(self) -> tuple[Path, ...]:
        """Return the current WAL segments of a server started here; readable by root and its starter only."""
        return files_below(self.data_directory / "pg_wal")

    def count_statements(self) -> None:
        """Count statements, which costs each some time; a server that runs is restarted on the same data.

        Raise ServiceError if the server is external.
        """
        if self.is_external:
            raise ServiceError(f"{self.title} was not started here, and is not restarted to count statements.")
        self._counts = True
        if self._child is not None:
            self.restart()

    def statements(self, database: str | None = None) -> int:
        """Return the number of SQL statements completed in `database` since counting began; failed ones do not count.

        None: in all databases but the one of `dsn`, in which the query runs and is not counted. Raise ServiceError if
        the server evicted entries.
        """
        calls, evicted = self._row(STATEMENTS, [database, database])
        if evicted:
            raise ServiceError(f"{self.title} had no room to count that many different statements: {evicted} times.")
        return int(calls)

    def transactions(self, since: int) -> int:
        """Return the number of transactions that clients began since byte `since` of the log, while statements count.

        Those in the database of `dsn` are left out, as by `statements`. A statement outside a transaction is one.
        """
        with self.log_path.open("rb") as log:
            log.seek(since)
            found = LOGGED.findall(log.read())
        return len({transaction for database, transaction in found if database != SUPERUSER.encode()})

    def version(self) -> str:
        return str(self._row("SHOW server_version")[0])

    def _row(self, query: str, values: Sequence[str | None] = (), database: str | None = None) -> tuple[Any, ...]:
        """Return the one row of a query in a new session."""
        with self.connect(database, autocommit=True) as connection:
            (row,) = connection.execute(query.encode(), values or None).fetchall()
        return row

    def _reach(self) -> None:
        self.version()

    def _program_files(self) -> tuple[Path, ...]:
        return files_below(self._binaries.parent)

    def _provision(self) -> None:
        self._binaries = unpack_postgres(self.workspace)

    def _prepare(self) -> None:
        self._password = secrets.token_urlsafe(24)
        remove_segments(unprivileged_account())
        password_file = self.directory / "password"
        self.data_directory.mkdir(mode=0o700)
        try:
            write_private(password_file, self._password)
            give(self.data_directory)
            command: list[str | Path] = [self._binaries / "initdb", "-D", self.data_directory]
            command += ["-U", SUPERUSER, "-A", "scram-sha-256", "--pwfile", password_file]
            command += ["-E", "UTF8", "--locale=C.UTF-8"]
            # The measurement syncs the machine before it starts, so an fsync of each file would only cost time.
            command += ["--no-sync"]
            self._run("initdb", "initdb.log", command, 60)
        finally:
            password_file.unlink(missing_ok=True)

    def _launch(self) -> Child:
        self._port = same_or_free(self._port)
        command: list[str | Path] = [self._binaries / "postgres", "-D", self.data_directory]
        # No socket file: its path is limited to 107 bytes, and no client uses it.
        settings = ["listen_addresses=127.0.0.1", f"port={self._port}", "unix_socket_directories="]
        if self._counts:
            settings += [f"shared_preload_libraries={COUNTER}", "log_statement=all", f"log_line_prefix={LOGGED_AS}"]
        for setting in settings:
            command += ["-c", setting]
        return self._serve(command)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, "database system is ready to accept connections", 60, log_start)
        if self._counts:
            with self.connect(autocommit=True) as connection:
                connection.execute(f"CREATE EXTENSION IF NOT EXISTS {COUNTER}")


def remove_segments(account: int | None, folder: Path = Path("/dev/shm")) -> None:
    """Free shared memory that killed servers of `account` left, unless one is running; None: the current account.

    No process uses it, and the kernel keeps it. Each killed server leaves a megabyte, and a container's /dev/shm has
    only 64. The candidates are listed before the processes, so a candidate without a running server afterwards is not
    in use.
    """
    account = os.geteuid() if account is None else account
    candidates = [path for path in folder.glob("PostgreSQL.*") if _owner(path) == account]
    segments = _unattached_segments(account)
    if (candidates or segments) and not _server_runs(account):
        for path in candidates:
            path.unlink(missing_ok=True)
        for segment in segments:
            ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)


def _owner(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.stat().st_uid
    return None


def _unattached_segments(account: int) -> list[int]:
    if not SYSTEM_V_SEGMENTS.exists():
        return []
    header, *lines = [line.split() for line in SYSTEM_V_SEGMENTS.read_text().splitlines()]
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    dead = {"uid": str(account), "nattch": "0", "size": POSTGRES_INTERLOCK_BYTES}
    return [int(row["shmid"]) for row in rows if dead.items() <= row.items()]


def _server_runs(account: int) -> bool:
    return any(
        (uids := process.info["uids"]) is None or uids.effective == account
        for process in psutil.process_iter(["name", "uids"])
        if process.info["name"] == "postgres"
    )
