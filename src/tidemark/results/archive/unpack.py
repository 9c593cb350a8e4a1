"""Unpacking of archives: the target does not change before every name, size and hash has been checked."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from tidemark.errors import AnalysisError, ConfigError, DiskFull, is_disk_full
from tidemark.paths import sync_directory
from tidemark.progress import Progress
from tidemark.results.archive.crate import DESCRIBING, METADATA, Member
from tidemark.runs.plan import PlanFile
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields, loaded

AT_ONCE = 1 << 20
MOST_IN_MEMORY = 64 << 20  # largest size of a file that is read into memory: JSON, YAML, a lock
MOST_TIMES, ALWAYS = 100, 64 << 20  # limit of the unpacked size: times the archive's size, or bytes if larger
LONGEST_NAME, LONGEST_PATH = 255, 1024  # bytes of a file name (the limit of file systems), and of a path
PLAN, RUNS = "results/plan.json", "results/runs"
READING = (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, EOFError, ValueError)
# Allowed in an archive, which must not replace the program that unpacks it: DESCRIBING is checked, and not unpacked.
TOPS = ("results", "envs", "config.yaml", *DESCRIBING)


def unpack_archive(archive: Path, root: Path) -> Path:
    """Check `archive`, write the inputs of its results below `root`, and return the path of the plan.

    Raise AnalysisError if it is not a Tidemark archive, contains paths outside `root`, or is damaged, and DiskFull if
    it does not fit. `root` is unchanged in all these cases: files are checked while they are written to another folder
    on its device, and moved into place when all are complete.
    """
    with _opened(archive) as file:
        members = _members(archive, file)
        present = next(folder for folder in (root.absolute(), *root.absolute().parents) if folder.is_dir())
        room, needed = shutil.disk_usage(present).free, sum(member.size for member in _wanted(members))
        if needed > room:
            raise DiskFull(f"{archive}: needs {needed:,} bytes below {root}; the device has {room:,} left")
        try:
            _take_over(archive, file, members, root, present)
        except OSError as error:
            kind = DiskFull if is_disk_full(error) else AnalysisError
            raise kind(f"{archive}: cannot be unpacked below {root}: {error}") from error
    return root / PLAN


def _wanted(members: list[Member]) -> list[Member]:
    return [member for member in members if not member.is_derived]


def _take_over(archive: Path, file: zipfile.ZipFile, members: list[Member], root: Path, present: Path) -> None:
    """Check all members, unpack the wanted ones to a temporary folder in `present`, and move them below `root`."""
    with (
        tempfile.TemporaryDirectory(prefix=".tidemark-unpacking-", dir=present) as folder,
        Progress("archive", sum(member.size for member in members) or 1, " bytes") as progress,
    ):
        done = 0
        for member in members:
            _copy(archive, file, member, None if member.is_derived else Path(folder, member.name))
            done += member.size
            progress.update(done, member.name)
        _refuse_another_plan(archive, Path(folder), {member.name for member in members})
        _replace(root, Path(folder), _wanted(members))


def _replace(root: Path, folder: Path, wanted: list[Member]) -> None:
    """Replace the archive content in `root` by the files of `folder`; the plan, which names all others, comes last."""
    (root / PLAN).unlink(missing_ok=True)
    for stale in (RUNS, "envs"):
        shutil.rmtree(root / stale, ignore_errors=True)
    for member in sorted(wanted, key=lambda each: each.name == PLAN):
        target = root / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        (folder / member.name).replace(target)
    sync_directory((root / PLAN).parent)


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        file = zipfile.ZipFile(archive)
    except FileNotFoundError:
        raise AnalysisError(f"{archive}: not there; './tidemark archive' makes one") from None
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise AnalysisError(f"{archive}: not a zip file that can be read: {error}") from error
    with file:
        yield file


def _members(archive: Path, file: zipfile.ZipFile) -> list[Member]:
    """Return the members that the crate lists; raise AnalysisError unless they match the zip in name and size."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in file.infolist():
        _refuse_unsafe(archive, entry)
        if entry.filename in entries:
            raise AnalysisError(f"{archive}: holds '{entry.filename}' twice; do not use it")
        entries[entry.filename] = entry
    _refuse_conflicts(archive, set(entries))
    _refuse_swelling(archive, file)
    listed = _listed(archive, file, entries)
    surplus, absent = set(entries) - set(listed) - {METADATA}, set(listed) - set(entries)
    if surplus or absent:
        words = [f"'{sorted(surplus)[0]}' is not listed in {METADATA}" if surplus else ""]
        words += [f"{sorted(absent)[0]!r} is listed, but not there" if absent else ""]
        raise AnalysisError(f"{archive}: {'; '.join(filter(None, words))}; do not use it")
    if PLAN not in listed:
        raise AnalysisError(f"{archive}: has no {PLAN}; allowed: an archive that './tidemark archive' wrote")
    for member in listed.values():
        if PurePosixPath(member.name).parts[0] not in TOPS:
            raise AnalysisError(f"{archive}: holds '{member.name}'; allowed: {', '.join(TOPS)}, and what is in them")
        if entries[member.name].file_size != member.size:
            size = entries[member.name].file_size
            raise AnalysisError(f"{archive}: '{member.name}' has {size:,} bytes, listed are {member.size:,}")
        if member.size > MOST_IN_MEMORY and not member.is_derived and not member.name.endswith(".parquet"):
            raise AnalysisError(
                f"{archive}: '{member.name}' has {member.size:,} bytes; allowed: {MOST_IN_MEMORY:,}, but for Parquet. "
                "Nothing of this archive was unpacked."
            )
    return list(listed.values())


