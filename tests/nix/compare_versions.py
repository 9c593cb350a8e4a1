"""`compare_versions.py HERE.json NIX.json`: fail if the two ways run different versions without a listed reason."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

ALLOWED = Path(__file__).with_name("differences.toml")


def differences(here: dict[str, str], nix: dict[str, str], allowed: set[str]) -> tuple[list[str], list[str]]:
    """Return sentences about the differences: those with a listed reason, and those without one."""
    listed: list[str] = []
    unlisted: list[str] = []
    for name in sorted(here.keys() | nix.keys()):
        ours, theirs = here.get(name, "nothing"), nix.get(name, "nothing")
        if ours != theirs:
            (listed if name in allowed else unlisted).append(f"{name}: ./tidemark has {ours}, Nix has {theirs}")
    return listed, unlisted


def main() -> int:
    here, nix = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
    reasons = tomllib.loads(ALLOWED.read_text())
    listed, unlisted = differences(here, nix, set(reasons))
    for sentence in listed:
        print(f"differs, as listed: {sentence} ({reasons[sentence.partition(':')[0]]['reason']})")
    for sentence in unlisted:
        print(f"differs: {sentence}; make them equal or list it with a reason in {ALLOWED.name}", file=sys.stderr)
    print(f"{len(here)} versions compared, {len(listed) + len(unlisted)} differ")
    return 1 if unlisted or not here else 0


if __name__ == "__main__":
    sys.exit(main())
