# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "deltalake==1.6.6",
#     "duckdb==1.4.4",
#     "duckdb-extension-ducklake==1.4.4",
#     "pyarrow==22.0.0",
# ]
# ///
"""What clients acknowledge is in the page cache alone: a power failure in the next seconds takes it.

delta-rs and DuckLake each commit rows to a table on the local disk. As soon as a commit is acknowledged, the kernel is
asked (cachestat, Linux 6.5 and later) which of the files that it made have a page that is not on the disk. Nothing is
done to the power. Prints one line of JSON; `seen` says whether most data files of each client were not on the disk: a
client that flushes leaves none, and the kernel may write one on its own before it is looked at.
"""

import ctypes
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import duckdb
import duckdb_extension_ducklake
import pyarrow as pa
from deltalake import write_deltalake

COMMITS, ROWS = 10, 1_000
CACHESTAT = 451
LIBC = ctypes.CDLL(None, use_errno=True)
CATALOG = (".ducklake", ".wal")  # a database's own files, which it flushes


def dirty_pages(path: Path) -> int:
    """Of a file: those that are not on the disk, or on their way there."""
    whole, found = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if LIBC.syscall(CACHESTAT, descriptor, whole, found, 0):
            sys.exit(f"this kernel does not tell of its pages: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)
    return found[1] + found[2]


def delta(folder: Path) -> Callable[[pa.Table], object]:
    return lambda rows: write_deltalake(folder, rows, mode="append")


def ducklake(folder: Path) -> Callable[[pa.Table], object]:
    connection = duckdb.connect()
    place = Path(duckdb_extension_ducklake.__path__[0], "extensions", f"v{duckdb.__version__}")
    connection.execute(f"LOAD '{place / 'ducklake.duckdb_extension'}'")
    connection.execute(f"ATTACH 'ducklake:{folder / 'catalog.ducklake'}' AS lake (DATA_PATH '{folder / 'data'}')")
    connection.execute("CREATE TABLE lake.t (id BIGINT)")

    def append(rows: pa.Table) -> None:  # noqa: ARG001 - DuckDB finds `rows` in this frame, by its name
        connection.execute("INSERT INTO lake.t SELECT * FROM rows")

    return append


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and path.suffix not in CATALOG}


def commits(folder: Path, opened: Callable[[Path], Callable[[pa.Table], object]]) -> Iterator[dict[str, int]]:
    """Of each commit: how many data files and other files it made, and how many of them are not on the disk."""
    folder.mkdir()
    append = opened(folder)
    for number in range(COMMITS):
        rows, before = pa.table({"id": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())}), files(folder)
        append(rows)
        made = [(path.suffix == ".parquet", dirty_pages(path) > 0) for path in files(folder) - before]
        yield {
            "data files": sum(is_data for is_data, _ in made),
            "of them not on the disk": sum(is_data and dirty for is_data, dirty in made),
            "other files": sum(not is_data for is_data, _ in made),
            "of those not on the disk": sum(not is_data and dirty for is_data, dirty in made),
        }


def main(folder: Path) -> dict:
    found = {}
    for name, opened in (("delta-rs", delta), ("DuckLake", ducklake)):
        each = list(commits(folder / name, opened))
        found[name] = {words: sum(commit[words] for commit in each) for words in each[0]}
    counts = {name: (client["data files"], client["of them not on the disk"]) for name, client in found.items()}
    said = (f"{dirty} of {files} data files of {name}" for name, (files, dirty) in counts.items())
    return {
        "seen": all(files >= COMMITS and 2 * dirty > files for files, dirty in counts.values()),
        "said": f"not on the disk when their commit was acknowledged: {', '.join(said)}",
        "versions": {name: version(name) for name in ("deltalake", "duckdb")},
        "evidence": found,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(main(Path(place))))
