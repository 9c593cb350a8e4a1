"""Program that serves DuckDB files with DuckDB's Quack protocol, each on its own port; independent of Tidemark.

`python -I serve_quack.py FOLDER PORT SECRET`: on the loopback port PORT it accepts, from clients that know the content
of the file SECRET, the port for a new file, and answers when the file is served. Files already in FOLDER are served on
their previous ports.
"""

from __future__ import annotations

import importlib.util
import sys
from multiprocessing.connection import Listener
from pathlib import Path

import duckdb

EXTENSIONS = ("httpfs", "quack")
HOST = "127.0.0.1"
READY = "serves by way of port "


def serve(path: Path, port: int, token: str) -> duckdb.DuckDBPyConnection:
    """Open or create the file at `path`, and serve it as long as the returned connection is open."""
    private = str(path.parent / ".duckdb")
    kept = duckdb.connect(
        path,
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "extension_directory": private,
            "temp_directory": private,
        },
    )
    for name in EXTENSIONS:
        found = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert found is not None and found.submodule_search_locations
        folder = Path(found.submodule_search_locations[0], "extensions", f"v{duckdb.__version__}")
        kept.execute(f"LOAD '{folder / name}.duckdb_extension'")
    kept.execute(f"CALL quack_serve('quack:{HOST}:{port}', token => '{token}')").fetchall()
    return kept


def main(folder: Path, port: int, secret: Path) -> None:
    token = secret.read_text()
    files = {int(path.stem): path for path in folder.glob("*.duckdb")}
    kept = [serve(path, number, token) for number, path in files.items()]
    with Listener((HOST, port), authkey=token.encode()) as listener:
        print(f"{READY}{port}", flush=True)
        while True:
            try:
                with listener.accept() as asked:
                    wanted = int(asked.recv())
                    kept.append(serve(folder / f"{wanted}.duckdb", wanted, token))
                    asked.send(wanted)
            except Exception as error:  # error of one client, which sees its connection end
                print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