def _refuse_unsafe(archive: Path, entry: zipfile.ZipInfo) -> None:
    """Raise AnalysisError unless `entry` is a plain file below the archive's root: no link, not encrypted."""
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
        else "is packed by a method that an archive does not use"  # other methods do not bound the memory of a chunk
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        else "has a name that is too long"
        if len(name.encode()) > LONGEST_PATH or any(len(part.encode()) > LONGEST_NAME for part in path.parts)
        else ""
    )
    if unsafe:
        raise AnalysisError(f"{archive}: the entry {name!r} {unsafe}; nothing of this archive was unpacked")


def _refuse_conflicts(archive: Path, names: set[str]) -> None:
    """Raise AnalysisError if a name denotes both a file and a folder."""
    for name in names:
        for folder in PurePosixPath(name).parents:
            if str(folder) in names:
                raise AnalysisError(f"{archive}: holds '{folder}' as a file and '{name}' in it; do not use it")


def _refuse_swelling(archive: Path, file: zipfile.ZipFile) -> None:
    """Raise AnalysisError if the compression ratio is implausible for run files and their outputs (zip bomb)."""
    size, whole = archive.stat().st_size, sum(entry.file_size for entry in file.infolist())
    if whole > max(MOST_TIMES * size, ALWAYS):
        raise AnalysisError(
            f"{archive}: has {size:,} bytes and holds {whole:,}; allowed: {MOST_TIMES} times its own size. "
            "Nothing of this archive was unpacked."
        )


def _listed(archive: Path, file: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> dict[str, Member]:
    if METADATA not in entries or entries[METADATA].file_size > MOST_IN_MEMORY:
        raise AnalysisError(f"{archive}: has no usable {METADATA}; allowed: an archive of './tidemark archive'")
    try:
        graph = loaded(f"{archive}: {METADATA}", file.read(METADATA))["@graph"]
        files = [
            Member(str(each["@id"]), int(each["contentSize"]), str(each["sha256"]))
            for each in graph
            if each.get("@type") == "File" or (isinstance(each.get("@type"), list) and "File" in each["@type"])
        ]
    except (*READING, KeyError, TypeError, AttributeError) as error:
        raise AnalysisError(f"{archive}: {METADATA} cannot be read: {type(error).__name__}: {error}") from error
    return {member.name: member for member in files}


def _refuse_another_plan(archive: Path, folder: Path, names: set[str]) -> None:
    """Raise AnalysisError if the plan is invalid, or if one of its series is not in the archive."""
    source = f"{archive}: {PLAN}"
    values = loaded(source, (folder / PLAN).read_bytes())
    if not isinstance(values, dict):
        raise AnalysisError(f"{source}: found {type(values).__name__}; allowed: an object")
    for place, series in enumerate(PlanFile.of(Fields(source, values)).series):
        if f"{series.directory}/outcome.json" not in names or not series.directory.startswith(f"{RUNS}/"):
            raise AnalysisError(
                f"{source}: key 'series[{place}].directory': found '{series.directory}'; "
                f"allowed: a folder below {RUNS} whose outcome.json the archive holds"
            )


def _copy(archive: Path, file: zipfile.ZipFile, member: Member, target: Path | None) -> None:
    """Check the content of a member and write it to `target`, if there is one."""
    content = _checked(archive, file, member)
    if target is None:
        for _ in content:
            pass
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as copy:
        for chunk in content:
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())


def _checked(archive: Path, file: zipfile.ZipFile, member: Member) -> Iterator[bytes]:
    """Yield the content of a member in chunks; raise AnalysisError after the last one if its hash is not as listed."""
    summed = hashlib.sha256()
    try:
        with file.open(member.name) as stream:  # ends at the size that the zip declares
            while chunk := stream.read(AT_ONCE):
                summed.update(chunk)
                yield chunk
    except READING as error:
        raise AnalysisError(f"{archive}: '{member.name}' cannot be read: {error}") from error
    if summed.hexdigest() != member.sha256:
        raise AnalysisError(
            f"{archive}: '{member.name}': its list names sha256 {member.sha256}, the file has {summed.hexdigest()}. "
            "It was damaged or changed since it was packed; nothing of this archive was unpacked."
        )


@contextmanager
def opened(place: Path) -> Iterator[RunSet]:
    """Yield the run set of a results folder, of a workspace that has one, or of an archive (unpacked temporarily).

    Raise ConfigError if `place` does not exist; AnalysisError, naming the file, if it is none of these, or if the
    archive is damaged.
    """
    if place.is_file():
        with tempfile.TemporaryDirectory(prefix="tidemark-archive-") as folder:
            yield RunSet.load(unpack_archive(place, Path(folder)).parent)
        return
    if not place.exists():
        raise ConfigError(f"{place}: is not there; allowed: a results folder, or an archive of './tidemark archive'")
    found = next((folder for folder in (place, place / "results") if (folder / "plan.json").is_file()), None)
    if found is None:
        raise AnalysisError(
            f"{place}: found no plan.json; allowed: a results folder, or an archive of './tidemark archive'"
        )
    yield RunSet.load(found)
