"""Python environments from hash-locked requirements: `python -m tidemark.software.environments lock|install`.

This module uses only the standard library, because it runs before an environment exists.

A lock has one line per artifact, `name==version --hash=sha256:HEX  # file-name`: pip checks the hash and ignores
the comment; Nix fetches by the same hash and needs the file name. No line contains the artifact's URL.

The environment of the pipeline is installed in groups (`envs/groups.toml`): a command adds what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tidemark import integrity
from tidemark.errors import ConfigError, ProvisionError, TidemarkError
from tidemark.integrity import sha256_of
from tidemark.paths import exclusive, write_atomically
from tidemark.progress import Progress

LINE = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})  # (?P<file>\S+)$"
)
STAMP = integrity.STAMP
# Groups of a lock's packages, each installed with those before it. The last is the whole lock.
GROUPS = ("commands", "results", "figures", "measuring", "tests")
MEASURING, ALL = GROUPS[3:]
DECLARED = "groups.toml"  # beside a lock whose groups can be installed one by one
# pip lists every version ever released.
CANDIDATES = re.compile(r" \(from versions: [^)]*\)")


@dataclass(frozen=True, slots=True)
class Pin:
    """One line of a lock."""

    name: str
    version: str
    sha256: str
    file: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}  # {self.file}"


def read_lock(path: Path) -> list[Pin]:
    """Return the pins of a lock in its order; raise ConfigError for a line that is not a pin."""
    pins = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        if match is None:
            raise ConfigError(
                f"{path}:{number}: found {line!r}; a line reads 'name==version --hash=sha256:HEX  # file'. "
                f"Make the lock again: python -m tidemark.software.environments lock {path.with_suffix('.in')} {path}"
            )
        pins.append(Pin(**match.groupdict()))
    return pins


def pins_of(lock_file: Path, group: str) -> list[Pin]:
    """Return the pins of `group` and of the groups before it, in the order of the lock."""
    pins = read_lock(lock_file)
    if group == ALL:
        return pins
    declared = tomllib.loads(lock_file.with_name(DECLARED).read_text())
    group_of = {name: key for key, names in declared.items() for name in (*names["packages"], *names["required"])}
    return [pin for pin in pins if GROUPS.index(group_of.get(pin.name, MEASURING)) <= GROUPS.index(group)]


def lock(requirements: Path, target: Path) -> list[Pin]:
    """Resolve `requirements` with pip for this interpreter and platform and write the result to `target`.

    Raise ProvisionError, with `target` unchanged, if pip finds no compatible set.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
        command += ["--disable-pip-version-check", "--progress-bar", "off"]
        command += ["--report", str(report), "-r", str(requirements)]
        said = _followed(command, f"locking {requirements}", _expected(target))
        if said is not None:
            why = "".join(_complaint(said)).strip()
            raise ProvisionError(f"{requirements}: pip found no set that fits together.\n{why}")
        chosen = json.loads(report.read_text())["install"]
    pins = []
    for item in chosen:
        download = item["download_info"]
        file = unquote(Path(urlsplit(download["url"]).path).name)
        sha256 = download["archive_info"]["hashes"]["sha256"]
        pins.append(Pin(item["metadata"]["name"], item["metadata"]["version"], sha256, file))
    pins.sort(key=lambda pin: pin.name.lower())
    head = f"# Made from {target.with_suffix('.in').name}; to change it, edit that file and lock again.\n"
    write_atomically(target, head + "".join(f"{pin}\n" for pin in pins))
    return pins


def _complaint(said: list[str]) -> list[str]:
    """Return pip's error messages without its progress output, or its last lines if pip itself crashed."""
    errors = [place for place, line in enumerate(said) if line.startswith("ERROR:")]
    if not errors or said[errors[0]].startswith("ERROR: Exception"):
        return said[-3:]
    return [CANDIDATES.sub("", line) for line in said[errors[0] :] if line.strip()]


