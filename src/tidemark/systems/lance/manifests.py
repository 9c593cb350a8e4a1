"""Reader of a Lance table's manifests, without Lance: each manifest is complete, and each commit adds one.

The format is Lance's own (table.proto): a protocol buffers message, preceded by its length. Its offset is in the last
bytes of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = "_versions"
LAST_VERSION = (1 << 64) - 1  # files are named by this minus the version, so that the newest comes first
TAIL = struct.Struct("<QHH4s")  # offset of the message, major and minor version, MAGIC
MAGIC = b"LANC"
FRAGMENTS, TIMESTAMP = 2, 7  # fields of a manifest
FILES, PHYSICAL_ROWS = 2, 4  # of a fragment
PATH = 1  # of a file
SECONDS, NANOSECONDS = 1, 2  # of a timestamp
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # wire types


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of the table."""

    at_ms: float  # Unix time
    rows: int
    files: tuple[str, ...]  # in the table's folder `data`


def paths(table: Path) -> list[Path]:
    """Return the manifests of the table in a folder, oldest first."""
    return sorted((table / FOLDER).glob("*.manifest"), reverse=True)


def version_of(path: Path) -> int:
    return LAST_VERSION - int(path.stem)


def read(path: Path) -> Manifest:
    """Read a manifest; raise ValueError if the file is not one."""
    content = memoryview(path.read_bytes())
    place, _, _, magic = TAIL.unpack(content[-TAIL.size :])
    if magic != MAGIC:
        raise ValueError(f"{path} does not end as a manifest of Lance")
    (length,) = struct.unpack_from("<I", content, place)
    at_ms, rows, files = 0.0, 0, []
    for field, _, value in _fields(content[place + 4 : place + 4 + length]):
        if field == TIMESTAMP:
            parts = {part: number for part, number, _ in _fields(value)}
            at_ms = parts.get(SECONDS, 0) * 1e3 + parts.get(NANOSECONDS, 0) / 1e6
        elif field == FRAGMENTS:
            for part, number, file in _fields(value):
                if part == PHYSICAL_ROWS:
                    rows += number
                elif part == FILES:
                    files += [bytes(name).decode() for inner, _, name in _fields(file) if inner == PATH]
    return Manifest(at_ms, rows, tuple(files))


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield the number of each field of a message, its integer value, and its bytes, which may be a message."""
    place, nothing = 0, message[:0]
    while place < len(message):
        key, place = _varint(message, place)
        field, kind = key >> 3, key & 7
        if kind == VARINT:
            number, place = _varint(message, place)
            yield field, number, nothing
            continue
        if kind == BYTES:
            size, place = _varint(message, place)
        elif kind in (FIXED_64, FIXED_32):
            size = 8 if kind == FIXED_64 else 4
        else:
            raise ValueError(f"found a field of kind {kind}, which messages of today do not have")
        yield field, 0, message[place : place + size]
        place += size


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return the integer that begins at `place`, and the offset after it."""
    number = shift = 0
    while True:
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
        shift += 7
