"""Replacement of a site by a new one, as a whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.errors import AnalysisError, ConfigError
from tidemark.results.site.pages import INDEX, MARK
from tidemark.runs.serde import Fields


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside `target` that takes its place at the end; on an error `target` stays as it was.

    Raise ConfigError if `target` has files and is not a site.
    """
    target = target.resolve()
    _refuse_others(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        new.mkdir()
        yield new
        if target.exists():
            target.rename(old)
        new.rename(target)


def _refuse_others(target: Path) -> None:
    if not target.exists() or not any(target.iterdir()):
        return
    try:
        is_site = MARK in Fields.read(target / INDEX).values
    except AnalysisError:
        is_site = False
    if not is_site:
        raise ConfigError(f"{target}: holds something else than a site of './tidemark site'; name another folder")
