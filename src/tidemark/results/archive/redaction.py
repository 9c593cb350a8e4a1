"""Redaction of archives: folders that the author configured or worked in, since they identify a person or machine.

File names are kept. No result depends on a folder: series are identified by fingerprints, datasets by SHA-256.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from tidemark.runs.runset import RunSet

# Keys of the configuration that name files or folders of the machine.
PATHS = ("dataset.path", "services.polaris_path", "services.polaris_secret_file", "archive")
PRIVATE = ".tidemark"  # folder of a workspace that contains the measured tables
TEXTS = frozenset({".json", ".yaml", ".html", ".csv", ".md"})


class Discretion:
    """Removal of private folders from the contents of packed files."""

    def __init__(self, run_set: RunSet) -> None:
        """Collect folders from the plan, config.yaml, the location of the results, and the original workspaces."""
        workspace = run_set.results.parent.absolute()
        typed = [*_typed(json.loads((run_set.results / "plan.json").read_text())["config"])]
        configuration = workspace / "config.yaml"
        if configuration.is_file():
            typed += _typed(yaml.safe_load(configuration.read_text()))
        shorter = {path: PurePosixPath(path).name for path in typed if "/" in path.strip("/")}
        roots = {str(workspace), str(workspace.resolve()), *_workspaces(run_set)} - {"", "/"}
        whole = _spelt(shorter | {f"{root}/": "" for root in roots})
        # delta-rs omits the leading slash of paths. Roots of a single folder are skipped: their name is too common.
        bare = _spelt({f"{root[1:]}/": "" for root in roots if "/" in root[1:]})
        self._shorter = {**bare, **whole}
        self._folders = re.compile(b"|".join([*_amid(rb"\w.~-", whole), *_amid(rb"\w.~/-", bare)]))

    def content(self, path: Path) -> bytes:
        """Return the content of the file at `path` as stored in the archive."""
        content = path.read_bytes()
        if path.suffix in TEXTS:
            return self._folders.sub(lambda found: self._shorter[found[0]], content)
        return content


def _workspaces(run_set: RunSet) -> Iterator[str]:
    """Yield the workspaces in which runs were measured, according to the locations of their tables."""
    for run in (*run_set.runs, *run_set.kept_runs):
        for _, value in run.manifest.system.settings:
            root, found, _ = value.partition(f"/{PRIVATE}/")
            if found and root.startswith("/"):
                yield root


def _spelt(shorter: Mapping[str, str]) -> dict[bytes, bytes]:
    """Return `shorter` as bytes, in plain spelling and in both JSON spellings of each path."""
    pairs = [(spelt(path), spelt(name)) for path, name in shorter.items() for spelt in (str, _json, _ascii)]
    return {path.encode(): name.encode() for path, name in pairs}


def _amid(letters: bytes, paths: Collection[bytes]) -> Iterator[bytes]:
    """Yield a pattern for `paths` not preceded by one of `letters`, i.e. not inside a longer path, if there are any."""
    if paths:
        # Longest first, since one folder may be inside another.
        longest = sorted(paths, key=lambda path: (-len(path), path))
        yield rb"(?<![%b])(?:%b)" % (letters, b"|".join(map(re.escape, longest)))


def _typed(config: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield every path in a configuration."""
    for key in PATHS:
        value: Any = config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield each


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _ascii(text: str) -> str:
    return json.dumps(text)[1:-1]
