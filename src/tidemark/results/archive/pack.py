"""Archive of results from which everything can be rebuilt: a Workflow Run RO-Crate in a zip, byte-reproducible.

It contains the plan, the run files of its series, the locks that the runs name, the configuration, the derived outputs,
and the workflow; folders of the machine are removed (`Discretion`). `unpack` is the inverse.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from tidemark.progress import Progress
from tidemark.results.archive.crate import DERIVED, METADATA, Member, crate, describing
from tidemark.runs.runset import RunSet
from tidemark.runs.views import locked_file, newest

PACKED = frozenset({".parquet", ".png", ".pdf"})  # already compressed
# Keys of the configuration that name files or folders of the machine.
PATHS = ("dataset.path", "services.polaris_path", "services.polaris_secret_file", "archive")
PRIVATE = ".tidemark"  # folder of a workspace that contains the measured tables
TEXTS = frozenset({".json", ".yaml", ".html", ".csv", ".md"})


class Discretion:
    """Removal from packed files of folders that the author configured or worked in: they identify a person or machine.

    File names are kept. No result depends on a folder: series are identified by fingerprints, datasets by SHA-256.
    """

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

    def content(self, source: Path | bytes) -> bytes:
        """Return the content of the file at `source`, or `source` if it is a content, as stored in the archive."""
        if isinstance(source, bytes):
            return source
        content = source.read_bytes()
        if source.suffix in TEXTS:
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


def write_archive(results: Path, target: Path) -> Path:
    """Pack the run set in `results` and its derived outputs into `target`, and return `target`.

    Raise AnalysisError if runs are missing or damaged, since results could not be rebuilt from such an archive.
    """
    run_set = RunSet.load(results)
    members = dict(sorted(_members(run_set)))
    discreet = Discretion(run_set)
    contents = ((name, discreet.content(source)) for name, source in members.items())
    packed = [Member(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in contents]
    moment = newest(run_set, "archive")
    metadata = json.dumps(crate(run_set, packed), indent=1, ensure_ascii=False) + "\n"
    beside = target.with_name(f".{target.name}.writing")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(beside, "w") as file, Progress("archive", len(members), " files") as progress:
            _add(file, METADATA, metadata.encode(), moment)
            for done, (name, source) in enumerate(members.items()):
                _add(file, name, discreet.content(source), moment)
                progress.update(done + 1, name)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return target


def default_name(results: Path) -> str:
    """Return a name such as `tidemark-quick-20260102.zip`, from the protocol and the day of the last run."""
    run_set = RunSet.load(results)
    return f"tidemark-{run_set.series[0].protocol}-{newest(run_set, 'archive'):%Y%m%d}.zip"


def _add(file: zipfile.ZipFile, name: str, content: bytes, moment: datetime) -> None:
    entry = zipfile.ZipInfo(name, moment.timetuple()[:6])
    entry.external_attr = 0o100644 << 16
    entry.create_system = 3
    entry.compress_type = zipfile.ZIP_STORED if Path(name).suffix in PACKED else zipfile.ZIP_DEFLATED
    file.writestr(entry, content)


def _members(run_set: RunSet) -> Iterator[tuple[str, Path | bytes]]:
    """Yield the name in the archive and the source file, or the content, of each member."""
    results = run_set.results
    yield "results/plan.json", results / "plan.json"
    plan = json.loads((results / "plan.json").read_text())
    for item in plan["series"]:
        name = item["directory"]
        folder = results / Path(name).relative_to("results")
        # The outcome records the number of attempts, and why the others failed.
        for each in ("outcome.json", "spec.json"):
            if (folder / each).is_file():
                yield f"{name}/{each}", folder / each
    for run in (*run_set.runs, *run_set.kept_runs):
        for each in run.files:
            yield f"results/runs/{run.label}/{each}", run.directory / each
    for name in (*DERIVED, "bench.json"):
        path = results / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and not file.name.startswith("."):
                yield f"results/{file.relative_to(results).as_posix()}", file
    for name, wanted in sorted({pair for run in run_set.runs for pair in run.manifest.lock_digests}):
        if (lock := locked_file(run_set, name, wanted)) is not None:
            yield name, lock
    configuration = results.parent / "config.yaml"
    if configuration.is_file():
        yield "config.yaml", configuration
    yield from describing(run_set)
