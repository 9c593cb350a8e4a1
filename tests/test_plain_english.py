"""Phrases that a stranger would stumble over do not come back: a short list of them is held at zero."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
TEXTS = (".py", ".md", ".yaml", ".yml", ".typ", ".java", ".js", ".html", ".css", ".smk", ".nix", ".sh", ".toml")
DATA = ("reference/", "findings/", "tests/results/smoke/", "tests/runs/measured/", "paper/fonts")
PHRASES = (
    "anew", "nobody", "somebody", "anybody", "whoever", "what became of", "asked of", "told from", "told apart",
    "held against", "for certain", "seen from here", "in doubt as far as", "how manieth", "of ours", "and no more",
)  # fmt: skip
# Servers run as the account 'nobody' when Tidemark runs as root: that word is its name.
PATTERN = re.compile(
    r"(?<![a-z])(?<!as )(?<!account )(?<!['\"`])("
    + "|".join(phrase.replace(" ", r"[\s_]+") for phrase in PHRASES) + r")(?![a-z-])", re.IGNORECASE,
)  # fmt: skip
# A docstring begins with a verb or a noun phrase.
FIRST = re.compile(r"(What|Whether|Why|Who|How|Where|When|That|Those|Of|As)\b")


def texts() -> Iterator[tuple[str, str]]:
    """Each text file of the repository but this one, data and locks, with its content."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.split("\n"):
        path = REPOSITORY / name
        if path.suffix in TEXTS and not name.startswith(DATA) and path != Path(__file__) and path.is_file():
            yield name, path.read_text()


def odd_phrases(name: str, text: str) -> list[str]:
    """Return each odd phrase with its line; of Python, only those in comments, texts, and names of tests."""
    parts = list(written(text)) if name.endswith(".py") else [(1, text)]
    return [
        f"{name}:{first + part.count(chr(10), 0, found.start())}: '{found[1]}' in {part.strip()[:100]}"
        for first, part in parts
        for found in PATTERN.finditer(part)
    ]


def written(source: str) -> Iterator[tuple[int, str]]:
    kinds = {tokenize.COMMENT, tokenize.STRING, tokenize.FSTRING_MIDDLE}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds or (token.type == tokenize.NAME and token.string.startswith("test_")):
            yield token.start[0], token.string


def odd_docstrings(name: str, text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node)
            if said and FIRST.match(said):
                yield f"{name}:{getattr(node, 'lineno', 1)}: {said.splitlines()[0]}"


def test_odd_phrases_are_gone() -> None:
    found = [each for name, text in texts() for each in odd_phrases(name, text)]
    assert not found, "\n".join(found[:50])


def test_docstrings_begin_with_a_verb_or_a_noun_phrase() -> None:
    found = [each for name, text in texts() if name.endswith(".py") for each in odd_docstrings(name, text)]
    assert not found, "\n".join(found[:50])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.md", "Nobody can tell."),
        ("x.yaml", "what became\n    of it"),
        ("x.py", "def test_what_nobody_waits_for() -> None: ..."),
        ("x.py", "x = 1  # made anew"),
        ("x.py", 'print(f"{x} is made anew")'),
    ],
)
def test_planted_phrase_is_found(name: str, text: str) -> None:
    assert len(odd_phrases(name, text)) == 1


def test_planted_docstring_is_found() -> None:
    assert list(odd_docstrings("x.py", 'def f():\n    """Whether it ended."""\n'))
    assert not list(odd_docstrings("x.py", 'def f():\n    """Return whether it ended."""\n'))
