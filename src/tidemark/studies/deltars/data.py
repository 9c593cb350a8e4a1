"""Tables of TPC-H to write: generated once, as one Parquet file each."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tidemark.errors import ProvisionError
from tidemark.integrity import sha256_of
from tidemark.machine.child import in_a_child
from tidemark.paths import Workspace, exclusive, write_atomically
from tidemark.services.programs.provision import private_beside
from tidemark.services.programs.tools import tool_program
from tidemark.studies.deltars.samples import DATA, Data

TOOL = "tpchgen"
PROGRAM = "tpchgen-cli"
LONGEST_S = 3600.0
# Columns that identify a row.
KEYS = {"supplier": ("s_suppkey",), "lineitem": ("l_orderkey", "l_linenumber")}


def folder_of(workspace: Workspace) -> Path:
    return workspace.data / "tpch"


def source_of(workspace: Workspace, name: str) -> Path:
    """Return the path of a table's file, which need not exist."""
    return folder_of(workspace) / f"{name}.parquet"


def keys_of(name: str) -> tuple[str, ...]:
    """Return the key columns of a table."""
    return KEYS[name.partition("_")[0]]


def made(workspace: Workspace, name: str) -> Data:
    """Return the description of a table; generate its file if it is missing. ProvisionError if the generator fails."""
    path, known = source_of(workspace, name), folder_of(workspace) / f"{name}.json"
    with exclusive(folder_of(workspace) / ".lock"):
        if not (path.is_file() and known.is_file()):
            _make(workspace, name, path)
            data = Data(name, path.stat().st_size, sha256_of(path))
            write_atomically(known, json.dumps(asdict(data), indent=1) + "\n")
        return Data(**json.loads(known.read_text()))


def _make(workspace: Workspace, name: str, path: Path) -> None:
    found = DATA.fullmatch(name)
    assert found is not None, name
    program = tool_program(TOOL, PROGRAM, workspace).absolute()
    with private_beside(path) as incoming:
        command = [program, "parquet", "-s", found["scale"], f"--tables={found['table']}", f"--output-dir={incoming}"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        whole = incoming / f"{found['table']}.parquet"
        if ended.returncode or not whole.is_file():
            raise ProvisionError(f"{PROGRAM} made no {name}: {(ended.stderr or ended.stdout).strip()[-2000:]}")
        plain = incoming / "plain.parquet"
        in_a_child(partial(_write_plainly, whole, plain))
        plain.rename(path)


def _write_plainly(source: Path, target: Path) -> None:
    """Copy a file with names and types only, and text as older clients know it; some refuse the generator's extras.

    Runs in a child process, because the process that makes the machine cold must not load client libraries.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file:
        kinds = {each.name: each.type for each in file.schema_arrow}
        schema = pa.schema(
            {name: pa.string() if pa.types.is_string_view(kind) else kind for name, kind in kinds.items()}
        )
        with pq.ParquetWriter(target, schema, compression="snappy") as writer:
            for group in range(file.num_row_groups):
                writer.write_table(file.read_row_group(group).cast(schema))
