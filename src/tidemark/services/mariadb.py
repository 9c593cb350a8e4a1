"""MariaDB: a backend of the Iceberg REST server, accessed through its own client program."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path
from typing import ClassVar

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service, files_below
from tidemark.services.programs.process import Child, give, same_or_free, server_environment, write_private
from tidemark.services.programs.provision import unpack_mariadb

USER = "tidemark"
DURABILITY_SETTINGS = ("innodb_doublewrite", "innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog")
ANSWER_S = 30
READING = 4  # statements of one reading of the counters, including the end of its session


class MariaDB(Service):
    """MariaDB 11.4.5 on a free loopback port, with one user, a generated password, and defaults otherwise.

    If Tidemark is root, it runs as an unprivileged account that owns its data directory and may enter root's folders.
    """

    name: ClassVar[str] = "mariadb"
    title: ClassVar[str] = "MariaDB"
    locks: ClassVar[tuple[str, ...]] = ("mariadb",)
    ready_line: ClassVar[str] = "ready for connections"
    _home = Path()
    _password = ""
    _readings = 0

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        unpack_mariadb(workspace)

    def jdbc(self, database: str) -> tuple[str, str, str]:
        """Return the JDBC address of an existing database (without credentials), the user and the password."""
        return f"jdbc:mariadb://127.0.0.1:{self._port}/{database}?sslMode=disable", USER, self._password

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        """Run statements and return their rows as text; raise ServiceError, with the server's message, on failure."""
        command: list[str | Path] = [self._home / "bin" / "mariadb", "--no-defaults", "--batch", "--skip-column-names"]
        command += ["--skip-ssl", "--host=127.0.0.1", f"--port={self._port}", f"--user={USER}"]
        env = server_environment(MYSQL_PWD=self._password)
        done = subprocess.run(
            command, input=sql, env=env, capture_output=True, text=True, timeout=ANSWER_S, check=False
        )
        if done.returncode:
            raise ServiceError(f"{self.title} refused a statement: {done.stderr.strip()}")
        return [tuple(line.split("\t")) for line in done.stdout.splitlines()]

    def create_database(self, name: str) -> None:
        """Create the database `name`; raise ServiceError if it exists."""
        self.ask(f"CREATE DATABASE `{name}`")

    def drop_database(self, name: str) -> None:
        """Drop the database `name`; do nothing if it does not exist."""
        self.ask(f"DROP DATABASE IF EXISTS `{name}`")

    def database_bytes(self, name: str) -> int:
        """Return the size in bytes of the files of a database's tables, as the server reports it."""
        query = "SELECT COALESCE(SUM(FILE_SIZE), 0) FROM information_schema.INNODB_SYS_TABLESPACES"
        ((size,),) = self.ask(f"{query} WHERE NAME LIKE '{name}/%'")
        return int(size)

    def counters(self) -> dict[str, int]:
        """Return counts of write transactions (including the server's own table statistics), WAL bytes and statements.

        All are totals so far; the statements of these readings are subtracted.
        """
        (written,), (log,), (asked,) = self.ask(
            "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rw_commits'; "
            "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_lsn_current'; "
            "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Questions'"
        )
        self._readings += 1
        statements = int(asked) - READING * self._readings
        return {"write_transactions": int(written), "wal_bytes": int(log), "statements": statements}

    def durability_settings(self) -> dict[str, str]:
        """Return the settings that determine what is on disk after a commit, as a session sees them."""
        names = ", ".join(f"'{name}'" for name in DURABILITY_SETTINGS)
        query = f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"
        return dict(sorted((name, value) for name, value in self.ask(query)))

    def version(self) -> str:
        ((version,),) = self.ask("SELECT VERSION()")
        return version

    def _program_files(self) -> tuple[Path, ...]:
        return (self._home / "bin" / "mariadbd", *files_below(self._home / "share" / "english"))

    def _provision(self) -> None:
        self._home = unpack_mariadb(self.workspace)

    def _prepare(self) -> None:
        self._password = secrets.token_urlsafe(24)
        super()._prepare()
        give(private_directory(self.directory / "tmp"))
        command: list[str | Path] = ["/bin/sh", self._home / "scripts" / "mariadb-install-db", "--no-defaults"]
        command += [f"--basedir={self._home}", f"--datadir={self.data_directory}"]
        command += ["--auth-root-authentication-method=normal", "--skip-name-resolve", "--skip-test-db"]
        # As an option, it could have no space in its path.
        self._run("mariadb-install-db", "mariadb-install-db.log", command, 120, TMPDIR=str(self.directory / "tmp"))

    def _launch(self) -> Child:
        self._port = same_or_free(self._port)
        command: list[str | Path] = [self._home / "bin" / "mariadbd", "--no-defaults", f"--basedir={self._home}"]
        command += [f"--datadir={self.data_directory}", f"--tmpdir={self.directory / 'tmp'}"]
        # No socket file: its path is limited to 107 bytes, and no client uses it. Name lookups are off.
        command += ["--bind-address=127.0.0.1", f"--port={self._port}", "--socket=", "--skip-name-resolve"]
        command += ["--skip-ssl", "--innodb-monitor-enable=trx_rw_commits", f"--init-file={self._write_users()}"]
        return self._serve(command)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        try:
            super()._wait_until_ready(child, log_start)
        finally:
            self._users.unlink(missing_ok=True)

    @property
    def _users(self) -> Path:
        return self.directory / "users.sql"

    def _write_users(self) -> Path:
        """Write the init file, which leaves only the user with the generated password able to connect."""
        return write_private(
            self._users,
            f"CREATE OR REPLACE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{self._password}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'127.0.0.1';\n"
            "DELETE FROM mysql.global_priv WHERE User = 'root';\nFLUSH PRIVILEGES;\n",
        )
