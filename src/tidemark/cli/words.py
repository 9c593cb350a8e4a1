"""What was typed: the values behind --config, and what is wrong with words and places, in one line."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tidemark.errors import ConfigError, TidemarkError

VALUES = "KEY=VALUE..."
HELP = "'./tidemark --help' lists the commands"
# What can be wrong with a place: it is not there, is of another kind, or is closed to this account.
OF_A_PLACE = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.EROFS}
OF_A_PLACE |= {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTEMPTY}

ConfigFile = Annotated[Path, typer.Option("--configfile", help="The configuration to use.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--config", metavar=VALUES, help="Values in place of the file's; dotted keys go deeper."),
]


def split(context: typer.Context, given: list[str] | None) -> tuple[list[str], list[str]]:
    """The key=value words behind --config (any number, as Snakemake takes them), and all other words."""
    words = list(context.args)
    pairs = [*(given or []), *(word for word in words if "=" in word and not word.startswith("-"))]
    return pairs, [word for word in words if "=" not in word or word.startswith("-")]


def values(context: typer.Context, given: list[str] | None) -> list[str]:
    """The key=value words of a command that takes no other words; ConfigError for one of another kind."""
    pairs, others = split(context, given)
    if others:
        raise ConfigError(f"found '{others[0]}'; allowed: options, and values such as --config protocol=smoke")
    return pairs


def explained(error: Exception, words: Sequence[str]) -> TidemarkError | None:
    """An error of one line for what is wrong with `words`, or with a place that they name; None for anything else."""
    in_words = getattr(error, "format_message", None)
    if in_words is not None:
        option = getattr(error, "option_name", None)
        if option and in_words().startswith("No such option"):
            return ConfigError(f"no option {option}; {_instead(error, option, words)}")
        return ConfigError(f"{in_words()} ({HELP})")
    if isinstance(error, OSError) and error.errno in OF_A_PLACE:
        named = [Path(part).absolute() for word in words for part in (word, word.rpartition("=")[2]) if part]
        for each in filter(None, (error.filename2, error.filename)):
            if _is_named(Path(os.fsdecode(each)).absolute(), named):
                return ConfigError(f"{os.fsdecode(each)}: {(error.strerror or str(error)).lower()}; name another place")
    return None


def _is_named(place: Path, named: Sequence[Path]) -> bool:
    """Whether `place` is one of `named`, lies in one, or one lies in it; this folder, in which all lie, is none."""
    above = [Path.cwd(), *Path.cwd().parents]
    names = [each for each in named if each not in above]
    return any(each == place or each in place.parents or place in each.parents for each in names) and place not in above


def _instead(error: Exception, option: str, words: Sequence[str]) -> str:
    """What to write in place of an option that the command does not have."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    if any(parameter.metavar == VALUES for parameter in getattr(command, "params", ())):
        key = _key(option.lstrip("-").replace("-", "_"))
        if key is not None:
            return f"write --config {key}={_value(option, words)}"
    near = getattr(error, "possibilities", None)
    return f"did you mean {' or '.join(sorted(near))}? {HELP}" if near else HELP


def _key(name: str) -> str | None:
    """The key of the configuration with this name: one of all studies, else of the study that runs by default."""
    from tidemark.schema import schema, sections

    keys = schema()["properties"]
    if name in keys:
        return name
    usual = keys["studies"]["default"]
    studies = [study for study, rules in sections().items() if name in rules["properties"]]
    return next((f"{study}.{name}" for study in sorted(studies, key=lambda study: study not in usual)), None)


def _value(option: str, words: Sequence[str]) -> str:
    """The word behind an option, or the sign of one."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and after and not after.startswith("-"):
            return after
    return "VALUE"
