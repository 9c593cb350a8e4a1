"""Stand-alone program: a client that makes single commits to a new table of one system, when it is told to.

    python -m tidemark.measure.anatomy.client

It reads its `Order`, pickled, from standard input, creates the table, prints "ready", and then follows these lines:

    write COUNT     makes commits, prints "wrote", and the peak of its memory in bytes
    files           prints "files", and a JSON object: path to size, time of change in ns, and inode
    check           prints "holds", and how the table differs from the rows that were written; nothing if it does not
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.machine.processes import forget_peak, peak_bytes
from tidemark.systems.base import Context, Variant
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

TRIPS, SEED = 1_000_000, 1  # of the replica whose rows are written, over and over


@dataclass(frozen=True, slots=True)
class Order:
    variant: Variant
    context: Context
    columns: int


def batches(rows: int, columns: int) -> Callable[[int], pa.Table]:
    """Return a function from the number of a commit, from 0, to its `rows` rows, the same in each process.

    Of `columns` the first is `id`. The others are a trip's in their order, and again, with numbers, if they are more.
    """
    import pyarrow as pa

    from tidemark.dataset.model import YELLOW, plain_type
    from tidemark.dataset.synthetic import Layout, chunk

    layout, types = Layout.of(TRIPS, SEED), {column.name: plain_type(column) for column in YELLOW.columns}

    def batch(number: int) -> pa.Table:
        first = number * rows
        place = first % (TRIPS - rows)
        made = pa.Table.from_batches([chunk(layout, place, place + rows)])
        made = made.cast(pa.schema([(name, types[name]) for name in made.column_names]))
        names, times = made.column_names, -(-columns // made.num_columns)
        numbered = [name if not time else f"{name}_{time + 1}" for time in range(times) for name in names]
        ids = pa.array(range(first, first + rows), pa.int64())
        values = [pa.chunked_array([ids]), *(made.columns * times)[: columns - 1]]
        return pa.table(values, ["id", *numbered[: columns - 1]]).combine_chunks()

    return batch


def files(system: TableSystem) -> dict[str, tuple[int, int, int]]:
    """Return size, time of change in ns and inode of each of the table's files; of objects in a bucket, no inode.

    Of the system's folder, names that begin with a dot are no part of the table.
    """
    place, found = system.context.directory, {}
    folder = getattr(system, "folder", None)
    if folder is not None:
        from pyarrow.fs import FileSelector, FileType

        in_bucket = FileSelector(f"{folder.bucket.name}/{folder.name}", allow_not_found=True, recursive=True)
        for each in folder.file_system().get_file_info(in_bucket):
            if each.type is FileType.File:
                found[each.path] = (each.size, each.mtime_ns, 0)
    for parent, folders, names in os.walk(place):
        if Path(parent) == place:
            folders[:] = [name for name in folders if not name.startswith(".")]
            names = [name for name in names if not name.startswith(".")]
        for path in (Path(parent, name) for name in names):
            with suppress(FileNotFoundError):  # a temporary file of a server
                about = path.stat()
                found[str(path.relative_to(place))] = (about.st_size, about.st_mtime_ns, about.st_ino)
    return found


def wrong(system: TableSystem, rows: int, commits: int) -> str:
    """Return how the table differs from `rows` rows with the ids from 0 on, each once; empty if it does not.

    A system that keeps nothing differs in nothing.
    """
    from tidemark.measure.oracle import consult, difference

    verdict = consult(system, rows)
    return difference(verdict, commits) if verdict.is_wrong else ""


def main() -> None:
    order: Order = pickle.load(sys.stdin.buffer)
    system = order.variant.open_as(TableSystem, order.context)
    rows, done = order.context.rows_per_write, 0
    batch = batches(rows, order.columns)
    system.create(batch(0).schema)
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        match line.decode().split():
            case ["write", count]:
                for _ in range(int(count)):
                    given = batch(done)
                    forget_peak()
                    system.write(given)
                    done += 1
                print("wrote", peak_bytes(), flush=True)
            case ["files"]:
                print("files", json.dumps(files(system)), flush=True)
            case ["check"]:
                print("holds", wrong(system, rows * done, done), flush=True)
            case other:
                sys.exit(f"received {other}; allowed: write COUNT, files, check")
    system.close()


if __name__ == "__main__":
    main()
