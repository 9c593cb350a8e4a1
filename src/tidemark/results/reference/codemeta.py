"""codemeta.json: the description of Tidemark for registries of research software, from pyproject.toml and CITATION.cff.

Its terms: https://codemeta.github.io/terms/ (CodeMeta 3.0). What CITATION.cff does not say is left out.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FILE, CITATION, PROJECT = "codemeta.json", "CITATION.cff", "pyproject.toml"
STACK = "envs/thesis.in"  # the requirements of the environment that the pipeline runs in
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?==(?P<version>\S+)")
KINDS = {"thesis": "Thesis", "report": "Report", "website": "WebSite", "conference-paper": "ScholarlyArticle"}


def codemeta(repository: Path) -> str:
    """Return the content of codemeta.json for the files in `repository`."""
    project = tomllib.loads((repository / PROJECT).read_text())["project"]
    cited = yaml.safe_load((repository / CITATION).read_text())
    python = project["requires-python"].removeprefix("==").removesuffix(".*")
    made = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": project["name"].capitalize(),
        "alternateName": cited["title"],
        "description": cited["abstract"],
        "version": cited["version"],
        "datePublished": str(cited["date-released"]),
        "license": f"https://spdx.org/licenses/{cited['license']}",
        "author": [*_authors(cited)],
        "keywords": cited["keywords"],
        "programmingLanguage": {"@type": "ComputerLanguage", "name": "Python", "version": python},
        "runtimePlatform": f"Python {python}",
        "operatingSystem": "Linux",
        "processorRequirements": "x86_64",
        "softwareRequirements": [*_requirements((repository / STACK).read_text())],
        "citation": [_work(each) for each in cited["references"]],
    }
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _authors(work: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for author in work["authors"]:
        if "name" in author:
            yield {"@type": "Organization", "name": author["name"]}
        else:
            yield {"@type": "Person", "givenName": author["given-names"], "familyName": author["family-names"]}


def _requirements(text: str) -> Iterator[dict[str, str]]:
    """Yield the requirements that name a version; those without one are tools, whose versions the lock has."""
    for found in map(REQUIREMENT.fullmatch, text.splitlines()):
        if found is not None:
            yield {"@type": "SoftwareApplication", "name": found["name"], "softwareVersion": found["version"]}


def _work(work: Mapping[str, Any]) -> dict[str, Any]:
    """Return a publication that CITATION.cff refers to, as a term of schema.org."""
    month = f"-{work['month']:02d}" if "month" in work else ""
    published = str(work["date-released"]) if "date-released" in work else f"{work['year']}{month}"
    return {
        "@type": KINDS[work["type"]],
        "name": work["title"],
        "author": [*_authors(work)],
        "datePublished": published,
    }
