"""Tidemark's own Java programs, compiled once by a compiler among the locked jars; the wheel's JVM has none."""

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
    """Return the jar `name` with the classes of `sources`; built once, in a folder named by a hash of its inputs.

    `jars` are those of one lock: the dependencies of the sources and the compiler.
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
    """Pack the files in `folder` into `jar`: class data archives do not support folders on the class path."""
    with zipfile.ZipFile(jar, "w") as archive:
        for path in files_below(folder):
            archive.write(path, path.relative_to(folder))
    # The JVM compares a jar's modification time with the archive's; a Nix store sets all times to this value.
    os.utime(jar, (1, 1))
