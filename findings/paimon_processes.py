# /// script
# requires-python = "==3.12.*"
# dependencies = ["pyarrow==19.0.1", "pypaimon==2.1.0"]
# ///
"""Apache Paimon's Python client loses acknowledged commits when processes write to one table on a local disk.

Each process appends rows of its own, one a commit; afterwards a new client reads the table. A snapshot is a file that
is renamed unless its name is taken; who looks at the same moment as another one finds it free, and replaces what was
renamed there. On a fast disk that moment is short, and some 1 of 500 commits of 8 processes was lost where this was
written: here the disk is made a slow one, on which a rename takes half a second. Prints one line of JSON.
"""

import json
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

PROCESSES, COMMITS, RENAME_S = 2, 5, 0.5
QUICK = Path.rename
SCHEMA = pa.schema([("id", pa.int64())])


def table(folder: str):
    return CatalogFactory.create({"warehouse": folder}).get_table("d.t")


def slow(self: Path, target: Path) -> Path:
    time.sleep(RENAME_S)
    return QUICK(self, target)


def append(folder: str, first: int) -> list[int]:
    """Write once told to begin; the rows of commits that returned."""
    here, acknowledged = table(folder), []
    Path.rename = slow
    print("ready", flush=True)
    sys.stdin.readline()
    for row in range(first, first + COMMITS):
        builder = here.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        try:
            write.write_arrow(pa.table({"id": pa.array([row], pa.int64())}))
            commit.commit(write.prepare_commit())
            acknowledged.append(row)
        except Exception:
            pass  # refused: it may be tried again, and is not counted on
        finally:
            write.close()
            commit.close()
    return acknowledged


def main(folder: str) -> dict:
    catalog = CatalogFactory.create({"warehouse": folder})
    catalog.create_database("d", False)
    catalog.create_table("d.t", Schema.from_pyarrow_schema(SCHEMA, options={"bucket": "-1"}), False)
    command = [sys.executable, __file__, "append", folder]
    programs = [
        subprocess.Popen([*command, str(1000 * number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(1, PROCESSES + 1)
    ]
    for each in programs:
        each.stdout.readline()
    for each in programs:
        each.stdin.write("go\n")
        each.stdin.flush()
    acknowledged = {row for each in programs for row in json.loads(each.communicate()[0].splitlines()[-1])}
    reading = table(folder).new_read_builder()
    there = set(reading.new_read().to_arrow(reading.new_scan().plan().splits())["id"].to_pylist())
    snapshots = sorted(path.name for path in Path(folder, "d.db", "t", "snapshot").glob("snapshot-*"))
    gone = sorted(acknowledged - there)
    return {
        "seen": bool(gone),
        "said": f"{len(gone)} of {len(acknowledged)} acknowledged rows are not there",
        "versions": {"pypaimon": version("pypaimon"), "pyarrow": pa.__version__},
        "evidence": {"acknowledged and not there": gone, "snapshots": len(snapshots), "rows there": len(there)},
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["append"]:
        print(json.dumps(append(sys.argv[2], int(sys.argv[3]))), flush=True)
    else:
        with tempfile.TemporaryDirectory() as place:
            print(json.dumps(main(place)))
