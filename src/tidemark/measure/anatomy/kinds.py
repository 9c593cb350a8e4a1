"""Kinds of the files of a table."""

from __future__ import annotations

from pathlib import PurePath

KINDS = {"_delta_log": "log", ".hoodie": "log", "_transactions": "log", "_versions": "manifest", "snapshot": "metadata"}
ENDINGS = {
    ".crc": "checksum",
    ".metadata.json": "metadata",
    ".parquet": "data",
    ".orc": "data",
    ".lance": "data",
    ".json": "metadata",
}


def kind_of(path: PurePath) -> str:
    """Return the kind of a table's file by its name and folder: data, log, checkpoint, manifest, manifest list, ..."""
    name = path.name
    if "catalog." in name:
        return "catalog"
    if "checkpoint" in name and not name.endswith(".crc"):
        return "checkpoint"
    if "manifest-list" in name or (name.startswith("snap-") and name.endswith(".avro")):
        return "manifest list"
    if name.endswith(".avro") or name.startswith("manifest-"):
        return "manifest"
    by_folder = (kind for part, kind in KINDS.items() if part in path.parts[:-1])
    by_ending = (kind for ending, kind in ENDINGS.items() if name.endswith(ending))
    return next(by_folder, None) or next(by_ending, "other")
