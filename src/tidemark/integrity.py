"""Seals of folders that were verified once: a cheap check that their content is unchanged.

A seal is a file next to its folder that lists each file with its size, modification time, inode and SHA-256, as they
were when the hash of the files' source had been checked. Before each use, size, time and inode are compared, which
takes microseconds per file; a file that differs in one of them is hashed, and only changed content or a missing file
is a difference: a copied cache stays valid. `--verify` compares all files by hash.

Python's byte code next to its sources is left out. This module uses only the standard library, because environments
are sealed before there is one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tidemark.errors import ProvisionError
from tidemark.paths import exclusive, write_atomically

Entry = list[int | str]  # size, mtime_ns, inode, and sha256 or, for a link, its target
LEFT_OUT = ("__pycache__",)
STAMP = ".stamp"  # of an environment: states by itself what it was made from
SHOWN = 3


def seal_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name.lstrip('.')}.seal")


def in_a_store(folder: Path) -> bool:
    """Return True if `folder` is in a Nix store, whose content is immutable and whose paths are named by content.

    No seal is written there: a store does not preserve times and inodes, and a build must be reproducible.
    """
    store = Path(os.environ.get("NIX_STORE", "/nix/store"))
    return folder.absolute().is_relative_to(store) or folder.resolve().is_relative_to(store)


def seal(folder: Path) -> None:
    """Seal the content of `folder`, which was just made from verified sources."""
    if not in_a_store(folder):
        _write(folder, {name: _entry(path) for name, path in _files(folder)})


def differences(folder: Path, *, by_hash: bool = False) -> list[str] | None:
    """Return a sentence for each file that differs from when `folder` was sealed; None if there is no seal.

    `by_hash`: the content of every file is compared, regardless of size, time and inode.
    """
    entries = read(folder)
    if entries is None:
        return None
    doubtful = [name for name, entry in entries.items() if by_hash or _stats(f"{folder}/{name}") != entry[:-1]]
    if not doubtful:
        return []
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # hashing releases the GIL
        found = dict(zip(doubtful, pool.map(lambda name: _entry(Path(folder, name)), doubtful), strict=True))
    lines = [
        f"{folder / name} {'was changed' if entry else 'is missing'}"
        for name, entry in found.items()
        if not entry or entry[-1] != entries[name][-1]
    ]
    if not lines and any(entries[name] != entry for name, entry in found.items()) and _is_writable(folder):
        _write(folder, entries | found)
    return lines


def is_whole(folder: Path) -> bool:
    """Return True if `folder` exists and can be used as it is; otherwise the caller makes it again.

    In a store, and in a read-only cache without a seal, it is accepted as it is. Raises ProvisionError if something
    was changed and cannot be made again.
    """
    if not folder.is_dir():
        return False
    if in_a_store(folder):
        return True
    found = differences(folder)
    if found == []:
        return True
    if _is_writable(folder):
        return False
    if found is None:
        return True
    raise ProvisionError(
        f"{_listed(found)}. {folder.parent} cannot be written to, so that it cannot be rebuilt here: remove {folder} "
        "where it was made, and rebuild it there with './tidemark provision'."
    )


@contextmanager
def made_once(folder: Path) -> Iterator[bool]:
    """Yield True if `folder` must be made now, as it is missing or incomplete; a lock excludes other processes.

    It is sealed in the end. Raises ProvisionError if it was changed and cannot be made again.
    """
    if is_whole(folder):
        yield False
        return
    with exclusive(folder.parent / ".lock"):
        wanted = not is_whole(folder)
        if wanted:
            clear(folder)
        yield wanted
        if wanted:
            seal(folder)


def clear(folder: Path) -> None:
    """Print why `folder` is made again, if it exists, and move it away."""
    if folder.is_dir():
        found = differences(folder)
        why = "it was never checked, or by an earlier release" if found is None else _listed(found)
        print(f"tidemark: {folder} is rebuilt: {why}", file=sys.stderr)
        seal_path(folder).unlink(missing_ok=True)
        # In one step: programs that run from it keep their open files. The code that makes it again removes it.
        replaced = folder.with_name(f".{folder.name}.incoming-replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        folder.rename(replaced)


def read(folder: Path) -> dict[str, Entry] | None:
    """Return the entries of the folder's seal; None if there is none that can be read."""
    try:
        entries = json.loads(seal_path(folder).read_text())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = isinstance(entries, dict) and all(isinstance(each, list) and each for each in entries.values())
    return entries if whole else None


def write(folder: Path, sha256: dict[str, str]) -> None:
    """Seal the files of `folder` that `sha256` names, whose hashes were just checked."""
    if not in_a_store(folder) and _is_writable(folder):
        _write(folder, {name: [*_stats(str(folder / name)), digest] for name, digest in sha256.items()})


def _write(folder: Path, entries: dict[str, Entry]) -> None:
    write_atomically(seal_path(folder), json.dumps({"files": entries}, separators=(",", ":")) + "\n")


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        for name in (*folders, *sorted(names)):
            path = Path(parent, name)
            if path.is_symlink() or (name in names and name != STAMP):
                yield path.relative_to(folder).as_posix(), path


def _stats(path: str) -> list[int | str]:
    """Return size, modification time and inode; empty if the file does not exist."""
    try:
        found = os.lstat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(path: Path) -> Entry:
    stats = _stats(str(path))
    if not stats:
        return []
    if path.is_symlink():
        return [*stats, f"link to {path.readlink()}"]
    try:
        return [*stats, sha256_of(path)]
    except OSError:
        return []


def _is_writable(folder: Path) -> bool:
    return os.access(folder.parent, os.W_OK)


def _listed(found: list[str]) -> str:
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more
