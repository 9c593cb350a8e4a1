"""The way back from an archive: nothing is written before every name, size and hash has been checked."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tidemark.errors import AnalysisError, DiskFull
from tidemark.paths import write_atomically
from tidemark.progress import Progress
from tidemark.results.archive.pack import DERIVED, METADATA
from tidemark.runs.coding.fields import Fields
from tidemark.runs.plan import PlanFile

AT_ONCE = 1 << 20
MOST_METADATA = 64 << 20
PLAN = "results/plan.json"


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    size: int
    sha256: str

    @property
    def is_derived(self) -> bool:
        """Whether it is made from the others, so that it is not taken over but made again."""
        parts = PurePosixPath(self.name).parts
        return parts[0] == "results" and len(parts) > 1 and parts[1] in DERIVED


def unpack_archive(archive: Path, root: Path) -> Path:
    """Check `archive` and put what its results are made from below `root`; returns the plan's path.

    AnalysisError for what is not an archive of ours, tries to leave `root` or is not as it was packed; DiskFull
    where it does not fit. In all cases nothing of it is written.
    """
    with _opened(archive) as file:
        members = _members(archive, file)
        wanted = [member for member in members if not member.is_derived]
        room = _room(root)
        needed = sum(member.size for member in wanted)
        if needed > room:
            raise DiskFull(f"{archive}: needs {needed:,} bytes below {root}; the device has {room:,} left")
        with Progress("archive", 2 * sum(member.size for member in members) or 1, " bytes") as progress:
            done = 0
            for member in members:
                content = _read(archive, file, member)
                if member.name == PLAN:
                    _refuse_another_plan(archive, content)
                done += member.size
                progress.update(done, member.name)
            for stale in ("results/runs", "envs"):
                shutil.rmtree(root / stale, ignore_errors=True)
            # The plan comes last: where it is, everything else is.
            for member in sorted(wanted, key=lambda each: each.name == PLAN):
                write_atomically(root / member.name, _read(archive, file, member))
                done += member.size
                progress.update(done, member.name)
    return root / PLAN


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        file = zipfile.ZipFile(archive)
    except FileNotFoundError:
        raise AnalysisError(f"{archive}: not there; './tidemark archive' makes one") from None
    except (zipfile.BadZipFile, OSError) as error:
        raise AnalysisError(f"{archive}: not a zip file that can be read: {error}") from error
    with file:
        yield file


def _room(root: Path) -> int:
    present = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    return shutil.disk_usage(present).free


def _members(archive: Path, file: zipfile.ZipFile) -> list[Member]:
    """What the crate lists, once it and the zip agree on names and sizes."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in file.infolist():
        _refuse_unsafe(archive, entry)
        if entry.filename in entries:
            raise AnalysisError(f"{archive}: holds '{entry.filename}' twice; do not use it")
        entries[entry.filename] = entry
    listed = _listed(archive, file, entries)
    surplus, absent = set(entries) - set(listed) - {METADATA}, set(listed) - set(entries)
    if surplus or absent:
        words = [f"'{sorted(surplus)[0]}' is not listed in {METADATA}" if surplus else ""]
        words += [f"'{sorted(absent)[0]}' is listed, but not there" if absent else ""]
        raise AnalysisError(f"{archive}: {'; '.join(filter(None, words))}; do not use it")
    if PLAN not in listed:
        raise AnalysisError(f"{archive}: has no {PLAN}; allowed: an archive that './tidemark archive' wrote")
    for member in listed.values():
        if entries[member.name].file_size != member.size:
            found = entries[member.name].file_size
            raise AnalysisError(f"{archive}: '{member.name}' has {found:,} bytes, listed are {member.size:,}")
    return list(listed.values())


def _refuse_unsafe(archive: Path, entry: zipfile.ZipInfo) -> None:
    """Only plain files below the archive's root: no way out of it, no links, nothing encrypted."""
    name, path = entry.orig_filename, PurePosixPath(entry.filename)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    unsafe = (
        "leaves the archive"
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name
        else "is not written plainly"
        if str(path) != name or not name.isprintable()
        else "is a link or another special file"
        if kind not in (0, stat.S_IFREG) or entry.is_dir()
        else "is encrypted"
        if entry.flag_bits & 0x1
        else ""
    )
    if unsafe:
        raise AnalysisError(f"{archive}: the entry {name!r} {unsafe}; nothing of this archive was unpacked")


def _listed(archive: Path, file: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> dict[str, Member]:
    if METADATA not in entries or entries[METADATA].file_size > MOST_METADATA:
        raise AnalysisError(f"{archive}: has no usable {METADATA}; allowed: an archive of './tidemark archive'")
    try:
        graph: list[dict[str, Any]] = json.loads(file.read(METADATA))["@graph"]
        found = [
            Member(str(each["@id"]), int(each["contentSize"]), str(each["sha256"]))
            for each in graph
            if each.get("@type") == "File"
        ]
    except (ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise AnalysisError(f"{archive}: {METADATA} cannot be read: {type(error).__name__}: {error}") from error
    return {member.name: member for member in found}


def _refuse_another_plan(archive: Path, content: bytes) -> None:
    """AnalysisError for a plan that no result could be made of: it may be a round's, and has to be that round's."""
    source = f"{archive}: {PLAN}"
    try:
        values = json.loads(content)
    except ValueError as error:
        raise AnalysisError(f"{source}: cannot be read as JSON: {error}") from error
    if not isinstance(values, dict):
        raise AnalysisError(f"{source}: found {type(values).__name__}; allowed: an object")
    PlanFile.of(Fields(source, values))


def _read(archive: Path, file: zipfile.ZipFile, member: Member) -> bytes:
    """The content of a member, never more of it than is listed."""
    content, summed = bytearray(), hashlib.sha256()
    try:
        with file.open(member.name) as stream:
            while chunk := stream.read(AT_ONCE):
                content += chunk
                summed.update(chunk)
                if len(content) > member.size:
                    raise AnalysisError(f"{archive}: '{member.name}' is larger than it is listed; do not use it")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, EOFError) as error:
        raise AnalysisError(f"{archive}: '{member.name}' cannot be read: {error}") from error
    if summed.hexdigest() != member.sha256:
        raise AnalysisError(
            f"{archive}: '{member.name}': its list names sha256 {member.sha256}, the file has {summed.hexdigest()}. "
            "It was damaged or changed since it was packed; nothing of this archive was unpacked."
        )
    return bytes(content)
