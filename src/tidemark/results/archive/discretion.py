"""What an archive leaves out: the folders that its maker typed or worked in, which tell of a person and a machine.

The files' names stay. Nothing is computed from a folder: series are told by fingerprints, datasets by SHA-256.
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
PRIVATE = ".tidemark"  # the folder of a workspace that tables are measured in
TEXTS = frozenset({".json", ".yaml", ".html", ".csv", ".md"})


class Discretion:
    """Knows the folders to leave out, and leaves them out of what is packed."""

    def __init__(self, run_set: RunSet) -> None:
        """From the plan, the configuration beside the results, where they lie, and where they lay when measured."""
        workspace = run_set.results.parent.absolute()
        typed = [*_typed(json.loads((run_set.results / "plan.json").read_text())["config"])]
        configuration = workspace / "config.yaml"
        if configuration.is_file():
            typed += _typed(yaml.safe_load(configuration.read_text()))
        shorter = {path: PurePosixPath(path).name for path in typed if "/" in path.strip("/")}
        roots = {str(workspace), str(workspace.resolve()), *_workspaces(run_set)} - {"", "/"}
        whole = _spelt(shorter | {f"{root}/": "" for root in roots})
        # delta-rs names its files without the first slash. Of one folder too much else may have the name.
        bare = _spelt({f"{root[1:]}/": "" for root in roots if "/" in root[1:]})
        self._shorter = {**bare, **whole}
        self._folders = re.compile(b"|".join([*_amid(rb"\w.~-", whole), *_amid(rb"\w.~/-", bare)]))

    def content(self, path: Path) -> bytes:
        """What the archive holds of the file at `path`."""
        content = path.read_bytes()
        if path.suffix in TEXTS:
            return self._folders.sub(lambda found: self._shorter[found[0]], content)
        return content


def _workspaces(run_set: RunSet) -> Iterator[str]:
    """The folders that runs say they were measured in, by where their tables lay."""
    for run in (*run_set.runs, *run_set.kept_runs):
        for _, value in run.manifest.system.settings:
            root, found, _ = value.partition(f"/{PRIVATE}/")
            if found and root.startswith("/"):
                yield root


def _spelt(shorter: Mapping[str, str]) -> dict[bytes, bytes]:
    """JSON may spell a path otherwise than people do."""
    pairs = [(spelt(path), spelt(name)) for path, name in shorter.items() for spelt in (str, _json, _ascii)]
    return {path.encode(): name.encode() for path, name in pairs}


def _amid(letters: bytes, paths: Collection[bytes]) -> Iterator[bytes]:
    """A pattern of `paths` that do not follow one of `letters`, and so are not amid a longer path; none for none."""
    if paths:
        # The longest first, for one folder may lie in another.
        longest = sorted(paths, key=lambda path: (-len(path), path))
        yield rb"(?<![%b])(?:%b)" % (letters, b"|".join(map(re.escape, longest)))


def _typed(config: Mapping[str, Any] | None) -> Iterator[str]:
    """Every path that a configuration gives."""
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
