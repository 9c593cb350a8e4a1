"""Software stacks: the same systems in other versions, each in a separate environment.

A stack is a lock in `envs/`. The pipeline runs in the environment of one stack; the series of every other stack are
measured by a worker in that stack's environment, which is created from its lock on first use.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tidemark.errors import ConfigError, ProvisionError
from tidemark.integrity import sha256_of
from tidemark.paths import REPOSITORY, Workspace
from tidemark.services.base import Service
from tidemark.services.programs.provision import jar_lock
from tidemark.services.programs.tools import tool_lock
from tidemark.services.servers import locks_of, tools_of
from tidemark.software.environments import install, lock, read_lock
from tidemark.systems.delta.table import DELTA_RS
from tidemark.systems.duckdb_client import DUCKDB
from tidemark.systems.iceberg.client import PYICEBERG
from tidemark.systems.paimon import PAIMON

ENVS = REPOSITORY / "envs"
CLIENTS = (DUCKDB, PYICEBERG, DELTA_RS, PAIMON)
PIPELINE = "thesis"  # the stack whose environment the pipeline itself runs in
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def names() -> list[str]:
    """Return the names of the stacks that have a lock."""
    return sorted(path.stem for path in ENVS.glob("*.lock"))


def lock_of(stack: str) -> Path:
    """Return the lock of `stack`; raise ConfigError if there is none."""
    if stack not in names():
        raise ConfigError(
            f"key 'stacks': found '{stack}'; allowed: {', '.join(names())}. './tidemark stack add' adds one."
        )
    return ENVS / f"{stack}.lock"


def locks(stack: str, services: Iterable[type[Service]], tools: Iterable[str] = ()) -> dict[str, str]:
    """Return the SHA-256 of every lock that decides what a series runs: `stack`, jars and tools of `services`, `tools`.

    Other locks are not included, so a new or changed lock of an unrelated server does not make a series stale.
    """
    kinds = list(services)
    jars = [jar_lock(name, ENVS / "jars") for name in locks_of(kinds)]
    paths = [lock_of(stack), *jars, *map(tool_lock, dict.fromkeys((*tools, *tools_of(kinds))))]
    return {path.relative_to(ENVS.parent).as_posix(): sha256_of(path) for path in paths}


def environment(stack: str, workspace: Workspace) -> Path:
    """Return the folder of the stack's environment; it changes with the lock."""
    return workspace.cache / "envs" / f"{stack}-{sha256_of(lock_of(stack))[:12]}"


def python(stack: str, workspace: Workspace, ours: str = sys.executable) -> Path:
    """Return the interpreter that measures the series of `stack`; `ours` is that of the pipeline's own stack."""
    return Path(ours) if stack == PIPELINE else environment(stack, workspace).absolute() / "bin" / "python"


def provide(stack: str, workspace: Workspace) -> Path:
    """Create the stack's environment unless it exists, and return its interpreter."""
    if stack != PIPELINE:
        install(lock_of(stack), environment(stack, workspace), None)
    return python(stack, workspace)


def with_release(requirements: str, package: str, version: str) -> str:
    """Return the text of a requirements file with another release of `package`, and of its DuckDB extensions."""
    pinned = re.compile(rf"(?m)^({re.escape(package)}(?:-extension-[\w-]+)?(?:\[\w+\])?)==.*$")
    return pinned.sub(rf"\g<1>=={version}", requirements)


def lock_release(name: str, package: str, version: str, base: str) -> None:
    """Lock the stack `name` unless it is there: the requirements of `base`, with another release of one package.

    Raise ProvisionError if they cannot be resolved, in one line.
    """
    if (ENVS / f"{name}.lock").exists():
        return
    lock_of(base)
    kept = ENVS / f"{name}.in"
    kept.write_text(with_release((ENVS / f"{base}.in").read_text(), package, version))
    try:
        lock(kept, ENVS / f"{name}.lock")
    except ProvisionError as error:
        kept.unlink()
        lines = str(error).splitlines()
        why = next((line for line in lines if line.startswith("ERROR: ")), lines[-1])
        raise ProvisionError(f"{package} {version}: {why.removeprefix('ERROR: ')}") from error
    except BaseException:
        kept.unlink()
        raise


def copy(name: str, source: str) -> None:
    """Make the stack `name` unless it is there: the packages of the stack `source`, in an environment of its own."""
    if not (ENVS / f"{name}.lock").exists():
        for path in (ENVS / f"{source}.in", lock_of(source)):
            shutil.copyfile(path, path.with_stem(name))


def other_packages(stack: str, before: str, package: str) -> list[str]:
    """Return in words the packages other than `package`, and its extensions, that two stacks have in other versions."""
    now, then = ({pin.name: pin.version for pin in read_lock(lock_of(each))} for each in (stack, before))
    names = sorted({*now, *then}, key=str.lower)
    return [
        f"{name} {then.get(name, 'absent')} → {now.get(name, 'absent')}"
        for name in names
        if now.get(name) != then.get(name) and not name.startswith(package)
    ]


def add(name: str, requirements: Path, workspace: Workspace) -> int:
    """Lock `requirements` as the stack `name`, create its environment, and run the conformance suite in it.

    An existing stack is locked again only from its own file in `envs/`. Return pytest's exit code; the lock is kept
    whatever the result, and the suite's report names the failures. Raise ConfigError for an invalid or used name, and
    ProvisionError if the requirements cannot be resolved; neither leaves a file behind.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(f"found the stack name '{name}'; allowed: letters, digits and hyphens, as in 'next-year'")
    if name == PIPELINE:
        raise ConfigError(f"the stack '{PIPELINE}' is the one that the pipeline runs in; choose another name")
    if not requirements.is_file():
        raise ProvisionError(f"{requirements}: no such file; a stack begins with a requirements file, as envs/*.in are")
    kept, locked = ENVS / f"{name}.in", ENVS / f"{name}.lock"
    anew = requirements.resolve() == kept.resolve()
    if locked.exists() and not anew:
        raise ConfigError(
            f"the stack '{name}' exists already; choose another name, or change {kept} and lock it again with "
            f"'./tidemark stack add {name} --from {kept}'"
        )
    pins = lock(requirements, locked)
    if not anew:
        shutil.copyfile(requirements, kept)
    _say(f"{locked}: {len(pins)} packages; the conformance suite is run on them now, which takes minutes")
    for remark in remarks({pin.name: pin.version for pin in pins}):
        _say(remark)
    code = conform(name, workspace)
    if code == 0:
        _say(f"every system conforms; ./tidemark all --config 'stacks=[{name}]' measures with '{name}'")
    else:
        _say(f"'{name}' does not conform, as reported above; it stays in {kept} and {locked} until you remove them")
    return code


def remarks(pins: Mapping[str, str]) -> list[str]:
    """Return remarks about pinned client versions (by package) that no system was written for."""
    found = (client.remark(pins[client.package]) for client in CLIENTS if client.package in pins)
    return [remark for remark in found if remark]


def _say(text: str) -> None:
    print(f"tidemark: {text}", file=sys.stderr)


def conform(stack: str, workspace: Workspace) -> int:
    """Run the conformance suite in the environment of `stack` and return pytest's exit code."""
    root = ENVS.parent
    environ = {**os.environ, "PYTHONPATH": str(root / "src"), "TIDEMARK_CACHE": str(workspace.cache.absolute())}
    command = [provide(stack, workspace), "-m", "pytest", "-q", "-m", "not long", "tests/conformance"]
    return subprocess.run([str(part) for part in command], cwd=root, env=environ, check=False).returncode
