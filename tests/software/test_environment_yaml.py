from __future__ import annotations

import re
from pathlib import Path

import yaml

from tidemark.software.environments import read_lock

ENVS = Path(__file__).parents[2] / "envs"
AGAIN = "the lock changed: run 'python tests/nix/fetched.py write'"


def test_conda_gets_the_python_and_the_artifacts_of_the_lock() -> None:
    dependencies = yaml.safe_load((ENVS / "environment.yaml").read_text())["dependencies"]
    (by_pip,) = (each["pip"] for each in dependencies if isinstance(each, dict))
    from_channels = [each for each in dependencies if isinstance(each, str)]
    assert from_channels == ["python=3.12", "pip"]
    locked = [f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256}" for pin in read_lock(ENVS / "thesis.lock")]
    assert by_pip == locked, AGAIN


def test_pins_have_only_names_versions_and_hashes() -> None:
    text = (ENVS / "environment.yaml").read_text()
    pinned = re.findall(r"^      - (.+)$", text, re.MULTILINE)
    assert pinned
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in pinned)
