"""Compare what the flake fetches with the locks: `python tests/nix/fetched.py write|check|change`.

The locks are read here by the parsers that './tidemark' uses, and not by those in nix/: they must agree.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from tidemark.services.programs.provision import read_jar_lock  # noqa: E402
from tidemark.software.environments import read_lock  # noqa: E402

EXPECTED = Path(__file__).parent / "stub" / "fetched.json"
CONDA = ROOT / "envs" / "environment.yaml"
UNUSED = {"docs", "roc-validator", "uv"}  # tools for documents, a test, and machines without Nix: not in the flake
CONDA_HEAD = """\
# The pipeline's environment for those who let Snakemake make it: snakemake --software-deployment-method conda.
# The same artifacts as thesis.lock, which this file is made from: python tests/nix/fetched.py write
# One of them is a source package; pip builds it with a setuptools that it chooses itself.
name: tidemark
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python=3.12
  - pip
  - pip:
"""


def in_locks(root: Path = ROOT) -> dict[str, str]:
    """Return file name -> SHA-256 of every artifact that the locks below `root` name."""
    found: dict[str, str] = {}
    for path in sorted([*(root / "envs").glob("*.lock"), *(root / "envs" / "tools").glob("*.lock")]):
        if path.stem in UNUSED:
            continue
        found |= {pin.file: pin.sha256 for pin in read_lock(path)}
    for path in sorted((root / "envs" / "jars").glob("*/jgo.lock.toml")):
        found |= {jar.file: jar.sha256 for jar in read_jar_lock(path)}
    return found


def conda_environment(root: Path = ROOT) -> str:
    """Return the content that envs/environment.yaml should have."""
    pins = read_lock(root / "envs" / "thesis.lock")
    return CONDA_HEAD + "".join(f"      - {pin.name}=={pin.version} --hash=sha256:{pin.sha256}\n" for pin in pins)


def in_derivations(shown: dict[str, Any]) -> dict[str, str]:
    """Return name -> hash of the fixed outputs among derivations, as `nix show-derivation` prints them."""
    environments = [each.get("env", {}) for each in shown.get("derivations", shown).values()]
    return {each["name"]: each["outputHash"] for each in environments if "outputHash" in each}


def compare(expected: dict[str, str], fetched: dict[str, str], only: bool) -> list[str]:
    """Return the faults, a sentence each; with `only`, fetching anything else is a fault too."""
    wrong = [f"{name} is not fetched" for name in expected.keys() - fetched.keys()]
    wrong += [f"{name} is fetched and no lock names it" for name in fetched.keys() - expected.keys() if only]
    shared = expected.keys() & fetched.keys()
    wrong += [
        f"{name}: the lock names {expected[name]}, fetched is {fetched[name]}"
        for name in shared
        if expected[name] != fetched[name]
    ]
    return sorted(wrong)


def change_a_digit(path: Path, marker: str) -> None:
    """Change the last hexadecimal digit of the first hash in the line (or after the line) that holds `marker`."""
    lines = path.read_text().splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if marker in line)
    number = next(number for number in range(start, len(lines)) if "sha256" in lines[number])
    line = lines[number]
    place = next(p for p in range(len(line) - 64) if all(c in "0123456789abcdef" for c in line[p : p + 64]))
    last = place + 63
    lines[number] = line[:last] + ("0" if line[last] != "0" else "1") + line[last + 1 :]
    path.write_text("".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="accept the locks as they are: write fetched.json and environment.yaml")
    check = commands.add_parser("check", help="compare the locks with derivations, shown as JSON on stdin")
    check.add_argument("--only", action="store_true", help="nothing else may be fetched")
    changed = commands.add_parser("change", help="spoil one hash of a lock")
    changed.add_argument("lock", type=Path)
    changed.add_argument("marker")
    chosen = parser.parse_args()
    if chosen.command == "write":
        EXPECTED.write_text(json.dumps(in_locks(), indent=0, sort_keys=True) + "\n")
        CONDA.write_text(conda_environment())
    elif chosen.command == "change":
        change_a_digit(chosen.lock, chosen.marker)
    else:
        expected = in_locks()
        wrong = compare(expected, in_derivations(json.load(sys.stdin)), chosen.only)
        print("\n".join(wrong) or f"{len(expected)} artifacts are fetched, each by the hash of its lock")
        return 1 if wrong else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
