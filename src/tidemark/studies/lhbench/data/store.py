"""Storage of the study's data on this machine: generated once for each size, seed and release of the generator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.paths import Workspace
from tidemark.services.programs.provision import sha256_of
from tidemark.services.programs.tools import tool_lock
from tidemark.studies.lhbench.data import registered
from tidemark.studies.lhbench.data.tables import loaded
from tidemark.studies.lhbench.files.settings import FilesSettings
from tidemark.studies.lhbench.judge.calls import DONE, TOOL, Judge
from tidemark.studies.lhbench.judge.readers import DELTA, ICEBERG
from tidemark.studies.lhbench.load.settings import LoadSettings
from tidemark.studies.lhbench.merge.settings import MergeSettings
from tidemark.studies.lhbench.refresh.settings import RefreshSettings
from tidemark.studies.lhbench.settings import LhbenchSettings, scale_word
from tidemark.systems.spark_sql.base import Written


@dataclass(frozen=True, slots=True)
class Store:
    """Data folder for one lock of the generator; it never holds data of another release."""

    folder: Path

    @classmethod
    def of(cls, workspace: Workspace) -> Store:
        return cls(workspace.private / "lhbench" / sha256_of(tool_lock(TOOL))[:12])

    def base(self, scale: float) -> Path:
        return self.folder / scale_word(scale)

    def refreshes(self, settings: RefreshSettings) -> Path:
        mix = f"{settings.share:g}-{settings.updates:g}-{settings.refreshes}-{settings.seed}"
        return self.folder / f"{scale_word(settings.scale)}-{settings.merged}-{mix}"

    def sets(self, settings: MergeSettings) -> Path:
        return self.folder / f"{settings.label}-{settings.updates}-{settings.seed}"

    def many(self, settings: FilesSettings) -> Path:
        """Return the folder of the part `files`, named by location because Iceberg's manifests hold absolute paths."""
        place = hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]
        return self.folder / f"{settings.label}-{settings.rows}-{place}"

    def written(self, settings: FilesSettings) -> Written:
        """Return the existing files of the part `files`, and the folders of the formats' metadata."""
        folder = self.many(settings)
        table = folder / registered.TABLE
        metadata = {DELTA: table / registered.LOG, ICEBERG: folder / registered.MANIFESTS}
        return Written(table, settings.files, self.told(folder)["data_bytes"], metadata)

    def make(self, judge: Judge, settings: LhbenchSettings) -> None:
        """Generate the input data of series with `settings`, unless they exist."""
        if isinstance(settings, LoadSettings | RefreshSettings):
            judge.kept(self.base(settings.scale), {"do": "base", "scale": settings.scale})
        if isinstance(settings, RefreshSettings):
            judge.kept(
                self.refreshes(settings),
                {
                    "do": "refreshes",
                    "base": str(self.base(settings.scale)),
                    "tables": list(settings.tables),
                    "count": settings.refreshes,
                    "seed": settings.seed,
                    "share": settings.share,
                    "updates": settings.updates,
                },
            )
        if isinstance(settings, MergeSettings):
            judge.kept(
                self.sets(settings),
                {
                    "do": "micro",
                    "rows": settings.rows,
                    "files": settings.files,
                    "updates": list(settings.sizes),
                    "seed": settings.seed,
                },
            )

        if isinstance(settings, FilesSettings):
            place = self.many(settings)
            order = {"do": "files", "files": settings.files, "rows": settings.rows, "place": str(place)}
            judge.kept(place, order)

    def files(self, settings: LhbenchSettings, tables: Sequence[str]) -> tuple[Path, ...]:
        """Return the existing files that series with `settings` read: Parquet, or metadata in the part `files`."""
        found: list[Path] = []
        if isinstance(settings, LoadSettings | RefreshSettings):
            found += [self.file(settings.scale, name) for name in tables]
        if isinstance(settings, RefreshSettings):
            found += sorted(self.refreshes(settings).glob("*.parquet"))
        if isinstance(settings, MergeSettings):
            found += sorted(self.sets(settings).glob("*.parquet"))
        if isinstance(settings, FilesSettings):  # a query reads at most one of the data files
            found += [path for folder in self.written(settings).metadata.values() for path in sorted(folder.iterdir())]
        return tuple(found)

    def file(self, scale: float, table: str) -> Path:
        return self.base(scale) / f"{table}.parquet"

    def told(self, folder: Path) -> Mapping[str, Any]:
        """Return the description of the data in `folder`, recorded when they were generated."""
        found: Mapping[str, Any] = json.loads((folder / DONE).read_text())
        return found

    def texts(self, scale: float) -> Mapping[str, str]:
        """Return the texts of the queries by number, from the generator's release."""
        found: Mapping[str, str] = self.told(self.base(scale))["queries"]
        return found

    def rows(self, scale: float, table: str) -> str:
        """Return a DuckDB query for the rows of a table that are loaded."""
        return f"SELECT * FROM read_parquet('{self.file(scale, table)}') WHERE {loaded(table)}"
