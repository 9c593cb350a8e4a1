"""Reading JSON of run files into typed values: an error names the file, the key and what was found there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidemark.errors import AnalysisError


class Fields:
    """One object of a JSON file, asked key by key."""

    def __init__(self, source: str, values: Mapping[str, Any], prefix: str = "") -> None:
        self._source, self._values, self._prefix = source, values, prefix

    @classmethod
    def read(cls, path: Path) -> Fields:
        """The object in the file at `path`; AnalysisError if there is no such file or it holds no object."""
        try:
            values = json.loads(path.read_text())
        except FileNotFoundError:
            raise AnalysisError(f"{path}: not there; run 'all' again to measure or fetch what is missing") from None
        except (OSError, ValueError) as error:
            raise AnalysisError(f"{path}: cannot be read as JSON: {error}") from error
        if not isinstance(values, dict):
            raise AnalysisError(f"{path}: found {type(values).__name__}; allowed: an object")
        return cls(str(path), values)

    def _wrong(self, key: str, allowed: str) -> AnalysisError:
        found = repr(self._values[key])[:60] if key in self._values else "nothing"
        return AnalysisError(f"{self._source}: key '{self._prefix}{key}': found {found}; allowed: {allowed}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self._values.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "a text")
        return value

    def maybe_text(self, key: str) -> str | None:
        return None if self._values.get(key) is None else self.text(key)

    def number(self, key: str) -> float:
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number")
        return float(value)

    def maybe_number(self, key: str) -> float | None:
        return None if self._values.get(key) is None else self.number(key)

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(key, "a whole number")
        return value

    def maybe_integer(self, key: str) -> int | None:
        return None if self._values.get(key) is None else self.integer(key)

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def part(self, key: str) -> Fields:
        value = self._values.get(key)
        if not isinstance(value, dict):
            raise self._wrong(key, "an object")
        return Fields(self._source, value, f"{self._prefix}{key}.")

    def maybe_part[T](self, key: str, parse: Callable[[Fields], T]) -> T | None:
        return None if self._values.get(key) is None else parse(self.part(key))

    def parts(self, key: str) -> list[Fields]:
        """A list of objects; an absent key is an empty list."""
        value = self._values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._wrong(key, "a list of objects")
        return [Fields(self._source, item, f"{self._prefix}{key}[{place}].") for place, item in enumerate(value)]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; an absent key is an empty list."""
        value = self._values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, "a list of texts")
        return tuple(value)

    def integers(self, key: str) -> tuple[int, ...]:
        value = self._values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise self._wrong(key, "a list of whole numbers")
        return tuple(value)

    def count(self, key: str) -> int:
        """How many items a list has."""
        value = self._values.get(key)
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return len(value)

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """An object of scalars as (key, text) in its own order; an absent key is an empty one."""
        value = self._values.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, "an object")
        return tuple((str(name), item if isinstance(item, str) else json.dumps(item)) for name, item in value.items())

    def spelt(self, key: str) -> str | None:
        """A scalar as `pairs` spells it; None where there is none."""
        value = self._values.get(key)
        return value if value is None or isinstance(value, str) else json.dumps(value)

    def counts(self, key: str) -> tuple[tuple[str, int], ...]:
        part = self.part(key)
        return tuple((name, part.integer(name)) for name in part._values)

    def names(self) -> tuple[str, ...]:
        return tuple(self._values)
