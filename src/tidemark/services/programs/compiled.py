"""Java programs of ours: compiled once by a compiler that is one of the locked jars, as the wheel's JVM brings none."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tidemark import seals
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import files_below
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, SHORT_LIVED_OPTIONS, class_path
from tidemark.services.programs.process import Child, server_environment
from tidemark.services.programs.provision import private_beside, sha256_of


def compiled(workspace: Workspace, name: str, sources: Sequence[Path], jars: Sequence[Path]) -> Path:
    """The jar `name` with the classes of `sources`, in a folder named by what it is made of and so made once.

    `jars` are those of a lock, with what the sources use; the compiler is one of them.
    """
    made_of = name + "".join([*map(sha256_of, sources), *(jar.name for jar in jars)])
    classes = workspace.cache / "classes" / hashlib.sha256(made_of.encode()).hexdigest()[:16]
    (compiler,) = (jar for jar in jars if jar.name.startswith("ecj-"))
    with seals.made_once(classes) as wanted:
        if wanted:
            with private_beside(classes) as incoming:
                command: list[str | Path] = [JAVA, *COMMON_OPTIONS, *SHORT_LIVED_OPTIONS]
                command += ["-jar", compiler, "-17", "-nowarn"]
                command += ["-cp", class_path(list(jars)), "-d", incoming / "compiled", *sources]
                log = incoming / "compile.log"
                Child.start("The Java compiler", command, log, env=server_environment(), cwd=incoming).run_to_end(120)
                _pack(incoming / "compiled", private_directory(incoming / "whole") / name)
                (incoming / "whole").rename(classes)
    return classes / name


def _pack(folder: Path, jar: Path) -> None:
    """Put what lies in `folder` into `jar`: a JVM takes no archive of class data for a class path with folders."""
    with zipfile.ZipFile(jar, "w") as archive:
        for path in files_below(folder):
            archive.write(path, path.relative_to(folder))
    # The JVM compares a jar's time with the archive's, and a Nix store sets all times to this one.
    os.utime(jar, (1, 1))