def _expected(target: Path) -> int:
    """Return the expected number of packages: that of the existing `target`, or of the shortest lock next to it."""
    known = [target] if target.exists() else list(target.parent.glob("*.lock"))
    return min((len(read_lock(path)) for path in known), default=100)


def _followed(
    command: list[str], what: str, total: int, environment: Mapping[str, str] | None = None
) -> list[str] | None:
    """Run pip and show its progress through `total` packages; return its output on failure, else None."""
    # If Tidemark is root, servers run as another account, which must be able to execute files of a wheel: the JVM.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        umask=0o022,
        env={**os.environ, **(environment or {})},
    )
    assert process.stdout is not None
    lines: list[str] = []
    with Progress(what, total) as progress:
        fetched = 0
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Collecting "):
                fetched += 1
                progress.update(min(fetched, total), line.split()[1].split("==")[0])
            elif line.startswith("Installing collected"):
                progress.update(total - 1, "unpacking")
    return lines if process.wait() else None


def installed_group(lock_file: Path, target: Path, source: Path | None) -> str | None:
    """Return the last group of the lock's packages that `target` has, by its stamp; None if it must be made."""
    stamp = target / STAMP
    found = stamp.read_text() if stamp.exists() else ""
    known = GROUPS if lock_file.with_name(DECLARED).exists() else (ALL,)
    return next((each for each in known if found == stamp_text(lock_file, target, source, each)), None)


def stamp_text(lock_file: Path, target: Path, source: Path | None, group: str = ALL) -> str:
    """Return the content of `target/.stamp` for a complete environment: the lock's hash and the locations.

    One that has only a part of the lock also names the hash of the groups and its last group.
    """
    part = "" if group == ALL else f"  {sha256_of(lock_file.with_name(DECLARED))}  {group}"
    return f"{sha256_of(lock_file)}  {target.resolve()}  {source.resolve() if source else '-'}{part}\n"


def install(lock_file: Path, target: Path, source: Path | None, group: str = ALL) -> None:
    """Create the virtual environment `target` with the packages in `lock_file` up to those of `group`, and no others.

    `source` is the folder `src` of a clone: the environment can import what is in it (by a .pth file), and its program
    `tidemark` starts the launcher next to it. Do nothing if the environment's stamp shows that it has the group. Add
    the missing packages to one that has fewer; rebuild an incomplete one.
    """
    wanted = GROUPS[GROUPS.index(group) :]
    if installed_group(lock_file, target, source) in wanted and _needs_no_look(target):
        return  # without a write: the environment may be in a read-only folder
    with exclusive(target.parent / f".{target.name}.lock"):
        found = installed_group(lock_file, target, source)
        if found is not None and not _is_whole(target):
            found = None
        if found in wanted:
            return
        made, named = (
            os.path.relpath(path) if path.is_relative_to(Path.cwd()) else path for path in (target, lock_file)
        )
        every, pins = read_lock(lock_file), pins_of(lock_file, group)
        if found is None:
            part = f"the {len(pins)}" if pins == every else f"{len(pins)} of the {len(every)}"
            print(f"Making {made} with {part} packages of {named} (once).", file=sys.stderr)
            _make_empty(target, source)
        else:
            present = pins_of(lock_file, found)
            pins = [pin for pin in pins if pin not in present]
            print(f"Adding {len(pins)} packages of {named} to {made} (once).", file=sys.stderr)
        _fill(target, pins)
        integrity.seal(target)
        write_atomically(target / STAMP, stamp_text(lock_file, target, source, group))


def _make_empty(target: Path, source: Path | None) -> None:
    """Make the environment `target` without packages, in place of one that may be there.

    Only that of a clone gets pip, which takes six seconds: it fills the others.
    """
    integrity.seal_path(target).unlink(missing_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    without = ["--without-pip"] if source is None and find_spec("pip") is not None else []
    command = [sys.executable, "-m", "venv", *without, str(target)]
    with _temporary(target) as environment:
        subprocess.run(command, check=True, env={**os.environ, **environment})
    if source is not None:
        (_site(target) / "tidemark-source.pth").write_text(f"{source.resolve()}\n")
        script = target / "bin" / "tidemark"
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(source.resolve().parent / "tidemark"))} "$@"\n')
        script.chmod(0o755)


