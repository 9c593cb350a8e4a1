"""Typed access to JSON objects; every error names the file, the key and the value found."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemark.errors import AnalysisError

LARGEST = 2**63 - 1  # largest integer accepted: the database holds no larger one
OF_LINES = "reason"  # the only key whose string may span lines: it may quote the end of a log


class Fields:
    """One JSON object, read key by key; `coding.shapes.read` decodes a complete one."""

    def __init__(self, source: str, values: Mapping[str, Any], prefix: str = "") -> None:
        self.source, self.values, self._prefix = source, values, prefix

    @classmethod
    def read(cls, path: Path) -> Fields:
        """Return the object in the file at `path`; raise AnalysisError if the file is missing or holds no object."""
        values = _loaded(path)
        if not isinstance(values, dict):
            raise AnalysisError(f"{path}: found {type(values).__name__}; allowed: an object")
        return cls(str(path), values)

    @classmethod
    def read_list(cls, path: Path) -> list[Fields]:
        """Return the objects in the list that the file at `path` holds; raise AnalysisError as `read` does."""
        values = _loaded(path)
        if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
            raise AnalysisError(f"{path}: found {type(values).__name__}; allowed: a list of objects")
        return [cls(str(path), each, f"[{place}].") for place, each in enumerate(values)]

    def wrong(self, key: str, allowed: str) -> AnalysisError:
        """Return the AnalysisError to raise for the value at `key`, or for its absence."""
        found = repr(self.values[key])[:60] if key in self.values else "nothing"
        return AnalysisError(f"{self.source}: key '{self._prefix}{key}': found {found}; allowed: {allowed}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def number(self, key: str) -> float:
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number")
        return float(value)

    def maybe_number(self, key: str) -> float | None:
        return None if self.values.get(key) is None else self.number(key)

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, "a whole number")
        return value

    def part(self, key: str) -> Fields:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Fields(self.source, value, f"{self._prefix}{key}.")

    def parts(self, key: str) -> list[Fields]:
        """Return a list of objects; an absent key is an empty list."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, "a list of objects")
        return [Fields(self.source, item, f"{self._prefix}{key}[{place}].") for place, item in enumerate(value)]

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings; an absent key is an empty list."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "a list of texts")
        return tuple(value)

    def spelt(self, key: str) -> str | None:
        """Return the value at `key` formatted by `spelt`; None if the key is absent or null."""
        value = self.values.get(key)
        return None if value is None else spelt(value)

    def names(self) -> tuple[str, ...]:
        return tuple(self.values)


def spelt(value: Any) -> str:
    """Format a value for display: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def printable(text: str, lines: bool = False) -> str:
    """Return `text` as one line that is safe to print: control characters become U+FFFD, line breaks spaces.

    With `lines`, line breaks are kept.
    """
    if text.isprintable():
        return text
    made = text if lines else " ".join(text.splitlines())
    return "".join(each if each in "\n\t" or _is_shown(each) else "\N{REPLACEMENT CHARACTER}" for each in made)


def _is_shown(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def loaded(source: str, text: str | bytes) -> Any:
    """Parse `text` as JSON, with all of its strings made `printable`.

    Raises AnalysisError, naming `source`, for invalid or too deeply nested JSON, NaN, and integers over 64 bits.
    """
    try:
        return _sound(source, json.loads(text), "")
    except RecursionError:
        raise AnalysisError(
            f"{source}: cannot be read as JSON: found lists or objects in one another, hundreds deep; "
            "allowed: a file that Tidemark wrote"
        ) from None
    except ValueError as error:
        raise AnalysisError(f"{source}: cannot be read as JSON: {error}") from error


def _sound(source: str, value: Any, key: str) -> Any:
    if isinstance(value, str):
        return printable(value, key.rpartition(".")[2] == OF_LINES)
    if isinstance(value, dict):
        return {printable(name): _sound(source, each, f"{key}.{name}" if key else name) for name, each in value.items()}
    if isinstance(value, list):
        return [_sound(source, each, key) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise AnalysisError(f"{source}: key '{printable(key)}': found {value}; allowed: a finite number")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise AnalysisError(f"{source}: key '{printable(key)}': found more than 64 bits; allowed: up to {LARGEST:,}")
    return value


def _loaded(path: Path) -> Any:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise AnalysisError(f"{path}: not there; run 'all' again to measure or fetch what is missing") from None
    except OSError as error:
        raise AnalysisError(f"{path}: cannot be read as JSON: {error}") from error
    return loaded(str(path), text)
