"""Registry of the studies: every folder here with a study.py."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path

from tidemark.studies.study import Study


@cache
def registry() -> dict[str, Study]:
    """Return all studies by name, sorted by name. Raises TypeError if a STUDY is not a Study named like its folder."""
    found: dict[str, Study] = {}
    for path in sorted(Path(__file__).parent.glob("*/study.py")):
        study = import_module(f"{__package__}.{path.parent.name}.study").STUDY
        if not isinstance(study, Study) or study.name != path.parent.name:
            raise TypeError(f"{path}: STUDY is {study!r}; allowed: a Study called '{path.parent.name}'")
        found[study.name] = study
    return found


def chosen(names: Iterable[str]) -> list[Study]:
    """Return the studies of these names, which the configuration's schema has checked."""
    return [registry()[name] for name in names]
