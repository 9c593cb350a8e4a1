"""Archive of results from which everything can be rebuilt: an RO-Crate in a zip, byte-reproducible.

It contains the plan, the run files of its series, the locks that the runs name, the configuration, and the derived
outputs; folders of the machine are removed (`discretion`). `unpack` is the inverse.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from tidemark import __version__
from tidemark.progress import Progress
from tidemark.results.archive.redaction import Discretion
from tidemark.runs.runset import RunSet
from tidemark.runs.views import locked_file, newest, unfinished

METADATA = "ro-crate-metadata.json"
# https://www.researchobject.org/ro-crate/specification/1.1/ plus one term from the workflow-run profiles.
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
CONTEXT: list[Any] = [f"{SPECIFICATION}/context", {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}]
DERIVED = ("tables", "figures", "claims.json", "claims.csv", "claims.md", "paper.pdf", "report.html", "answer.txt")
KINDS = {
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".html": "text/html",
    ".yaml": "application/yaml",
    ".toml": "application/toml",
    ".lock": "text/plain",
    ".txt": "text/plain",
}
PACKED = frozenset({".parquet", ".png", ".pdf"})  # already compressed


@dataclass(frozen=True, slots=True)
class Member:
    """File of an archive, as its crate lists it."""

    name: str
    size: int
    sha256: str

    @property
    def is_derived(self) -> bool:
        """Return True if it is derived from other members, and so is rebuilt instead of unpacked."""
        parts = PurePosixPath(self.name).parts
        return parts[0] == "results" and len(parts) > 1 and parts[1] in DERIVED


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_archive(results: Path, target: Path) -> Path:
    """Pack the run set in `results` and its derived outputs into `target`, and return `target`.

    Raise AnalysisError if runs are missing or damaged, since results could not be rebuilt from such an archive.
    """
    run_set = RunSet.load(results)
    members = dict(sorted(_members(run_set)))
    discreet = Discretion(run_set)
    contents = ((name, discreet.content(path)) for name, path in members.items())
    packed = [Member(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in contents]
    moment = newest(run_set, "archive")
    crate = json.dumps(_crate(run_set, packed), indent=1, ensure_ascii=False) + "\n"
    beside = target.with_name(f".{target.name}.writing")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(beside, "w") as file, Progress("archive", len(members), " files") as progress:
            _add(file, METADATA, crate.encode(), moment)
            for done, (name, path) in enumerate(members.items()):
                _add(file, name, discreet.content(path), moment)
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


def _members(run_set: RunSet) -> Iterator[tuple[str, Path]]:
    """Yield the name in the archive and the source file of each member."""
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


def _crate(run_set: RunSet, members: Sequence[Member]) -> dict[str, Any]:
    first, last = min(run.manifest.started_at for run in run_set.runs), newest(run_set, "archive").isoformat()
    datasets = run_set.datasets
    files = [
        {
            "@id": member.name,
            "@type": "File",
            "name": Path(member.name).name,
            "encodingFormat": KINDS.get(Path(member.name).suffix, "application/octet-stream"),
            "contentSize": str(member.size),
            "sha256": member.sha256,
        }
        for member in members
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Write performance of lakehouse systems: {len(run_set.runs)} runs of {len(run_set.repeats)} series",
        "description": "Run files of Tidemark with the tables, figures, claims and the paper made from them. "
        + ("SYNTHETIC dataset. " if any(dataset.synthetic for dataset in datasets) else "")
        + "".join(f"{sentence} " for sentence in unfinished(run_set))
        + "'./tidemark all --config archive=FILE' makes all of it again.",
        "datePublished": last[:10],
        "license": {"@id": "https://www.apache.org/licenses/LICENSE-2.0"},
        "hasPart": [{"@id": each["@id"]} for each in files],
        "mentions": {"@id": "#measurement"},
    }
    about: list[dict[str, Any]] = [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "conformsTo": {"@id": SPECIFICATION},
            "about": {"@id": "./"},
        },
        root,
        {"@id": "#tidemark", "@type": "SoftwareApplication", "name": "Tidemark", "softwareVersion": __version__},
        {
            "@id": "#measurement",
            "@type": "CreateAction",
            "name": "The measurement",
            "instrument": {"@id": "#tidemark"},
            "object": [{"@id": f"#dataset-{dataset.sha256[:12]}"} for dataset in datasets],
            "result": [{"@id": each.name} for each in members if each.name.endswith("/run.json")],
            "startTime": first,
            "endTime": last,
        },
    ]
    about += [
        {
            "@id": f"#dataset-{dataset.sha256[:12]}",
            "@type": "Dataset",
            "name": dataset.label,
            "sha256": dataset.sha256,
        }
        for dataset in datasets
    ]
    return {"@context": CONTEXT, "@graph": [*about, *files]}
