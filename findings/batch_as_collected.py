# /// script
# requires-python = "==3.12.*"
# dependencies = [
#     "deltalake==1.6.6",
#     "duckdb==1.5.5",
#     "duckdb-extension-ducklake==1.5.5",
#     "pyarrow==26.0.1",
# ]
# ///
"""A batch that is handed over as its rows were collected, one Arrow chunk each, costs several times as much to write.

A thousand rows of twenty columns, each of which came by itself as an Arrow message, are put together by
`concat_tables`, which copies nothing: the batch has a thousand chunks. DuckLake, delta-rs and PyArrow's Parquet writer
write it as it is, after `combine_chunks`, whose time counts, and as a table that was one chunk from the start. Commits
of all of them take turns. Prints one line of JSON; `seen` says whether, with each release here and for each of the
three writers, the median processor time of a commit as collected is at least `BOUND` times that of one chunk, and the
call saves some of it. Processor time is what a busy machine changes least; the time on the clock stands beside it.
`--python=PROGRAM` runs another set of releases too.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

BOUND = 3.0
ROWS, COLUMNS, COMMITS = 1_000, 20, 15
AS_COLLECTED, COMBINED, ONE_CHUNK = "as collected", "combined first", "one chunk"
CLOCK, PROCESSOR = "the clock", "the processor"


def batches():
    """Return the same rows as a table of a chunk a row, and as one of a single chunk."""
    import pyarrow as pa

    kinds = [
        pa.array(range(ROWS), pa.int64()),
        pa.array([number / 7 for number in range(ROWS)], pa.float64()),
        pa.array([f"a text of {number}" for number in range(ROWS)], pa.string()),
        pa.array([1_700_000_000_000_000 + number for number in range(ROWS)], pa.timestamp("us")),
    ]
    whole = pa.table({f"c{number}": kinds[number % len(kinds)] for number in range(COLUMNS)})
    messages = []
    for number in range(ROWS):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as stream:
            stream.write_table(whole.slice(number, 1))
        messages.append(sink.getvalue())
    return pa.concat_tables([pa.ipc.open_stream(message).read_all() for message in messages]), whole


def writers(folder: Path, schema) -> dict[str, Callable[[object], None]]:
    import duckdb
    import duckdb_extension_ducklake
    import pyarrow.parquet as pq
    from deltalake import DeltaTable, write_deltalake

    connection = duckdb.connect()
    place = Path(duckdb_extension_ducklake.__path__[0], "extensions", f"v{duckdb.__version__}")
    connection.execute(f"LOAD '{place / 'ducklake.duckdb_extension'}'")
    connection.execute(
        f"ATTACH 'ducklake:{folder / 'catalog.ducklake'}' AS lake "
        f"(DATA_PATH '{folder / 'data'}', DATA_INLINING_ROW_LIMIT 0)"
    )
    empty = schema.empty_table()
    connection.register("empty", empty)
    connection.execute("CREATE TABLE lake.t AS FROM empty")
    write_deltalake(folder / "delta", empty)
    delta = DeltaTable(folder / "delta")

    def ducklake(batch) -> None:
        connection.register("batch", batch)
        connection.execute("INSERT INTO lake.t FROM batch")

    return {
        "DuckLake": ducklake,
        "delta-rs": lambda batch: write_deltalake(delta, batch, mode="append"),
        "PyArrow": lambda batch: pq.write_table(batch, folder / "alone.parquet"),
    }


def measure() -> dict:
    """Return the milliseconds of each commit, on the clock and of the processor, by writer and how it got the batch."""
    import deltalake
    import duckdb
    import pyarrow as pa

    collected, whole = batches()
    given = {AS_COLLECTED: lambda: collected, COMBINED: lambda: collected.combine_chunks(), ONE_CHUNK: lambda: whole}
    with tempfile.TemporaryDirectory() as place:
        write = writers(Path(place), whole.schema)
        turns = [(name, how) for name in write for how in given]
        found = {kind: {name: {how: [] for how in given} for name in write} for kind in (CLOCK, PROCESSOR)}
        order = random.Random(1)
        for number in range(COMMITS + 1):
            for name, how in order.sample(turns, len(turns)):
                began = time.perf_counter(), time.process_time()
                write[name](given[how]())
                ended = time.perf_counter(), time.process_time()
                for kind, start, end in zip(found, began, ended, strict=True):
                    if number:  # the first of each is slower
                        found[kind][name][how].append(round(1e3 * (end - start), 2))
    releases = {"duckdb": duckdb.__version__, "deltalake": deltalake.__version__, "pyarrow": pa.__version__}
    return {"releases": releases, "ms": found}


def ratios(found: dict, kind: str, to: str = ONE_CHUNK) -> dict[str, float]:
    """Return for each writer how many times the median as collected is that of the same batch handed over as `to`."""
    return {name: median(ms[AS_COLLECTED]) / median(ms[to]) for name, ms in found[kind].items()}


def is_seen(found: dict) -> bool:
    """Return whether each writer takes at least `BOUND` times as much processor time, some of which the call saves."""
    return all(ratio >= BOUND for ratio in ratios(found, PROCESSOR).values()) and all(
        ratio > 1 for ratio in ratios(found, PROCESSOR, COMBINED).values()
    )


def in_words(found: dict, kind: str) -> str:
    return ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios(found, kind).items())


def main() -> dict:
    pythons = [sys.executable, *(word.removeprefix("--python=") for word in sys.argv if word.startswith("--python="))]
    words, evidence, versions, seen = [], {}, {}, True
    for python in pythons:
        ran = subprocess.run([python, __file__, "measure"], check=True, stdout=subprocess.PIPE)
        said = json.loads(ran.stdout)
        found, releases = said["ms"], said["releases"]
        release = ", ".join(f"{name} {version}" for name, version in releases.items())
        seen = seen and is_seen(found)
        words += [
            f"{release}: {in_words(found, PROCESSOR)} times the processor time, {in_words(found, CLOCK)} the time"
        ]
        evidence[release] = {
            f"{name}, median ms of {kind}": {how: round(median(times), 2) for how, times in ms.items()}
            for kind, of_writers in found.items()
            for name, ms in of_writers.items()
        }
        for name, version in releases.items():
            versions.setdefault(name, []).append(version)
    return {
        "seen": seen,
        "said": "a batch as collected takes, against one chunk, " + "; ".join(words),
        "versions": {name: " and ".join(dict.fromkeys(several)) for name, several in versions.items()},
        "evidence": evidence,
    }


if __name__ == "__main__":
    print(json.dumps(measure() if sys.argv[1:2] == ["measure"] else main()))
