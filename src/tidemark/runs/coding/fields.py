"""Reading JSON into typed values: an error names the file, the key and what was found there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemark.errors import AnalysisError


class Fields:
    """One object of a JSON file, asked key by key; `runs.shapes` reads a whole one."""

    def __init__(self, source: str, values: Mapping[str, Any], prefix: str = "") -> None:
        self.source, self.values, self._prefix = source, values, prefix

    @classmethod
    def read(cls, path: Path) -> Fields:
        """The object in the file at `path`; AnalysisError if there is no such file or it holds no object."""
        values = _loaded(path)
        if not isinstance(values, dict):
            raise AnalysisError(f"{path}: found {type(values).__name__}; allowed: an object")
        return cls(str(path), values)

    @classmethod
    def read_list(cls, path: Path) -> list[Fields]:
        """The objects in the list that the file at `path` holds; AnalysisError as for `read`."""
        values = _loaded(path)
        if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
            raise AnalysisError(f"{path}: found {type(values).__name__}; allowed: a list of objects")
        return [cls(str(path), each, f"[{place}].") for place, each in enumerate(values)]

    def wrong(self, key: str, allowed: str) -> AnalysisError:
        """What to raise for what is found at `key`, or for nothing there."""
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
        """A list of objects; an absent key is an empty list."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, "a list of objects")
        return [Fields(self.source, item, f"{self._prefix}{key}[{place}].") for place, item in enumerate(value)]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; an absent key is an empty list."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "a list of texts")
        return tuple(value)

    def spelt(self, key: str) -> str | None:
        """What is at `key` as `spelt` spells it; None where there is nothing."""
        value = self.values.get(key)
        return None if value is None else spelt(value)

    def names(self) -> tuple[str, ...]:
        return tuple(self.values)


def spelt(value: Any) -> str:
    """A value as people read it: a text as it is, all else as JSON has it."""
    return value if isinstance(value, str) else json.dumps(value)


def _loaded(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise AnalysisError(f"{path}: not there; run 'all' again to measure or fetch what is missing") from None
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{path}: cannot be read as JSON: {error}") from error
