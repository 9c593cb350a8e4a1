"""Checks of the files that a configuration names, trips and an archive, before any step starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tidemark.config import Config
from tidemark.errors import ConfigError, DatasetError


def months(config: Config) -> tuple[Path, ...]:
    """Return the files of trips that `config` names and would use."""
    used = config.archive is None and config.dataset.source in ("auto", "path")
    return config.dataset.paths if used else ()


def refuse_absent(config: Config) -> None:
    """Raise DatasetError if a file of trips does not exist, ConfigError if the archive does not."""
    for path in months(config):
        if not path.exists():
            raise DatasetError(
                f"{config.origin.place(('dataset', 'path'))}: found '{path}', which is not there; allowed: a TLC month "
                "as Parquet, a list of them, or null"
            )
    if config.archive is not None and not config.archive.exists():
        raise ConfigError(
            f"{config.origin.place(('archive',))}: found '{config.archive}', which is not there; allowed: a file that "
            "'./tidemark archive' wrote, or null"
        )


def refuse_unusable(config: Config) -> None:
    """Raise DatasetError for files that are not months of trips, AnalysisError for an archive that was altered.

    Months are checked in a separate process that ends: this one lives while series are made cold, and would keep
    Arrow in memory.
    """
    if config.archive is not None:
        from tidemark.results.archive.unpack import opened

        with opened(config.archive):
            return
    if months(config):
        command = [sys.executable, "-m", "tidemark.dataset", *map(str, months(config))]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise DatasetError(ended.stderr.strip())
