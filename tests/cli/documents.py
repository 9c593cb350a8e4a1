"""Helpers that find, parse and look up the commands and paths that documents name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer

from tidemark.cli.docs import snakemake_options
from tidemark.cli.main import app
from tidemark.cli.words import VALUES, explained
from tidemark.config import load
from tidemark.errors import TidemarkError
from tidemark.pipeline.plan import make_plan
from tidemark.studies.study import registry

REPOSITORY = Path(__file__).parents[2]
PAGES = (
    *("README.md", "ARTIFACT.md", "CONTRIBUTING.md", "config/README.md"),
    *sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "docs").rglob("*.md")),
)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LINK = re.compile(r"\]\(([^)#:]+)\)")
START = ("./tidemark", "tidemark")
PATH = re.compile(r"[\w.<>*-]+(/[\w.<>*-]+)*/?")
ENDINGS = "md yaml py lock toml sh in json svg pdf html txt parquet duckdb csv cff typ"
# Placeholders for names of the reader's, and example values for them.
EXAMPLES = {
    "all": {"NAME": "durable"},
    "show": {"NAME": "ducklake", "ID": "inlining-single", "my-claim": "inlining-single", "my-system": "ducklake"},
    "finding": {"NAME": "power-failure", "my-finding": "power-failure"},
    "provision": {"NAME": "kafka"},
    "tool": {"NAME": "locust"},
    "stack": {"next-year": "current"},
}
IN_VALUES = {"my-system": "ducklake", "my-study": "streams", "next-year": "current"}
NOT_COMMITTED = (".venv", ".tidemark", "data", "build")  # folders that commands make in the repository


@dataclass(frozen=True, slots=True)
class Places:
    """Examples for placeholders of the reader's files and folders, by placeholder such as ARCHIVE."""

    by_word: dict[str, Path]
    trips: Path


def without_blocks(text: str) -> str:
    return FENCED.sub("", text)


def spans(text: str) -> Iterator[str]:
    """Yield inline code, each on one line, and targets of links."""
    prose = without_blocks(text)
    yield from (" ".join(each.split()) for each in SPAN.findall(prose))
    yield from LINK.findall(prose)


