"""Description of an archive for other tools: a Workflow Run RO-Crate, of the versions that roc-validator checks.

Its profiles: https://www.researchobject.org/workflow-run-crate/profiles/0.5/workflow_run_crate/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from tidemark import __version__
from tidemark.paths import REPOSITORY
from tidemark.runs.runset import RunSet
from tidemark.runs.views import newest, unfinished

METADATA = "ro-crate-metadata.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
# The terms of RO-Crate 1.1, and one of the workflow-run profiles.
CONTEXT: list[Any] = [f"{SPECIFICATION}/context", {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}]
WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    WORKFLOW_CRATE: ("Workflow RO-Crate", "1.0"),
}
LANGUAGE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
OF_RESULTS, OF_CODE = "https://creativecommons.org/licenses/by/4.0/", "https://www.apache.org/licenses/LICENSE-2.0"
LICENCES = {
    OF_RESULTS: ("Creative Commons Attribution 4.0 International", "The licence of the results."),
    OF_CODE: ("Apache License 2.0", "The licence of Tidemark, and so of the workflow."),
}
LICENCE = REPOSITORY / "reference" / "LICENSE"  # of results
DERIVED = ("tables", "figures", "claims.json", "claims.csv", "claims.md", "paper.pdf", "report.html", "answer.txt")
MAIN, RULES, README = "Snakefile", "workflow/rules", "README.md"
DESCRIBING = (MAIN, "workflow", README, LICENCE.name)  # members that tell about the others; no result is made from them
KINDS = {
    "": "text/plain",
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
    ".smk": "text/plain",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class Member:
    """File of an archive, as its crate lists it."""

    name: str
    size: int
    sha256: str

    @property
    def is_derived(self) -> bool:
        """Return True if no result is made from it, and so it is not unpacked: outputs, the workflow, its licence."""
        parts = PurePosixPath(self.name).parts
        return parts[0] in DESCRIBING or (parts[0] == "results" and len(parts) > 1 and parts[1] in DERIVED)

    @property
    def entity(self) -> dict[str, Any]:
        """Return its description in the crate."""
        path = PurePosixPath(self.name)
        return {
            "@id": self.name,
            "@type": "File",
            "name": path.name,
            "encodingFormat": KINDS.get(path.suffix, "application/octet-stream"),
            "contentSize": str(self.size),
            "sha256": self.sha256,
            **OF_MEMBERS.get(self.name, {}),
        }


# What is said of single members, besides or in place of what is said of each.
OF_MEMBERS: dict[str, dict[str, Any]] = {
    MAIN: {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "The pipeline of Tidemark",
        "programmingLanguage": {"@id": LANGUAGE},
        "version": __version__,
        "license": {"@id": OF_CODE},
        "softwareRequirements": {"@id": "#tidemark"},
    },
    README: {"about": {"@id": "./"}},
}


def describing(run_set: RunSet) -> Iterator[tuple[str, Path | bytes]]:
    """Yield the name of each member of `DESCRIBING`, with the file that it is a copy of, or its content."""
    yield MAIN, REPOSITORY / MAIN
    for path in sorted((REPOSITORY / RULES).glob("*.smk")):
        yield path.relative_to(REPOSITORY).as_posix(), path
    yield LICENCE.name, LICENCE
    yield README, _readme(run_set).encode()


def _title(run_set: RunSet) -> str:
    return f"Write performance of lakehouse systems: {len(run_set.runs)} runs of {len(run_set.repeats)} series"


def _abstract(run_set: RunSet) -> str:
    return (
        "Run files of Tidemark with the tables, figures, claims and the paper made from them. "
        + ("SYNTHETIC dataset. " if any(dataset.synthetic for dataset in run_set.datasets) else "")
        + "".join(f"{sentence} " for sentence in unfinished(run_set))
        + "'./tidemark all --config archive=FILE' makes all of it again."
    )


def _readme(run_set: RunSet) -> str:
    return f"""# {_title(run_set)}

{_abstract(run_set)}

- `results/runs`: the run files, from which all else is made; `results/plan.json` lists their series.
- `results/tables`, `results/figures` and the files beside them: what was made from the run files.
- `envs` and `config.yaml`: the locked releases of the clients, and the configuration.
- `Snakefile` and `workflow`: the pipeline of Tidemark {__version__}, which packed this archive. It needs the rest of
  Tidemark. Nothing unpacks it.
- `{METADATA}`: all files with sizes and SHA-256, as a Workflow Run RO-Crate.

The results may be used under CC BY 4.0 (`LICENSE`), `Snakefile` and `workflow` under the Apache License 2.0.
"""


def crate(run_set: RunSet, members: Sequence[Member]) -> dict[str, Any]:
    """Return the metadata of an archive of `run_set` with `members`, as JSON-LD.

    Names of people are left out, as run files have none: the measurement has no `agent`.
    """
    starts = [datetime.fromisoformat(run.manifest.started_at) for run in run_set.runs]
    first, last = (each.isoformat(timespec="seconds") for each in (min(starts), newest(run_set, "archive")))
    datasets = [
        {"@id": f"#dataset-{dataset.sha256[:12]}", "@type": "Dataset", "name": dataset.label, "sha256": dataset.sha256}
        for dataset in run_set.datasets
    ]
    inputs = [each.name for each in members if PurePosixPath(each.name).parts[0] not in ("results", *DESCRIBING)]
    descriptor = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": [{"@id": SPECIFICATION}, {"@id": WORKFLOW_CRATE}],
        "about": {"@id": "./"},
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "conformsTo": [{"@id": profile} for profile in PROFILES],
        "name": _title(run_set),
        "description": _abstract(run_set),
        "datePublished": last[:10],
        "license": {"@id": OF_RESULTS},
        "mainEntity": {"@id": MAIN},
        "hasPart": [{"@id": each.name} for each in members],
        "mentions": {"@id": "#measurement"},
    }
    measurement = {
        "@id": "#measurement",
        "@type": "CreateAction",
        "name": "The measurement",
        "description": "Each run.json names the releases and the code that it was measured with. The workflow is that "
        f"of Tidemark {__version__}, which packed the archive.",
        "instrument": {"@id": MAIN},
        "object": [{"@id": name} for name in [*(each["@id"] for each in datasets), *inputs]],
        "result": [{"@id": each.name} for each in members if each.name.endswith("/run.json")],
        "startTime": first,
        "endTime": last,
    }
    program = {"@id": "#tidemark", "@type": "SoftwareApplication", "name": "Tidemark", "softwareVersion": __version__}
    language = {
        "@id": LANGUAGE,
        "@type": "ComputerLanguage",
        "name": "Snakemake",
        "identifier": {"@id": "https://doi.org/10.1093/bioinformatics/bts480"},
        "url": {"@id": "https://snakemake.readthedocs.io"},
    }
    profiles = [
        {"@id": profile, "@type": "CreativeWork", "name": name, "version": version}
        for profile, (name, version) in PROFILES.items()
    ]
    licences = [
        {"@id": licence, "@type": "CreativeWork", "name": name, "description": described}
        for licence, (name, described) in LICENCES.items()
    ]
    about = [descriptor, root, program, measurement, language, *profiles, *licences, *datasets]
    return {"@context": CONTEXT, "@graph": [*about, *(each.entity for each in members)]}
