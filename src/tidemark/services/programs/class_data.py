"""Archives of class data (JEP 310): what a server's JVM would else read, check and link anew at each start.

The wheel's JVM brings none, not even of its own classes. One is made of the classes that a server was seen to load,
once, and mapped at each start. The JVM itself looks whether its version and the class path are those of the archive,
and starts without it where they are not: an archive saves time, and can fail nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

from tidemark import seals
from tidemark.paths import Workspace, private_directory
from tidemark.progress import Progress
from tidemark.services.programs.java import JAVA, class_path, runtime_release
from tidemark.services.programs.process import Child, give, server_environment
from tidemark.services.programs.provision import private_beside

ARCHIVE = "classes.jsa"
# References within a heap that may grow beyond 32 GB, as it may by default on a large machine, take more room: an
# archive from such a JVM fits none of ours. Below that the size of the heap does not matter.
HEAP = "-Xmx1g"


class Trainee(Protocol):
    """A server that can be started to see what it loads."""

    directory: Path

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def practise(self) -> None:
        """Do what a run has it do."""

    def remove_data(self) -> None: ...


def mapping(archive: Path | None) -> tuple[str, ...]:
    """The options of a JVM that maps `archive`, or none."""
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}",)


def class_data(
    workspace: Workspace,
    name: str,
    options: Sequence[str],
    jars: Sequence[Path],
    trainee: Callable[[tuple[str, ...]], Trainee],
) -> Path | None:
    """The archive for the server `name`, whose class path is `jars`; None where it is not there and cannot be put.

    `trainee` makes the server, with further options for its JVM, that shows which classes it loads.
    `options` are those of its JVM that decide how classes and objects lie in memory. What the JVM compares, the
    size and the time of each jar among it, is in the archive's name: jars that were fetched again get a new one.
    """
    stats = [(jar.name, jar.stat()) for jar in jars]
    made_of = [runtime_release(), *options, *(f"{file} {stat.st_size} {int(stat.st_mtime)}" for file, stat in stats)]
    digest = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]
    folder = workspace.cache / "class-data" / f"{name}-{digest}"
    if not folder.is_dir() and not os.access(workspace.cache, os.W_OK):
        return None
    with seals.made_once(folder) as wanted:
        if wanted:
            with private_beside(folder) as incoming, Progress(f"class data of {name}", 2) as progress:
                # Its list is written by the server, which does not run as root.
                classes, whole = give(private_directory(incoming / "seen")) / "classes.list", incoming / "whole"
                whole.mkdir(mode=0o700)
                _train(trainee((f"-XX:DumpLoadedClassList={classes}",)))
                progress.update(1, "archive")
                command: list[str | Path] = [JAVA, *options, HEAP, "-Xshare:dump", f"-XX:SharedClassListFile={classes}"]
                command += [*mapping(whole / ARCHIVE), "-cp", class_path(list(jars))]
                log = incoming / "dump.log"
                what = f"The JVM that archives the classes of {name}"
                Child.start(what, command, log, env=server_environment(), cwd=incoming).run_to_end(300)
                whole.rename(folder)
    return folder / ARCHIVE


def _train(server: Trainee) -> None:
    try:
        with server:
            server.practise()
    finally:
        server.remove_data()
        shutil.rmtree(server.directory, ignore_errors=True)