def commands(text: str) -> Iterator[str]:
    """Yield the commands in shell code blocks, with continued lines joined, and in inline code."""
    for language, block in FENCED.findall(text):
        if language in ("", "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                for part in line.split("&&"):
                    if part.split()[:1] and part.split()[0] in START:
                        yield shlex.join(shlex.split(part, comments=True))
    yield from (each for each in spans(text) if each.split()[0] in START and " " in each)


def words_of(command: str, places: Places) -> list[str]:
    """Return the words after `./tidemark`, with examples in place of the reader's names."""
    words = shlex.split(command)[1:]
    examples = EXAMPLES.get(words[0], {}) | {word: str(path) for word, path in places.by_word.items()}
    return [_value(examples.get(word, word), places) for word in words]


def _value(word: str, places: Places) -> str:
    key, equals, value = word.partition("=")
    if not equals:
        return word
    for name, example in IN_VALUES.items():
        value = value.replace(name, example)
    value = str(places.by_word.get(value, value))
    return f"{key}={places.trips if key == 'dataset.path' else value}"


@cache
def problem_of(words: tuple[str, ...], planned: bool = True) -> str | None:
    """Return why the command line, the configuration or its plan refuses `words`; None if nothing does."""
    try:
        command: Any = typer.main.get_group(app)
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            if words[0] not in command.commands:
                return f"no command '{words[0]}'"
            command, words = command.commands[words[0]], words[1:]
        context = command.make_context("tidemark", [*words])
        values = any(parameter.metavar == VALUES for parameter in command.params)
        if values:
            pairs = [f"preset={name}" for name in context.params.get("preset") or ()]
            pairs += [*(context.params["config"] or []), *(word for word in context.args if "=" in word)]
            config = load(REPOSITORY / "config.yaml", pairs)
            if planned:
                make_plan(config)
        others = [word for word in context.args if not values or "=" not in word]
        gone = [word for word in others if "/" in word and not (REPOSITORY / word).exists()]
        unknown = [word for word in others if word.startswith("-") and word not in ("-k", "--dry-run")]
        return f"found {[*gone, *unknown]}" if gone or unknown else None
    except typer.Exit:
        return None  # of options such as --help
    except TidemarkError as error:
        return str(error)
    except Exception as error:
        plain = explained(error, words)
        if plain is None:
            raise
        return str(plain)


@cache
def options() -> frozenset[str]:
    """Return every option of every command, with those of Snakemake that `all` passes on."""
    known = {"--help", *snakemake_options()}
    due: list[Any] = [typer.main.get_group(app)]
    while due:
        command = due.pop()
        due += getattr(command, "commands", {}).values()
        known |= {option for parameter in command.params for option in parameter.opts}
    return frozenset(known)


def loose_options(text: str) -> Iterator[str]:
    """Yield options that are inline code by themselves, with or without values, unless these are placeholders."""
    yield from (each for each in spans(text) if each.startswith("--") and VALUES not in each and "<" not in each)


def paths(text: str) -> Iterator[str]:
    """Yield paths and file names in inline code and links."""
    for each in spans(text):
        if PATH.fullmatch(each) and ("/" in each or each.rpartition(".")[2] in ENDINGS.split()) and each != "n/a":
            yield each


def is_there(path: str, results: Path) -> bool:
    """Return True if a path in a document exists in the repository, in `results`, or among the studies' figures."""
    pattern = re.sub(r"<\w+>", "*", path.removeprefix("../").rstrip("/")).replace("run-N", "run-0").replace("NAME", "*")
    if pattern.split("/")[0] in NOT_COMMITTED:
        return True
    if pattern.startswith("results/"):
        inside = pattern.removeprefix("results/")
        return bool(list(results.glob(inside))) or inside in _drawn()
    if list(REPOSITORY.glob(pattern)) or list((REPOSITORY / "docs").glob(pattern)):
        return True
    if "/" in pattern or not list(results.rglob(pattern)):
        sources = [*(REPOSITORY / "src/tidemark").rglob("*.py")]
        named = re.compile(rf'"{re.escape(Path(pattern).stem)}(\.\w+)?"')
        return any(str(each).endswith(f"/{pattern}") for each in sources) or (
            "/" not in pattern and any(named.search(each.read_text()) for each in sources)
        )
    return True


def _drawn() -> set[str]:
    """Return the figures that studies draw, as paths below the results."""
    return {
        f"figures/{name}/{figure_spec.name}.svg"
        for name, study in registry().items()
        for figure_spec in study.results.figure_specs()
    }


def complaints(
    text: str, places: Places, results: Path, elsewhere: Collection[str] = (), planned: bool = True
) -> list[str]:
    """Return what a document names that does not exist: commands, options, values, and paths not in `elsewhere`.

    With `planned`, the series of each command's configuration are planned as well.
    """
    wrong = []
    for command in dict.fromkeys(commands(text)):
        problem = problem_of(tuple(words_of(command, places)), planned)
        wrong += [f"{command}: {problem}"] if problem else []
    for each in dict.fromkeys(loose_options(text)):
        first, *rest = shlex.split(each)
        if first == "--config":
            problem = problem_of(("config", *(_value(word, places) for word in [first, *rest])), planned)
            wrong += [f"{each}: {problem}"] if problem else []
        elif first not in options() and not each.startswith("--extra-experimental-features"):
            wrong.append(f"{each}: no command has the option")
    gone = (path for path in dict.fromkeys(paths(text)) if path not in elsewhere and not is_there(path, results))
    return [*wrong, *(f"{path}: is not there" for path in gone)]
