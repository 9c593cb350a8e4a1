"""Tests of the pages below docs/: no page, command, exit code or term is left out."""

from __future__ import annotations

import inspect
import re

import typer.main
from tests.cli.documents import PAGES, REPOSITORY

from tidemark import errors
from tidemark.cli.docs import COMMANDS, commands_page
from tidemark.cli.main import app
from tidemark.errors import TidemarkError
from tidemark.pipeline.build import all_claims
from tidemark.results.reference.front import study_page
from tidemark.studies.study import registry

DONE, INTERRUPTED = 0, 130  # exit codes without an error
NAME = re.compile(r"`([a-z]\w*-[\w.-]+)`")  # of a table, a figure, or a claim; dots at its end stand for several claims


def text_of(page: str) -> str:
    return (REPOSITORY / page).read_text()


def test_every_page_is_in_the_index_or_below_a_page_of_it() -> None:
    linked = {f"docs/{name}" for name in re.findall(r"\]\(([\w-]+\.md)", text_of("docs/index.md"))}
    below = {page for page in PAGES if page.startswith(("docs/systems/", "docs/studies/", "docs/claims/"))}
    assert linked | below | {"docs/index.md"} == {page for page in PAGES if page.startswith("docs/")}


def test_every_study_has_a_page_and_an_entry_in_the_list_of_studies() -> None:
    every = text_of("docs/studies.md")
    assert sorted(re.findall(r"^## (\w+): ", every, re.MULTILINE)) == sorted(registry())
    for name in registry():
        title, question, conclusion, command, *_ = text_of(study_page(name)).split("\n\n")
        assert f"\n#{title}\n" in every and title.startswith(f"# {name}: ") and "?" in question
        assert conclusion.startswith("**") and command.startswith("```\n./tidemark all")
        assert f"](studies/{name}.md)" in every and f"](claims/{name}.md)" in every


def test_page_of_commands_is_as_the_commands_are() -> None:
    made = commands_page(typer.main.get_group(app))
    assert text_of(COMMANDS) == made, "./tidemark artifact . writes it again"
    headings = re.findall(r"^### (.+)$", made, re.MULTILINE)
    assert {"all", "stack add", "new system", "measure", "docs"} <= set(headings)
    assert len(headings) == len(set(headings))


def test_every_exit_code_has_a_section_and_no_other_has() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, TidemarkError)]
    described = re.findall(r"^## (\d+): ", text_of("docs/troubleshooting.md"), re.MULTILINE)
    assert [int(code) for code in described] == sorted({DONE, INTERRUPTED, *(kind.exit_code for kind in kinds)})


def test_every_term_of_the_glossary_has_an_anchor() -> None:
    rows = re.findall(r"^\| (.*?) \| ", text_of("docs/glossary.md"), re.MULTILINE)
    terms = [row for row in rows if row != "term"]
    assert len(terms) > 20
    for row in terms:
        names = re.sub(r"<a id=[^>]+></a>", "", row).split(", ")
        assert re.findall(r'<a id="([^"]+)">', row) == [name.replace(" ", "-") for name in names], row


def misnamed(text: str) -> list[str]:
    """Return the names in the page of publications that nothing has, and the claims of publications that it lacks."""
    claims = {claim.id: claim for claim in all_claims()}
    made = {spec.name for study in registry().values() for spec in study.results.figure_specs()}
    made |= {path.stem for path in (REPOSITORY / "reference").glob("*/tables/*.json")}
    sources = "".join(path.read_text() for path in (REPOSITORY / "src/tidemark").rglob("*.py"))
    named: set[str] = set()
    wrong = []
    for name in NAME.findall(text):
        found = {each for each in claims if each == name or (name.endswith("...") and each.startswith(name[:-3]))}
        named |= found
        if not found and name not in made and f'"{name}"' not in sources:
            wrong.append(name)
    ours = {each for each in claims if not claims[each].published.source and each != "connect-exactly-once"}
    return [*wrong, *sorted(ours - named)]


def test_page_of_publications_names_what_there_is_and_every_claim() -> None:
    text = text_of("docs/publications.md")
    assert misnamed(text) == []
    for right, wrong, found in (
        ("`table-5.1`", "`table-5.9`", "table-5.9"),
        ("`lhb-files`", "`lhb-file`", "lhb-file"),
        ("`in-flight`", "", "in-flight"),
        ("`gain-...`", "", "gain-table"),
    ):
        assert right in text and found in misnamed(text.replace(right, wrong)), right
