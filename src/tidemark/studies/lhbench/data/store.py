"""Storage of the study's data on this machine: generated once for each size, seed and release of the generator.

`Verifier` gives orders to the separate program that generates the data and verifies tables.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.code import PACKAGE
from tidemark.errors import MachineError
from tidemark.integrity import sha256_of
from tidemark.paths import Workspace, exclusive, private_directory
from tidemark.services.programs.process import launched, server_environment, tail
from tidemark.services.programs.tools import tool_lock
from tidemark.software.tools import tool_python
from tidemark.studies.lhbench.data import many_files
from tidemark.studies.lhbench.data.tpcds import TABLES, named_in
from tidemark.studies.lhbench.settings import (
    FilesSettings,
    LhbenchSettings,
    LoadSettings,
    MergeSettings,
    RefreshSettings,
    TpcdsSettings,
    scale_word,
)
from tidemark.studies.lhbench.verifier.readers import DELTA, ICEBERG
from tidemark.systems.spark_sql import Written

TOOL = "lhbench"
PROGRAM = "tidemark.studies.lhbench.verifier.program"
DONE = "done.json"  # in a folder of data, once it is complete


@dataclass(frozen=True, slots=True)
class Verifier:
    """The verifier's program: the interpreter of the tool's environment, and a folder for orders and logs."""

    python: Path
    folder: Path

    @classmethod
    def of(cls, workspace: Workspace, folder: Path) -> Verifier:
        return cls(tool_python(TOOL, workspace), private_directory(folder))

    def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return the program's answer to an order; MachineError, with the end of its log, if it fails."""
        asked, answered, log = (self.folder / name for name in ("order.json", "answer.json", "judge.log"))
        asked.write_text(json.dumps({"folder": str(self.folder), **order}))  # unless it names another folder
        answered.unlink(missing_ok=True)
        environment = server_environment(HOME=str(self.folder), PYTHONPATH=str(PACKAGE.parent))
        with log.open("ab") as file:
            done = subprocess.run(
                launched([self.python, "-m", PROGRAM, asked, answered]),
                stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, cwd=self.folder, check=False,
            )  # fmt: skip
        if done.returncode or not answered.exists():
            raise MachineError(f"'{order['do']}' of {PROGRAM} failed ({done.returncode}). Its log ends:\n{tail(log)}")
        found: dict[str, Any] = json.loads(answered.read_text())
        return found

    def kept(self, folder: Path, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to `order`, which generates the data in `folder` once, completely or not at all."""
        with exclusive(folder.with_name(f"{folder.name}.lock")):
            done = folder / DONE
            if not done.exists():
                beside = folder.with_name(f"{folder.name}.part")
                shutil.rmtree(beside, ignore_errors=True)
                private_directory(beside)
                answer = self.ask({**order, "folder": str(beside)})
                (beside / DONE).write_text(json.dumps(answer))
                shutil.rmtree(folder, ignore_errors=True)
                beside.rename(folder)
            found: dict[str, Any] = json.loads(done.read_text())
            return found


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
        table = folder / many_files.TABLE
        metadata = {DELTA: table / many_files.LOG, ICEBERG: folder / many_files.MANIFESTS}
        return Written(table, settings.files, self._told(folder)["data_bytes"], metadata)

    def make(self, verifier: Verifier, settings: LhbenchSettings) -> None:
        """Generate the input data of series with `settings`, unless they exist."""
        for folder, order in self._orders(settings):
            verifier.kept(folder, order)

    def _orders(self, settings: LhbenchSettings) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield the folders of the input data, each with the order that generates it."""
        if isinstance(settings, TpcdsSettings):
            yield self.base(settings.scale), {"do": "base", "scale": settings.scale}
        if isinstance(settings, RefreshSettings):
            order = {
                "do": "refreshes",
                "base": str(self.base(settings.scale)),
                "tables": list(settings.tables),
                "count": settings.refreshes,
                "seed": settings.seed,
                "share": settings.share,
                "updates": settings.updates,
            }
            yield self.refreshes(settings), order
        if isinstance(settings, MergeSettings):
            sizes = {"rows": settings.rows, "files": settings.files, "updates": list(settings.sizes)}
            yield self.sets(settings), {"do": "micro", **sizes, "seed": settings.seed}
        if isinstance(settings, FilesSettings):
            place = self.many(settings)
            yield place, {"do": "files", "files": settings.files, "rows": settings.rows, "place": str(place)}

    def files(self, settings: LhbenchSettings) -> tuple[Path, ...]:
        """Return the existing files that series with `settings` read: Parquet, or metadata in the part `files`."""
        found: list[Path] = []
        if isinstance(settings, TpcdsSettings):
            found += [self.file(settings.scale, name) for name in self.tables(settings)]
        if isinstance(settings, RefreshSettings):
            found += sorted(self.refreshes(settings).glob("*.parquet"))
        if isinstance(settings, MergeSettings):
            found += sorted(self.sets(settings).glob("*.parquet"))
        if isinstance(settings, FilesSettings):  # a query reads at most one of the data files
            found += [path for folder in self.written(settings).metadata.values() for path in sorted(folder.iterdir())]
        return tuple(found)

    def described(self, settings: LhbenchSettings) -> dict[str, Any]:
        """Return the description of the input data: rows of tables and sets, without the texts of queries."""
        if isinstance(settings, FilesSettings):
            return {"many": self._told(self.many(settings))}
        if isinstance(settings, MergeSettings):
            return {"sets": self._told(self.sets(settings))}
        assert isinstance(settings, TpcdsSettings)
        tables = {"tables": self._told(self.base(settings.scale))["tables"]}
        if isinstance(settings, RefreshSettings):
            return {**tables, "sets": self._told(self.refreshes(settings))}
        return tables

    def file(self, scale: float, table: str) -> Path:
        return self.base(scale) / f"{table}.parquet"

    def _told(self, folder: Path) -> Mapping[str, Any]:
        """Return the description of the data in `folder`, recorded when they were generated."""
        found: Mapping[str, Any] = json.loads((folder / DONE).read_text())
        return found

    def texts(self, scale: float) -> Mapping[str, str]:
        """Return the texts of the queries by number, from the generator's release."""
        found: Mapping[str, str] = self._told(self.base(scale))["queries"]
        return found

    def tables(self, settings: TpcdsSettings) -> tuple[str, ...]:
        """Return the tables that are loaded, sorted: those that queries name or that are merged into, or all."""
        if isinstance(settings, LoadSettings) and settings.whole:
            return TABLES
        texts = self.texts(settings.scale)
        needed = {table for number in settings.numbers for table in named_in(texts[number])}
        return tuple(sorted(needed | set(settings.tables if isinstance(settings, RefreshSettings) else ())))
