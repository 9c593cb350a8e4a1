"""Opening of result sets: folders and archives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.errors import AnalysisError, ConfigError
from tidemark.results.archive.unpack import unpack_archive
from tidemark.runs.runset import RunSet


@contextmanager
def opened(place: Path) -> Iterator[RunSet]:
    """Yield the run set of a results folder, of a workspace that has one, or of an archive (unpacked temporarily).

    Raise ConfigError if `place` does not exist; AnalysisError, naming the file, if it is none of these, or if the
    archive is damaged.
    """
    if place.is_file():
        with tempfile.TemporaryDirectory(prefix="tidemark-archive-") as folder:
            yield RunSet.load(unpack_archive(place, Path(folder)).parent)
        return
    if not place.exists():
        raise ConfigError(f"{place}: is not there; allowed: a results folder, or an archive of './tidemark archive'")
    found = next((folder for folder in (place, place / "results") if (folder / "plan.json").is_file()), None)
    if found is None:
        raise AnalysisError(
            f"{place}: found no plan.json; allowed: a results folder, or an archive of './tidemark archive'"
        )
    yield RunSet.load(found)
