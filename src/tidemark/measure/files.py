"""Files whose residency makes a system cold or hot: those of its servers, and the libraries of its client."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidemark.machine import cold
from tidemark.services.servers import Servers
from tidemark.systems.base import Variant

CLIENT = "client libraries"


def files_of(servers: Servers, variant: Variant) -> dict[str, tuple[Path, ...]]:
    """Return the files that make a system cold or hot: those of the servers, and the libraries of the client."""
    packages = variant.system.libraries
    return {**servers.files(), CLIENT: cold.library_files([*packages, "pyarrow"]) if packages else ()}


def warm(files: Iterable[Path]) -> None:
    """Read files once, so that they are in the page cache."""
    buffer = bytearray(1 << 20)
    for path in files:
        try:
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass
        except OSError:
            continue  # a running server may remove its files
