"""`--verify`: comparison of every provisioned file by hash; a start compares only size, time and inode."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tidemark import integrity
from tidemark.errors import ProvisionError
from tidemark.integrity import sha256_of
from tidemark.paths import Workspace
from tidemark.services.programs.provision import LOCKS, read_jar_lock
from tidemark.software.environments import STAMP

# Folders of the cache.
MADE = ("postgres", "mariadb", "polaris", "classes", "class-data", "kafka-storage", "envs", "tools")


@dataclass(frozen=True, slots=True)
class Checked:
    """One artifact: its location, how it was compared, and the differences found."""

    path: Path
    how: str
    problems: tuple[str, ...]


def verify(workspace: Workspace, locks: Path = LOCKS) -> list[Checked]:
    """Check everything in the cache and this process's environment; artifacts that do not exist yet are skipped."""
    found = []
    for lock in sorted(locks.glob("*/jgo.lock.toml")):
        folder = workspace.cache / "jars" / lock.parent.name
        if folder.is_dir():
            jars = [(folder / jar.file, jar.sha256) for jar in read_jar_lock(lock)]
            wrong = [f"{path} is not the locked one" for path, digest in jars if _differs(path, digest)]
            found.append(Checked(folder, f"{len(jars)} jars against their lock", tuple(wrong)))
    made = [path for kind in MADE for path in sorted((workspace.cache / kind).glob("[!.]*")) if path.is_dir()]
    for folder in [*made, Path(sys.prefix)]:
        if integrity.in_a_store(folder):
            found.append(Checked(folder, "in a store, which checks it itself", ()))
            continue
        problems = integrity.differences(folder, by_hash=True)
        if problems is not None:
            found.append(Checked(folder, "each file against its seal", tuple(problems)))
        elif folder in made:
            found.append(Checked(folder, "not compared: it has no seal yet; its next use looks at it", ()))
    return found


def verify_or_refuse(workspace: Workspace) -> None:
    """Raise ProvisionError if anything differs; the artifact is invalidated, and running again rebuilds it."""
    found = verify(workspace)
    wrong = [each for each in found if each.problems]
    for each in wrong:
        _put_out_of_use(each, workspace)
    if wrong:
        told = "; ".join(problem for each in wrong for problem in each.problems[: integrity.SHOWN])
        raise ProvisionError(
            f"--verify: of {len(found)} provisioned artifacts {len(wrong)} are not as they were made: {told}. If you "
            "changed nothing, look at the disk. They will not be used: run the command again to rebuild them."
        )
    print(f"tidemark: --verify: {len(found)} provisioned artifacts are as they were made", file=sys.stderr)


def _differs(path: Path, sha256: str) -> bool:
    return path.is_file() and sha256_of(path) != sha256


def _put_out_of_use(wrong: Checked, workspace: Workspace) -> None:
    if wrong.path.parent == workspace.cache / "jars":
        for lock in LOCKS.glob(f"{wrong.path.name}/jgo.lock.toml"):
            for jar in read_jar_lock(lock):
                if _differs(wrong.path / jar.file, jar.sha256):
                    (wrong.path / jar.file).unlink()
    else:
        integrity.seal_path(wrong.path).unlink(missing_ok=True)
        (wrong.path / STAMP).unlink(missing_ok=True)  # of an environment
