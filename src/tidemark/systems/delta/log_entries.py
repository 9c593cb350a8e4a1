"""Commits to a Delta table by entries of its log, in place of a client whose commits become slower with each one.

delta-rs takes 0.14 ms longer for each commit that a table has: 10,000 commits would take it two hours. An entry here is
that of the client's last commit, with another data file.
"""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.systems.delta.table import LOG
from tidemark.systems.tables import with_id

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 500  # entries before the client makes a checkpoint


def add(folder: Path, version: int, rows: pa.Table, ids: range, codec: str) -> None:
    """Add a commit for each of `ids`: a Parquet file of `rows`, one row, with that id, and an entry of the log.

    `version` is the table's: its last commit, by delta-rs or made here, added one such row.
    """
    import pyarrow.parquet as pq

    lines = (folder / LOG / f"{version:020d}.json").read_text().splitlines()
    entry: dict[str, Any] = {}
    for line in lines:
        entry |= json.loads(line)
    statistics = json.loads(entry["add"]["stats"])
    for number in ids:
        version += 1
        path = folder / f"part-00000-{secrets.token_hex(16)}-c000.{codec}.parquet"
        pq.write_table(with_id(rows, number), path, compression="none" if codec == "uncompressed" else codec)
        statistics["minValues"]["id"] = statistics["maxValues"]["id"] = number
        now = round(time.time() * 1000)
        own = {"path": path.name, "size": path.stat().st_size, "modificationTime": now, "stats": json.dumps(statistics)}
        made = {**entry, "add": {**entry["add"], **own}, "commitInfo": {**entry["commitInfo"], "timestamp": now}}
        text = "\n".join(json.dumps({name: each}) for name, each in made.items())
        (folder / LOG / f"{version:020d}.json").write_text(text)
