"""Words of the command line: the values of --config, and one-line errors for invalid words and paths."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.completion import one_of_these
from tidemark.errors import ConfigError, TidemarkError
from tidemark.progress import OUTPUT, QUIET, VERBOSE

VALUES = "KEY=VALUE..."
MORE_VALUES = {"allow_extra_args": True}  # --config A=1 B=2
TO = ("--output", "-o", "--target")  # the last is the old name
# Commands by the names that they had before, with the new ones.
OLD_NAMES = {
    **{name: f"list {name}" for name in ("series", "systems", "studies", "presets", "claims", "versions")},
    **{name: f"show {name}" for name in ("config", "claim")},
    "plan": "advise",
    "reference": "keep",
    "bench": "overhead",
    "gallery": "site",
    "version": "--version",
}
HELP = "'./tidemark --help' lists the commands"
# Errors of a path: it does not exist, is of another kind, or is inaccessible to this account.
OF_A_PLACE = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.EROFS}
OF_A_PLACE |= {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTEMPTY}

ConfigFile = Annotated[Path, typer.Option("--configfile", help="The configuration to use.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--config", "--set", metavar=VALUES, help="Values in place of the file's; dotted keys go deeper."),
]
Presets = Annotated[
    list[str] | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="Values for a question; './tidemark list presets' lists them.",
        autocompletion=one_of_these("tidemark.config", "presets"),
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors, and no progress.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print all that Snakemake says as well.")]


def set_output(quiet: bool, verbose: bool) -> None:
    """Set how much this process, and each that it starts, prints; raise ConfigError for both at once."""
    if quiet and verbose:
        raise ConfigError("found both --quiet and --verbose; allowed: one of them")
    if quiet or verbose:
        os.environ[OUTPUT] = QUIET if quiet else VERBOSE


def split(
    context: typer.Context, given: list[str] | None, presets: list[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return the key=value words of --config (any number, as Snakemake accepts them), and all other words.

    A preset is the word preset=NAME.
    """
    words = list(context.args)
    pairs = [f"preset={name}" for name in presets or ()]
    pairs += [*(given or []), *(word for word in words if "=" in word and not word.startswith("-"))]
    return pairs, [word for word in words if "=" not in word or word.startswith("-")]


def values(context: typer.Context, given: list[str] | None, presets: list[str] | None = None) -> list[str]:
    """Return the key=value words of a command that takes no other words; raise ConfigError for any other."""
    pairs, others = split(context, given, presets)
    if others:
        raise ConfigError(f"found '{others[0]}'; allowed: options, and values such as --config protocol=smoke")
    return pairs


def words_given(context: typer.Context) -> list[str]:
    """Return the options and words that the command line holds, without their values and without defaults."""
    options = [each for each in context.command.params if each.name is not None]
    sources = {each.opts[0]: context.get_parameter_source(each.name) for each in options}
    return [*(name for name, source in sources.items() if source and source.name == "COMMANDLINE"), *context.args]


def explained(error: Exception, words: Sequence[str]) -> TidemarkError | None:
    """Return a one-line error if `words`, or a path that they name, are the cause of `error`; None otherwise."""
    in_words = getattr(error, "format_message", None)
    if in_words is not None:
        option = getattr(error, "option_name", None)
        if option and in_words().startswith("No such option"):
            return ConfigError(f"no option {option}; {_instead(error, option, words)}")
        return ConfigError(f"{in_words()} ({_help(error)})")
    if isinstance(error, OSError) and error.errno in OF_A_PLACE:
        named = [Path(part).absolute() for word in words for part in (word, word.rpartition("=")[2]) if part]
        for each in filter(None, (error.filename2, error.filename)):
            if _is_named(Path(os.fsdecode(each)).absolute(), named):
                return ConfigError(f"{os.fsdecode(each)}: {(error.strerror or str(error)).lower()}; name another place")
    return None


def _is_named(place: Path, named: Sequence[Path]) -> bool:
    """Return True if `place` is, is in, or contains one of `named`; the current folder and its parents do not count."""
    above = [Path.cwd(), *Path.cwd().parents]
    names = [each for each in named if each not in above]
    return any(each == place or each in place.parents or place in each.parents for each in names) and place not in above


def _instead(error: Exception, option: str, words: Sequence[str]) -> str:
    """Return a suggestion of what to write in place of an option that the command does not have."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    if any(parameter.metavar == VALUES for parameter in getattr(command, "params", ())):
        key = _key(option.lstrip("-").replace("-", "_"))
        if key is not None:
            return f"write --config {key}={_value(option, words)}"
    near = getattr(error, "possibilities", None)
    return f"did you mean {' or '.join(sorted(near))}? {_help(error)}" if near else _help(error)


def _help(error: Exception) -> str:
    """Return which help to ask for: that of the command that the error is of, if it is of one."""
    path = getattr(getattr(error, "ctx", None), "command_path", "")
    names = path.split()[1:]
    return f"'./tidemark {' '.join(names)} --help' says more" if names else HELP


def _key(name: str) -> str | None:
    """Return the configuration key of this name: a common one, else a study's, of a default study first; or None."""
    from tidemark.schema import schema, sections

    keys = schema()["properties"]
    if name in keys:
        return name
    usual = keys["studies"]["default"]
    studies = [study for study, rules in sections().items() if name in rules["properties"]]
    return next((f"{study}.{name}" for study in sorted(studies, key=lambda study: study not in usual)), None)


def _value(option: str, words: Sequence[str]) -> str:
    """Return the word after an option, or the placeholder VALUE."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and after and not after.startswith("-"):
            return after
    return "VALUE"
