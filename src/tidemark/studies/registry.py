"""The studies that there are: every folder here with a study.py."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path

from tidemark.studies.study import Study


@cache
def registry() -> dict[str, Study]:
    """Every study by its name, in the order of names."""
    found: dict[str, Study] = {}
    for path in sorted(Path(__file__).parent.glob("*/study.py")):
        study = import_module(f"{__package__}.{path.parent.name}.study").STUDY
        if not isinstance(study, Study) or study.name != path.parent.name:
            raise TypeError(f"{path}: STUDY is {study!r}; allowed: a Study called '{path.parent.name}'")
        found[study.name] = study
    return found


def chosen(names: Iterable[str]) -> list[Study]:
    """The studies of these names, which the configuration's schema knows."""
    return [registry()[name] for name in names]
