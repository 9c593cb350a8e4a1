"""Large files: digests with progress, and replacement that is atomic even in a crash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tidemark import paths
from tidemark.errors import DatasetError, DiskFull, is_disk_full
from tidemark.progress import Progress

BLOCK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex, read in blocks of one MiB; raise DatasetError if it cannot be read."""
    digest = hashlib.sha256()
    done = 0
    try:
        with (
            path.open("rb") as file,
            Progress(f"sha256 of {path.name}", path.stat().st_size, " bytes") as shown,
        ):
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                done += len(block)
                shown.update(done)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror or error}.") from error
    return digest.hexdigest()


@contextmanager
def full_disk_named(path: Path) -> Iterator[None]:
    """Convert the various errors of a full disk to DiskFull, which names `path`; other errors pass unchanged."""
    try:
        yield
    except Exception as error:
        if is_disk_full(error):
            raise DiskFull(f"{path}: no room left on the device while writing it; nothing was kept.") from error
        raise


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file as `paths.replacing` does, in a private folder; raise DiskFull, naming `path`, if it has no room."""
    paths.private_directory(path.parent)
    with full_disk_named(path), paths.replacing(path) as file:
        yield file