def _fill(target: Path, pins: list[Pin]) -> None:
    """Add packages to the environment `target`, which has no stamp until `install` writes one.

    Raises ProvisionError if pip fails. A new environment is removed then. One that had a stamp gets it back if pip had
    unpacked nothing; it is not removed, as other commands may be running in it.
    """
    stamp, before = target / STAMP, sorted(_site(target).iterdir())
    had = stamp.read_text() if stamp.exists() else None
    stamp.unlink(missing_ok=True)
    try:
        with _temporary(target) as environment:
            # One package is available as source only; the locked setuptools builds it, and not an unverified download.
            builders = [pin for pin in pins if pin.name == "setuptools"]
            if builders:
                _pip_install(target, builders, environment)
            _pip_install(target, pins, environment)
    except ProvisionError:
        if had is None:
            shutil.rmtree(target, ignore_errors=True)
        elif sorted(_site(target).iterdir()) == before:
            write_atomically(stamp, had)
        raise


@contextmanager
def _temporary(target: Path) -> Iterator[dict[str, str]]:
    """Yield variables that name a folder for temporary files.

    It is inside the target, which the next start removes: a killed pip leaves its unpacked files behind.
    """
    (folder := target / "tmp").mkdir(parents=True, exist_ok=True)
    try:
        yield {"TMPDIR": str(folder)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _site(target: Path) -> Path:
    return next(target.glob("lib/python3*/site-packages"))


def _needs_no_look(target: Path) -> bool:
    """Return True if an environment matches its seal, or cannot be changed (a store or a read-only folder)."""
    if integrity.in_a_store(target):
        return True
    found = integrity.differences(target)
    return found == [] or (found is None and not os.access(target.parent, os.W_OK))


def _is_whole(target: Path) -> bool:
    """Return True if an existing environment matches its seal; print why one does not."""
    found = integrity.differences(target)
    if found is None:
        found = ["it was never checked, or by an earlier release"]
    if found:
        print(f"tidemark: {target} is rebuilt: {'; '.join(found[:3])}", file=sys.stderr)
    return not found


def _pip_install(target: Path, pins: list[Pin], environment: Mapping[str, str]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=environment["TMPDIR"]) as chosen:
        chosen.write("".join(f"{pin}\n" for pin in pins))
        chosen.flush()
        python = str(target / "bin" / "python")
        own = any(_site(target).glob("pip-*.dist-info"))
        command = [python, "-m", "pip"] if own else [sys.executable, "-m", "pip", "--python", python]
        command += ["install", "--no-deps", "--require-hashes"]
        command += ["--no-build-isolation", "--disable-pip-version-check", "--progress-bar", "off", "-r", chosen.name]
        said = _followed(command, "packages", len(pins) + 1, environment)
    if said is not None:
        raise ProvisionError(
            "pip could not install what the lock names; nothing was kept. Its output:\n" + "".join(said[-25:])
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemark.software.environments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    locking = commands.add_parser("lock", help="resolve a requirements file into a lock")
    locking.add_argument("requirements", type=Path)
    locking.add_argument("target", type=Path)
    installing = commands.add_parser("install", help="make a virtual environment from a lock")
    installing.add_argument("lock", type=Path)
    installing.add_argument("target", type=Path)
    installing.add_argument("--source", type=Path)
    installing.add_argument("--group", choices=GROUPS, default=ALL)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "lock":
            print(f"{chosen.target}: {len(lock(chosen.requirements, chosen.target))} artifacts")
        else:
            install(chosen.lock, chosen.target, chosen.source, chosen.group)
    except TidemarkError as error:
        print(f"tidemark: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("tidemark: interrupted; the next start rebuilds the environment.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
