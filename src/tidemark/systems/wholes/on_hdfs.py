"""Complete tables on HDFS: their paths, how their files are fetched, and the servers that they need."""

from __future__ import annotations

import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tidemark.paths import private_directory
from tidemark.services.base import Service
from tidemark.services.hdfs.servers import USER, DataNode, NameNode
from tidemark.systems import duckdb_client
from tidemark.systems.wholes.kind import WholeSystem

ONE_COPY = "HDFS keeps one copy of each block, on one DataNode of this machine: no network and no second copy is timed"
FROM_MEMORY = "the DataNode leaves blocks to the page cache"
FETCHED = "of files fetched over HTTP (WebHDFS)"


class OnHdfs(WholeSystem):
    """Tables on HDFS, whose servers report on the files over HTTP."""

    notes: tuple[str, ...] = (ONE_COPY, FROM_MEMORY)
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode)

    @property
    def names(self) -> NameNode:
        names = self.context.services[NameNode]
        assert isinstance(names, NameNode)
        return names

    def environment(self) -> Mapping[str, str]:
        return {"HADOOP_USER_NAME": USER}

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        return {**super().order(processors), "names": self.names.address}

    def path(self, name: str) -> str:
        """Return a path that is unique to the run, by the name of its folder; each `Sitting` has its own servers."""
        return f"/{self.context.directory.name}/{name}"

    def address(self, name: str) -> str:
        return f"{self.names.address}{self.path(name)}"

    def fetched(self, name: str, folder: Path) -> Path:
        self.names.web.fetch(self.path(name), private_directory(folder))
        return folder

    def listed(self, name: str) -> Mapping[str, int]:
        return {each.path.as_posix(): each.size for each in self.names.web.listed(self.path(name))}

    def remove(self, name: str) -> None:
        self.names.web.remove(self.path(name))


class ParquetOnHdfs(OnHdfs):
    """Tables whose rows are in some of the Parquet files below their folders, and that store no row count."""

    @abstractmethod
    def parquet(self, place: Path) -> Sequence[Path]:
        """Return the files that hold the rows of the table at `place`, which `fetched` returned."""

    def relation(self, place: Path) -> str:
        files = ", ".join(map(duckdb_client.literal, self.parquet(place)))
        return f"read_parquet([{files}])"

    def counted(self, name: str) -> int:
        """Return the row count by the footers of the table's files, all of which are fetched."""
        import pyarrow.parquet as pq

        folder = Path(tempfile.mkdtemp(dir=self.context.directory))
        try:
            return sum(pq.read_metadata(path).num_rows for path in self.parquet(self.fetched(name, folder / name)))
        finally:
            shutil.rmtree(folder)
