"""Where the study's data lie on this machine: made once for each size, seed and release of the generator."""

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
from tidemark.systems.lakehouses.kind import Written


@dataclass(frozen=True, slots=True)
class Store:
    """`folder` belongs to one lock of the generator: what another release made is not found in it."""

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
        """Of the part `files`. Iceberg's manifests name files by their whole paths: another place has another name."""
        place = hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]
        return self.folder / f"{settings.label}-{settings.rows}-{place}"

    def written(self, settings: FilesSettings) -> Written:
        """The files of the part `files`, which are there, and where what formats know of them lies."""
        folder = self.many(settings)
        table = folder / registered.TABLE
        metadata = {DELTA: table / registered.LOG, ICEBERG: folder / registered.MANIFESTS}
        return Written(table, settings.files, self.told(folder)["data_bytes"], metadata)

    def make(self, judge: Judge, settings: LhbenchSettings) -> None:
        """What series of `settings` read, unless it is there."""
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
        """The Parquet files that series of `settings` read, which are there."""
        found: list[Path] = []
        if isinstance(settings, LoadSettings | RefreshSettings):
            found += [self.file(settings.scale, name) for name in tables]
        if isinstance(settings, RefreshSettings):
            found += sorted(self.refreshes(settings).glob("*.parquet"))
        if isinstance(settings, MergeSettings):
            found += sorted(self.sets(settings).glob("*.parquet"))
        if isinstance(settings, FilesSettings):  # of the files themselves each query reads one, if any
            found += [path for folder in self.written(settings).metadata.values() for path in sorted(folder.iterdir())]
        return tuple(found)

    def file(self, scale: float, table: str) -> Path:
        return self.base(scale) / f"{table}.parquet"

    def told(self, folder: Path) -> Mapping[str, Any]:
        """What was said of the data in `folder` when they were made."""
        found: Mapping[str, Any] = json.loads((folder / DONE).read_text())
        return found

    def texts(self, scale: float) -> Mapping[str, str]:
        """The queries by their numbers, as the generator's release has them."""
        found: Mapping[str, str] = self.told(self.base(scale))["queries"]
        return found

    def rows(self, scale: float, table: str) -> str:
        """The rows of a table that are loaded, as DuckDB's SQL."""
        return f"SELECT * FROM read_parquet('{self.file(scale, table)}') WHERE {loaded(table)}"
