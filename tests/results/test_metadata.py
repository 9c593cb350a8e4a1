"""Tests of the files that tell registries about Tidemark: CITATION.cff, codemeta.json and the workflow catalog's."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import yaml

from tidemark import __version__
from tidemark.results.archive.crate import LICENCE
from tidemark.results.reference.codemeta import CITATION, FILE, PROJECT, STACK, codemeta

ROOT = Path(__file__).parents[2]


def test_versions_and_licences_agree() -> None:
    cited = yaml.safe_load((ROOT / CITATION).read_text())
    project = tomllib.loads((ROOT / PROJECT).read_text())["project"]
    assert cited["version"] == project["version"] == __version__
    assert cited["license"] == project["license"]["text"] == "Apache-2.0"
    assert f"## {__version__} ({cited['date-released']:%-d %B %Y})" in (ROOT / "CHANGELOG.md").read_text()
    assert LICENCE.read_text().startswith("Creative Commons Attribution 4.0 International")


def test_codemeta_is_as_the_project_and_the_citation_say(tmp_path: Path) -> None:
    """After a change of one of them, run './tidemark artifact'."""
    assert (ROOT / FILE).read_text() == codemeta(ROOT)
    (tmp_path / "envs").mkdir()
    for name in (PROJECT, CITATION, STACK):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / CITATION).write_text((ROOT / CITATION).read_text().replace(f"version: {__version__}", "version: 9.9.9"))
    assert json.loads(codemeta(tmp_path))["version"] == "9.9.9"


def test_codemeta_names_clients_authors_and_the_publications() -> None:
    made = json.loads((ROOT / FILE).read_text())
    required = {each["name"]: each["softwareVersion"] for each in made["softwareRequirements"]}
    assert required["duckdb"] == "1.4.4" and required["pyiceberg"] == "0.10.0" and "pytest" not in required
    assert made["author"] == [{"@type": "Organization", "name": "The Tidemark authors"}]
    cited = {each["name"]: each for each in made["citation"]}
    thesis = cited["Evaluating Data Stream Write Performance in Lakehouse Systems"]
    assert thesis["@type"] == "Thesis" and thesis["datePublished"] == "2026-02" and len(cited) == 5


def test_workflow_catalog_finds_what_it_looks_for() -> None:
    """Check its criteria: https://github.com/snakemake/snakemake-workflow-catalog, "Standardized usage workflows"."""
    readme = (ROOT / "README.md").read_text().lower()
    assert "snakemake" in readme and "workflow" in readme
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage.keys() == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"} and usage["software-stack-deployment"] == {"conda": True}
    assert (ROOT / "workflow" / "Snakefile").is_file() and (ROOT / "config" / "README.md").is_file()
    assert list((ROOT / "workflow" / "rules").glob("*.smk"))
