"""Folders that were checked once, and a cheap look whether they are still what they were.

A seal lies beside its folder and names each file with its size, the time of its last change, its inode and its
SHA-256, as they were when the hash of what the files came from had been checked. Before each use size, time and inode
are compared, which takes microseconds a file; a file that differs in one of them is hashed, and only a file with
another content, or none, is a difference: a cache that was copied stays whole. The whole by hash is for `--verify`.

Byte code that Python puts beside its sources is left out. This module uses the standard library alone, because
environments are sealed before there is one.
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
from tidemark.paths import only_one, write_atomically

Entry = list[int | str]  # size, mtime_ns, inode, sha256; of a link: where it leads
LEFT_OUT = ("__pycache__",)
STAMP = ".stamp"  # of an environment: says by itself what it was made from
SHOWN = 3


def seal_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name.lstrip('.')}.seal")


def in_a_store(folder: Path) -> bool:
    """Whether nobody changes what lies in `folder`: a Nix store, whose paths are named by what they hold.

    No seal is written there: times and inodes are not kept by a store, and a build must come out the same each time.
    """
    store = Path(os.environ.get("NIX_STORE", "/nix/store"))
    return folder.absolute().is_relative_to(store) or folder.resolve().is_relative_to(store)


def seal(folder: Path) -> None:
    """Note what lies in `folder`, which was just made from what had been checked."""
    if not in_a_store(folder):
        _write(folder, {name: _entry(path) for name, path in _files(folder)})


def differences(folder: Path, *, by_hash: bool = False) -> list[str] | None:
    """What is not as it was when `folder` was sealed, a sentence each; None where there is no seal.

    `by_hash`: the content of every file is compared, whatever size, time and inode say.
    """
    entries = read(folder)
    if entries is None:
        return None
    doubtful = []
    for name, entry in entries.items():
        path = f"{folder}/{name}"
        if by_hash or _stats(path) != entry[:-1]:
            doubtful.append(name)
    if not doubtful:
        return []
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # hashing leaves Python's lock to others
        found = dict(zip(doubtful, pool.map(lambda name: _entry(Path(folder, name)), doubtful), strict=True))
    said = []
    for name, entry in found.items():
        if not entry:
            said.append(f"{folder / name} is missing")
        elif entry[-1] != entries[name][-1]:
            said.append(f"{folder / name} was changed")
    if not said and any(entries[name] != entry for name, entry in found.items()) and _is_writable(folder):
        _write(folder, entries | found)
    return said


def is_whole(folder: Path) -> bool:
    """Whether `folder` is there and can be used as it is; for whoever makes it anew where it is not.

    In a store, and in a cache that cannot be written to and has no seal, it is taken as it is. ProvisionError where
    something was changed and cannot be made anew.
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
    """Whether `folder` is to be made now, as it is not there or not whole; nobody else makes it meanwhile.

    It is sealed in the end. ProvisionError where it was changed and cannot be made anew.
    """
    if is_whole(folder):
        yield False
        return
    with only_one(folder.parent / ".lock"):
        wanted = not is_whole(folder)
        if wanted:
            clear(folder)
        yield wanted
        if wanted:
            seal(folder)


def clear(folder: Path) -> None:
    """Say why `folder` is made anew, if it is there, and put it out of the way."""
    if folder.is_dir():
        found = differences(folder)
        why = "it was never checked, or by an earlier release" if found is None else _listed(found)
        print(f"tidemark: {folder} is rebuilt: {why}", file=sys.stderr)
        break_seal(folder)
        # In one step: whoever runs from it goes on with the files that it has open. What makes it anew removes it.
        replaced = folder.with_name(f".{folder.name}.incoming-replaced")
        shutil.rmtree(replaced, ignore_errors=True)
        folder.rename(replaced)


def break_seal(folder: Path) -> None:
    """Have `folder` made anew by its next use."""
    seal_path(folder).unlink(missing_ok=True)


def read(folder: Path) -> dict[str, Entry] | None:
    """The entries of the folder's seal; None where there is none that can be read."""
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
    """Size, time of the last change, and inode; nothing where there is no file."""
    try:
        found = os.lstat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def _entry(path: Path) -> Entry:
    stats = _stats(str(path))
    if not stats:
        return []
    if path.is_symlink():
        return [*stats, f"link to {path.readlink()}"]
    try:
        with path.open("rb") as file:
            return [*stats, hashlib.file_digest(file, "sha256").hexdigest()]
    except OSError:
        return []


def _is_writable(folder: Path) -> bool:
    return os.access(folder.parent, os.W_OK)


def _listed(found: list[str]) -> str:
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more
